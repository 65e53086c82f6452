"""Beyond temperature scaling: obtaining well-calibrated multi-class probabilities with Dirichlet calibration (Kull et
al., NeurIPS 2019), and matrix scaling (Guo et al., ICML 2017).

Both are softmax(W x + b), of log-probabilities or of logits. A ridge draws them towards temperature scaling, and how
hard is chosen by cross-validation: the k^2 numbers of a matrix overfit without.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from assay._core import arrays
from assay._core.arrays import InputError
from assay.calibrators._cross import simplest
from assay.calibrators._temperature import temperature
from assay.maps import Affine, Fit, features
from assay.metrics import Floats
from assay.predictions import Predictions

RIDGES = tuple(10.0 ** np.arange(1, -6, -1))
FOLDS = 3
ROWS = 5000  # by which steps are scaled


def dirichlet(held_out: Predictions, *, free_diagonal: bool = False) -> Affine:
    """softmax(W ln p + b) of least NLL, plus a ridge on b and on how far W is from a multiple of the identity.

    `free_diagonal` leaves the diagonal of W out of the ridge, which is ODIR as printed; it costs k / 2n of NLL on data
    that need no correction.
    """
    return _fitted(held_out, True, free_diagonal)


def matrix(held_out: Predictions, *, free_diagonal: bool = False) -> Affine:
    """softmax(W z + b) of least NLL, with the ridge of `dirichlet`."""
    return _fitted(held_out, False, free_diagonal)


def _fitted(held_out: Predictions, of_log_probabilities: bool, free_diagonal: bool) -> Affine:
    if len(held_out) < 2:
        raise InputError("one row is too few to choose a ridge by cross-validation")
    cooled = temperature(held_out)
    whole = _shuffled(held_out, of_log_probabilities)
    x, n = whole.x, len(held_out)
    ends = [n * f // min(FOLDS, n) for f in range(min(FOLDS, n) + 1)]
    folds = [slice(start, stop) for start, stop in pairwise(ends)]
    curvature = _curvature(whole.x, 1 / cooled.t)
    drawn = torch.ones(x.shape[1], x.shape[1] + 1, dtype=torch.float64, device=x.device)
    if free_diagonal:
        drawn[:, :-1].fill_diagonal_(0)
    rests = [_Rows(x, whole.labels, (slice(0, fold.start), slice(fold.stop, n))) for fold in folds]
    pairs = [(_Descent(rest, curvature, drawn), whole[fold]) for rest, fold in zip(rests, folds, strict=True)]
    losses: list[Tensor] = []
    for ridge in RIDGES:
        for descent, _ in pairs:
            descent.to_optimum(ridge)
        losses.append(torch.cat([left_out.nll(*descent.parameters) for descent, left_out in pairs]))
        if len(losses) > 1 and losses[-1].sum() > losses[-2].sum():
            break  # weaker ones only overfit more
    descent = _Descent(whole, curvature, drawn)
    descent.to_optimum(RIDGES[simplest(torch.stack(losses, 1).cpu().numpy())], precision=1e-9)
    weight, bias = descent.parameters
    after = float(whole.nll(weight, bias).mean())
    fit = Fit("NLL", cooled.fit.before, after, cooled.fit.iterations + descent.iterations, len(held_out))
    return Affine(fit, weight, bias, of_log_probabilities)


def _shuffled(held_out: Predictions, of_log_probabilities: bool) -> _Rows:
    """What is multiplied, in random order, so that a run of rows is a fold and no more than this copy is needed."""
    n, k = held_out.values.shape
    dtype = torch.float64 if held_out.values.dtype == torch.float64 else torch.float32
    x = torch.empty(n, k, dtype=dtype, device=held_out.values.device)
    order = torch.randperm(n, generator=torch.Generator().manual_seed(0)).to(x.device)
    for rows in arrays.row_chunks(n, k, device=x.device):
        x[rows] = features(held_out[order[rows]].logits.to(dtype), of_log_probabilities)
    return _Rows(x, held_out.labels[order], (slice(0, n),))


@dataclass(frozen=True, eq=False)
class _Rows:
    """Some runs of rows."""

    x: Tensor  # [n, k]
    labels: Tensor  # [n]
    runs: tuple[slice, ...]

    def __getitem__(self, run: slice) -> _Rows:
        return _Rows(self.x, self.labels, (run,))

    def chunks(self) -> Iterator[slice]:
        for run in self.runs:
            for rows in arrays.row_chunks(run.stop - run.start, self.x.shape[1], device=self.x.device):
                yield slice(run.start + rows.start, run.start + rows.stop)

    def nll(self, weight: Tensor, bias: Tensor) -> Tensor:
        """Of each row, [n]."""
        w, b = weight.to(self.x), bias.to(self.x)
        losses = []
        for chunk in self.chunks():
            logits = torch.addmm(b, self.x[chunk], w.T)
            losses.append(logits.logsumexp(1).double() - logits.gather(1, self.labels[chunk][:, None]).squeeze(1))
        return torch.cat(losses)

    def nll_and_slope(self, weight: Tensor, bias: Tensor) -> tuple[float, Tensor]:
        """Mean NLL, and its derivative by (W, b) [k, k + 1]."""
        n, k = sum(run.stop - run.start for run in self.runs), self.x.shape[1]
        w, b = weight.to(self.x), bias.to(self.x)
        nll, slope = 0.0, torch.zeros(k, k + 1, dtype=torch.float64, device=self.x.device)
        for chunk in self.chunks():
            x, label = self.x[chunk], self.labels[chunk][:, None]
            logits = torch.addmm(b, x, w.T)
            total = logits.logsumexp(1, keepdim=True)
            nll += float((total.double() - logits.gather(1, label)).sum())
            p = logits.sub_(total).exp_()
            p.scatter_add_(1, label, torch.full_like(label, -1, dtype=p.dtype))
            slope[:, :k] += p.T @ x
            slope[:, k] += p.sum(0)
        return nll / n, slope / n


@dataclass(frozen=True, eq=False)
class _Curvature:
    """That of NLL by (W, b), as if the covariance of the classes and that of x were independent: a Kronecker product.

    It depends on the probabilities alone, so that of all rows serves for each fold.
    """

    scale: float  # of the identity that W starts from
    unit: float  # spread of x, by which W is measured
    of_classes: Tensor  # [k] eigenvalues
    to_classes: Tensor  # [k, k] eigenvectors
    of_inputs: Tensor  # [k + 1] of x and 1
    to_inputs: Tensor  # [k + 1, k + 1]


def _curvature(x: Tensor, scale: float) -> _Curvature:
    some = x[:: max(len(x) // ROWS, 1)].double()
    unit, p = max(float(some.std()), 1e-30), (some * scale).softmax(1)
    inputs = torch.cat([some / unit, torch.ones_like(p[:, :1])], 1)
    of_classes, to_classes = torch.linalg.eigh(p.mean(0).diag() - p.T @ p / len(p))
    of_inputs, to_inputs = torch.linalg.eigh(inputs.T @ inputs / len(p))
    return _Curvature(scale, unit, of_classes.clamp(min=0), to_classes, of_inputs.clamp(min=0), to_inputs)


class _Descent:
    """L-BFGS over the deviation of (W, b) from temperature scaling, each ridge starting where the last one ended.

    Steps are scaled by the curvature, which leaves few of them to take.
    """

    def __init__(self, rows: _Rows, curvature: _Curvature, drawn: Tensor):
        self.rows, self.curvature, self.drawn, self.iterations = rows, curvature, drawn, 0
        self.deviation = torch.zeros_like(drawn)

    @property
    def parameters(self) -> tuple[Tensor, Tensor]:
        weight = self.deviation[:, :-1] / self.curvature.unit
        weight.diagonal().add_(self.curvature.scale)
        return weight, self.deviation[:, -1]

    def to_optimum(self, ridge: float, *, precision: float = 1e-5) -> None:
        from scipy.optimize import minimize

        c = self.curvature
        step = (c.of_classes[:, None] * c.of_inputs + ridge).rsqrt()

        def place(scaled: Floats) -> Tensor:
            turned = torch.from_numpy(scaled).to(step).reshape(step.shape) * step
            return torch.mm(c.to_classes, torch.mm(turned, c.to_inputs.T))

        def objective(scaled: Floats) -> tuple[float, Floats]:
            self.deviation = place(scaled)
            nll, slope = self.rows.nll_and_slope(*self.parameters)
            slope[:, :-1] /= c.unit
            slope += ridge * self.drawn * self.deviation
            penalty = ridge / 2 * float((self.drawn * self.deviation.square()).sum())
            turned = (c.to_classes.T @ slope @ c.to_inputs) * step
            return nll + penalty, turned.view(-1).cpu().numpy()

        start = ((c.to_classes.T @ self.deviation @ c.to_inputs) / step).view(-1).cpu().numpy()
        found = minimize(objective, start, jac=True, method="L-BFGS-B", options={"ftol": precision, "maxiter": 200})
        self.deviation = place(found.x)
        self.iterations += int(found.nfev)
