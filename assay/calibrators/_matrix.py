"""Beyond temperature scaling: obtaining well-calibrated multi-class probabilities with Dirichlet calibration (Kull et
al., NeurIPS 2019), and matrix scaling (Guo et al., ICML 2017).

Both are softmax(W x + b), of log-probabilities or of logits. A ridge draws them towards temperature scaling, and its
strength is chosen by cross-validation: the k^2 numbers of a matrix overfit without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from assay._core.arrays import CHUNK, Array, Floats, InputError, Labels, row_chunks, single, softmax
from assay.calibrators._cross import simplest
from assay.calibrators._cross_entropy import nll_in_place, residual_in_place
from assay.calibrators._temperature import temperature
from assay.calibrators._weights import weights_of
from assay.maps import Affine, Fit, features
from assay.predictions import Predictions

RIDGES = tuple(10.0 ** np.arange(1, -6, -1))
MANY = 10_000  # rows from which three folds choose the ridge as well as five
ROWS = 5000  # by which steps are scaled
AT_ONCE = 512  # rows of a product of matrices, at least


def dirichlet(held_out: Predictions, *, free_diagonal: bool = False) -> Affine:
    """softmax(W ln p + b) of least NLL, plus a ridge on b and on how far W is from a multiple of the identity.

    `free_diagonal` leaves the diagonal of W out of the ridge, which is ODIR as printed; it costs k / 2n of NLL on data
    that need no correction.
    """
    return _fitted(held_out, True, free_diagonal)


def matrix(held_out: Predictions, *, free_diagonal: bool = False) -> Affine:
    """softmax(W z + b) of least NLL, with the ridge of `dirichlet`; z are log-probabilities if there are no logits."""
    return _fitted(held_out, held_out.normalized, free_diagonal)


def _fitted(held_out: Predictions, of_log_probabilities: bool, free_diagonal: bool) -> Affine:
    if len(held_out) < 2:
        raise InputError("one row is too few to choose a ridge by cross-validation")
    cooled = temperature(held_out)
    whole = _shuffled(held_out, of_log_probabilities)
    n, k = held_out.values.shape
    n_folds = min(3 if n >= MANY else 5, n)
    ends = [n * f // n_folds for f in range(n_folds + 1)]
    folds = [slice(start, stop) for start, stop in pairwise(ends)]
    curvature = _curvature(whole, 1 / cooled.t)
    drawn = np.ones((k, k + 1))
    if free_diagonal:
        np.fill_diagonal(drawn, 0)
    rests = [replace(whole, runs=(slice(0, fold.start), slice(fold.stop, n))) for fold in folds]
    pairs = [(_Descent(rest, curvature, drawn), whole[fold]) for rest, fold in zip(rests, folds, strict=True)]
    losses: list[Floats] = []
    for ridge in RIDGES:
        for descent, _ in pairs:
            descent.to_optimum(ridge)
        losses.append(np.concatenate([left_out.nll(*descent.parameters) for descent, left_out in pairs]))
        if len(losses) > 1 and losses[-1].sum() > losses[-2].sum():
            break  # weaker ones only overfit more
    descent = _Descent(whole, curvature, drawn)
    descent.to_optimum(RIDGES[simplest(np.stack(losses, 1))], precision=1e-9)
    weight, bias = descent.parameters
    after = float(whole.nll(weight, bias).mean())
    fit = Fit("NLL", cooled.fit.before, after, cooled.fit.iterations + descent.iterations, n)
    return Affine(fit, weight, bias, of_log_probabilities)


def _shuffled(held_out: Predictions, of_log_probabilities: bool) -> _Rows:
    """The inputs of the map in random order, so that a run of rows is a fold and one copy is enough."""
    n, k = held_out.values.shape
    weights = weights_of(held_out)
    x = np.empty((n, k), dtype=single(held_out.values[:0]).dtype)
    order = np.random.default_rng(0).permutation(n)
    for rows in row_chunks(n, k):
        x[rows] = features(held_out[order[rows]].logits, of_log_probabilities)
    own = np.ones(n) if weights is None else weights[order]
    return _Rows(x, held_out.labels[order], own, (slice(0, n),))


@dataclass(frozen=True, eq=False)
class _Rows:
    """Some runs of rows, and the NLL of softmax(W x + b) on them."""

    x: Array  # [n, k]
    labels: Labels  # [n]
    weights: Floats  # [n] of the rows, with a mean of 1
    runs: tuple[slice, ...]

    def __getitem__(self, run: slice) -> _Rows:
        return replace(self, runs=(run,))

    def nll(self, weight: Floats, bias: Floats) -> Floats:
        """Of each row times its weight, [n]."""
        chunks = self._chunks(weight, bias)
        return np.concatenate([own * nll_in_place(z, labels)[0] for _, z, labels, own in chunks])

    def nll_and_slope(self, weight: Floats, bias: Floats) -> tuple[float, Floats]:
        """Mean NLL, and its derivative by (W, b) [k, k + 1]."""
        n, k = sum(float(self.weights[run].sum()) for run in self.runs), self.x.shape[1]
        nll, slope = 0.0, np.zeros((k, k + 1))
        for x, z, labels, own in self._chunks(weight, bias):
            nll += residual_in_place(z, labels, own)
            slope[:, :k] += z.T @ x
            slope[:, k] += np.ones(len(z), dtype=z.dtype) @ z
        return nll / n, slope / n

    def _chunks(self, weight: Floats, bias: Floats) -> Iterator[tuple[Array, Array, Labels, Floats]]:
        """Rows of x, W x + b, labels and weights, a few rows at a time."""
        w, b = weight.astype(self.x.dtype).T, bias.astype(self.x.dtype)
        for run in self.runs:
            for rows in row_chunks(run.stop - run.start, min(self.x.shape[1], CHUNK // AT_ONCE)):
                x = self.x[run][rows]
                z = x @ w
                z += b
                yield x, z, self.labels[run][rows], self.weights[run][rows]


@dataclass(frozen=True, eq=False)
class _Curvature:
    """That of NLL by (W, b), as if the covariance of the classes and that of x were independent: a Kronecker product.

    It depends on the probabilities alone, so that of all rows serves for each fold.
    """

    scale: float  # of the identity that W starts from
    unit: float  # spread of x, by which W is measured
    of_classes: Floats  # [k] eigenvalues
    to_classes: Floats  # [k, k] eigenvectors
    of_inputs: Floats  # [k + 1] of x and 1
    to_inputs: Floats  # [k + 1, k + 1]


def _curvature(rows: _Rows, scale: float) -> _Curvature:
    every = slice(None, None, max(len(rows.x) // ROWS, 1))
    some, share = rows.x[every].astype(np.float64), rows.weights[every] / rows.weights[every].sum()
    unit, p = max(float(some.std()), 1e-30), softmax(some * scale)
    inputs = np.append(some / unit, np.ones((len(p), 1)), 1)
    of_classes, to_classes = np.linalg.eigh(np.diag(share @ p) - (p.T * share) @ p)
    of_inputs, to_inputs = np.linalg.eigh((inputs.T * share) @ inputs)
    return _Curvature(scale, unit, of_classes.clip(0), to_classes, of_inputs.clip(0), to_inputs)


class _Descent:
    """L-BFGS over the deviation of (W, b) from temperature scaling, each ridge starting where the last one ended.

    Steps are scaled by the curvature, which leaves few of them to take.
    """

    def __init__(self, rows: _Rows, curvature: _Curvature, drawn: Floats):
        self.rows, self.curvature, self.drawn, self.iterations = rows, curvature, drawn, 0
        self.deviation = np.zeros_like(drawn)

    @property
    def parameters(self) -> tuple[Floats, Floats]:
        weight = self.deviation[:, :-1] / self.curvature.unit
        weight[np.diag_indices_from(weight)] += self.curvature.scale
        return weight, self.deviation[:, -1].copy()

    def to_optimum(self, ridge: float, *, precision: float = 1e-5) -> None:
        from scipy.optimize import minimize

        c = self.curvature
        step = 1 / np.sqrt(c.of_classes[:, None] * c.of_inputs + ridge)

        def place(scaled: Floats) -> Floats:
            return np.asarray(c.to_classes @ (scaled.reshape(step.shape) * step) @ c.to_inputs.T)

        def objective(scaled: Floats) -> tuple[float, Floats]:
            self.deviation = place(scaled)
            nll, slope = self.rows.nll_and_slope(*self.parameters)
            slope[:, :-1] /= c.unit
            slope += ridge * self.drawn * self.deviation
            penalty = ridge / 2 * float((self.drawn * self.deviation**2).sum())
            turned = (c.to_classes.T @ slope @ c.to_inputs) * step
            return nll + penalty, turned.reshape(-1)

        start = ((c.to_classes.T @ self.deviation @ c.to_inputs) / step).reshape(-1)
        found = minimize(objective, start, jac=True, method="L-BFGS-B", options={"ftol": precision, "maxiter": 200})
        self.deviation = place(found.x)
        self.iterations += int(found.nfev)
