"""On calibration of modern neural networks (Guo, Pleiss, Sun & Weinberger, ICML 2017): vector scaling.

softmax(w z + b), a weight and a shift for each class, drawn towards temperature scaling by a ridge whose strength is
chosen by cross-validation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from assay._core.arrays import Array, Floats, Labels, row_chunks
from assay.calibrators._cross import simplest
from assay.calibrators._cross_entropy import nll_in_place, residual_in_place
from assay.calibrators._temperature import temperature
from assay.calibrators._weights import weights_of
from assay.maps import Affine, Fit, features
from assay.predictions import Predictions

RIDGES = 10.0 ** np.arange(1, -7, -1)
FOLDS = 5
ROWS = 5_000  # by which the curvature, and with it the ridge, is judged
AT_ONCE = 1_000  # rows of a product of matrices


def vector(held_out: Predictions) -> Affine:
    """A weight and a shift for each class of least NLL plus ridge.

    Newton's first step from temperature scaling, taken without one fold at a time, tells which ridge is best; with the
    curvature found there, slopes alone lead to the optimum.
    """
    cooled = temperature(held_out)
    n, k = held_out.values.shape
    weights = weights_of(held_out)
    whole = _Rows(held_out.logits, held_out.labels, np.ones(n) if weights is None else weights)
    sample = whole[:: max(n // ROWS, 1)]
    # A step in w is measured by the spread of the logits, so that one ridge serves both w and b.
    spread = float(features(sample.x, False).std(dtype=np.float64))
    unit = np.repeat([1 / max(spread, 1e-30), 1.0], k)
    start = np.repeat([1 / cooled.t, 0.0], k)
    ridge, curvature = _ridge(sample, start, unit)
    deviation, iterations = np.zeros(2 * k), 0
    value, step = np.inf, np.full(2 * k, np.inf)
    while np.abs(step).max() > 1e-5 and iterations < 100:  # of a logit
        nll, slope = whole.nll_and_slope(start + unit * deviation)
        new = nll + ridge / 2 * float(deviation @ deviation)
        if new > value + 1e-9:  # curvature found elsewhere can lead too far
            step = step / 2
            deviation = deviation + step
        else:
            value = new
            step = curvature.step(slope * unit + ridge * deviation, ridge)
            deviation = deviation - step
        iterations += 1
    weight, bias = (start + unit * deviation).reshape(2, k)
    fit = Fit("NLL", cooled.fit.before, nll, cooled.fit.iterations + iterations, n)
    return Affine(fit, weight, bias, of_log_probabilities=held_out.normalized)


def _ridge(sample: _Rows, start: Floats, unit: Floats) -> tuple[float, _Curvature]:
    """The strongest ridge within a standard error of the least cross-validated NLL; the curvature of the whole.

    Curvature depends on the probabilities alone, so that of all folds serves for each.
    """
    folds = [sample[fold::FOLDS] for fold in range(min(FOLDS, len(sample.x)))]
    slopes = [fold.count * fold.nll_and_slope(start)[1] for fold in folds]
    size, direction = np.linalg.eigh(sample.hessian(start) * unit * unit[:, None])
    curvature = _Curvature(size.clip(0), direction)
    nll = np.zeros((len(folds), len(RIDGES)))
    for row, fold, slope in zip(nll, folds, slopes, strict=True):
        rest = sample.count - fold.count if len(folds) > 1 else 1.0
        without = (sum(slopes) - slope) / rest * unit
        row[:] = [fold.nll(start - unit * curvature.step(without, ridge)) for ridge in RIDGES]
    return float(RIDGES[simplest(nll)]), curvature


@dataclass(frozen=True, eq=False)
class _Curvature:
    size: Floats  # [2 k] eigenvalues
    direction: Floats  # [2 k, 2 k]

    def step(self, slope: Floats, ridge: float) -> Floats:
        """(H + ridge)^-1 slope."""
        return np.asarray(self.direction @ (self.direction.T @ slope / (self.size + ridge)))


@dataclass(frozen=True, eq=False)
class _Rows:
    """Logits and labels, and the mean NLL of softmax(w x + b) on them with its derivatives by (w, b)."""

    x: Array  # [n, k]
    labels: Labels  # [n]
    weights: Floats  # [n]

    def __getitem__(self, rows: slice) -> _Rows:
        return _Rows(self.x[rows], self.labels[rows], self.weights[rows])

    @cached_property
    def count(self) -> float:
        return float(self.weights.sum())

    def nll(self, parameters: Floats) -> float:
        total = 0.0
        for rows in row_chunks(*self.x.shape):
            _, z = self._at(rows, parameters)
            total += float(self.weights[rows] @ nll_in_place(z, self.labels[rows])[0])
        return total / self.count

    def nll_and_slope(self, parameters: Floats) -> tuple[float, Floats]:
        nll, slope = 0.0, np.zeros((2, self.x.shape[1]))
        for rows in row_chunks(*self.x.shape):
            x, z = self._at(rows, parameters)
            nll += residual_in_place(z, self.labels[rows], self.weights[rows])
            ones = np.ones(len(z), dtype=z.dtype)
            slope[1] += ones @ z
            z *= x
            slope[0] += ones @ z
        return nll / self.count, slope.reshape(-1) / self.count

    def hessian(self, parameters: Floats) -> Floats:
        """Mean of J' (diag p - p p') J, where J takes (w, b) to the logits."""
        n, k = self.x.shape
        i = np.arange(k)
        out: Floats = np.zeros((2 * k, 2 * k))
        for start in range(0, n, AT_ONCE):
            rows = slice(start, start + AT_ONCE)
            x, p = self._at(rows, parameters)
            p /= nll_in_place(p, self.labels[rows])[1][:, None]
            px = p * x
            both, own = np.concatenate([px, p], 1), self.weights[rows].astype(p.dtype)
            out -= (both.T * own) @ both
            for row, column, weight in ((i, i, px * x), (i, k + i, px), (k + i, i, px), (k + i, k + i, p)):
                out[row, column] += own @ weight
        return np.asarray(out / self.count)

    def _at(self, rows: slice, parameters: Floats) -> tuple[Array, Array]:
        """What is multiplied, and w x + b."""
        x = features(self.x[rows], False)
        weight, bias = parameters.astype(x.dtype).reshape(2, -1)
        z = x * weight
        z += bias
        return x, z
