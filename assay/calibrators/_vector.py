"""On calibration of modern neural networks (Guo, Pleiss, Sun & Weinberger, ICML 2017): vector scaling.

softmax(w z + b), a weight and a shift for each class, drawn towards temperature scaling by a ridge whose strength is
chosen by cross-validation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from assay._core import arrays
from assay.calibrators._cross import simplest
from assay.calibrators._temperature import temperature
from assay.maps import Affine, Fit, features
from assay.metrics import Floats
from assay.predictions import Predictions

RIDGES = 10.0 ** np.arange(1, -7, -1)
FOLDS = 5
ROWS = 5_000  # by which the curvature, and with it the ridge, is judged


def vector(held_out: Predictions) -> Affine:
    """A weight and a shift a class of least NLL plus ridge.

    Newton's first step from temperature scaling, taken without one fold at a time, tells which ridge is best; with the
    curvature found there the slope alone leads to the optimum.
    """
    cooled = temperature(held_out)
    k = held_out.n_classes
    sample = held_out[:: max(len(held_out) // ROWS, 1)]
    # A step in w is measured by the spread of the logits, so that one ridge serves both w and b.
    unit = np.repeat([1 / max(float(features(sample.logits, False).double().std()), 1e-30), 1.0], k)
    start = np.repeat([1 / cooled.t, 0.0], k)
    ridge, curvature = _ridge(sample, start, unit)
    deviation, iterations = np.zeros(2 * k), 0
    value, step = np.inf, np.full(2 * k, np.inf)
    while np.abs(step).max() > 1e-5 and iterations < 100:  # of a logit
        here = _sums(held_out, start + unit * deviation, curved=False)
        new = here.nll / here.n + ridge / 2 * float(deviation @ deviation)
        if new > value + 1e-9:  # curvature found elsewhere can lead too far
            step = step / 2
            deviation = deviation + step
        else:
            value = new
            step = curvature.step(here.slope * unit / here.n + ridge * deviation, ridge)
            deviation = deviation - step
        iterations += 1
    weight, bias = torch.from_numpy((start + unit * deviation).reshape(2, k))
    fit = Fit("NLL", cooled.fit.before, here.nll / here.n, cooled.fit.iterations + iterations, len(held_out))
    return Affine(fit, weight, bias, of_log_probabilities=False)


def _ridge(sample: Predictions, start: Floats, unit: Floats) -> tuple[float, _Curvature]:
    """The strongest ridge within a standard error of the least cross-validated NLL; the curvature of the whole.

    Curvature depends on the probabilities alone, so that of all folds serves for each.
    """
    folds = [sample[fold::FOLDS] for fold in range(min(FOLDS, len(sample)))]
    parts = [_sums(fold, start, curved=True) for fold in folds]
    n, slope, hessian = sum(p.n for p in parts), sum(p.slope for p in parts), sum(p.hessian for p in parts)
    size, direction = torch.linalg.eigh(torch.from_numpy(hessian / n * unit * unit[:, None]))
    curvature = _Curvature(size.numpy().clip(0), direction.numpy())
    nll = np.zeros((len(folds), len(RIDGES)))
    for row, fold, part in zip(nll, folds, parts, strict=True):
        without = (slope - part.slope) / max(n - part.n, 1) * unit
        for i, ridge in enumerate(RIDGES):
            place = start - unit * curvature.step(without, ridge)
            row[i] = _sums(fold, place, curved=False, sloped=False).nll / part.n
    return float(RIDGES[simplest(nll)]), curvature


@dataclass(frozen=True)
class _Curvature:
    size: Floats  # [2 k] eigenvalues
    direction: Floats  # [2 k, 2 k]

    def step(self, slope: Floats, ridge: float) -> Floats:
        """(H + ridge)^-1 slope."""
        return self.direction @ (self.direction.T @ slope / (self.size + ridge))


@dataclass(frozen=True)
class _Sums:
    """NLL, and its derivatives by w and b, summed over rows."""

    n: int
    nll: float
    slope: Floats  # [2 k]; zeros where it was not asked for
    hessian: Floats  # [2 k, 2 k]; the same


def _sums(rows: Predictions, parameters: Floats, *, curved: bool, sloped: bool = True) -> _Sums:
    n, k = rows.values.shape
    nll, slope, hessian = 0.0, torch.zeros(2, k, dtype=torch.float64), torch.zeros(2 * k, 2 * k, dtype=torch.float64)
    for chunk in arrays.row_chunks(n, k, device=rows.values.device):
        x = features(rows[chunk].logits, False)
        x = x.float() if x.element_size() < 4 else x
        label = rows.labels[chunk][:, None]
        weight, bias = torch.from_numpy(parameters).to(x).view(2, k)
        logits = torch.addcmul(bias, x, weight)
        total = logits.logsumexp(1, keepdim=True)
        nll += float((total.double() - logits.gather(1, label)).sum())
        if not sloped:
            continue
        p = logits.sub_(total).exp_()
        if curved:
            hessian += _hessian(x, p).cpu()
        p.scatter_add_(1, label, torch.full_like(label, -1, dtype=p.dtype))
        slope += torch.stack([(p * x).sum(0, dtype=torch.float64), p.sum(0, dtype=torch.float64)]).cpu()
    return _Sums(n, nll, slope.view(-1).numpy(), hessian.numpy())


def _hessian(x: Tensor, p: Tensor) -> Tensor:
    """Sum over rows of J' (diag p - p p') J, where J takes (w, b) to the logits."""
    both = torch.cat([p * x, p], 1)
    out = -(both.T @ both).double()
    k = p.shape[1]
    for i, j, weight in ((0, 0, p * x * x), (0, k, p * x), (k, 0, p * x), (k, k, p)):
        out[i : i + k, j : j + k].diagonal().add_(weight.sum(0, dtype=torch.float64))
    return out
