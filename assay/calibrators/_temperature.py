"""On calibration of modern neural networks (Guo, Pleiss, Sun & Weinberger, ICML 2017): temperature scaling.

By NLL, or by ECE or AdaECE on a grid as in wang2021 and mukhoti2020; fixed as in singh2021; or chosen on the test set
itself, as zhu2022 and wang2021 do to show what the best choice could reach.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt

import numpy as np
import torch
from torch import Tensor

from assay import metrics
from assay._core import arrays
from assay._core.arrays import InputError
from assay.maps import Fit, Temperature
from assay.predictions import Outcomes, Predictions

SPAN = 1e6  # temperatures are looked for from 1 / SPAN to SPAN times the spread of the logits
FAR = -1e12
SUBSAMPLE = 2**20  # elements that decide where the search over all of them starts
SMALL = 2**19  # elements up to which every look is in double precision; beyond, only those near the optimum


def temperature(held_out: Predictions) -> Temperature:
    """The temperature of least NLL.

    NLL is convex in b = 1 / t, so the sign of its slope brackets the minimum, and Halley's steps within the bracket
    find it from any start: no learning rate, no number of epochs. Where there is no finite optimum, as when every
    answer is right, the bound is returned with a warning.

    >>> import assay.examples
    >>> round(temperature(assay.examples.load(split="held_out")).t, 3)
    2.744
    """
    impossible = (held_out.normalized) & (held_out.values.gather(1, held_out.labels[:, None]).squeeze(1) == 0)
    arrays.refuse(held_out.labels, impossible, "the true class {} has probability 0, which no temperature can mend")
    unit = 1 / _spread(held_out)
    start, rows = unit, max(SUBSAMPLE // held_out.n_classes, 1)
    if len(held_out) > 2 * rows:
        start = _least_nll(held_out[:: len(held_out) // rows], unit, unit).b
    found = _least_nll(held_out, start, unit)
    if found.at_bound:
        warnings.warn("no finite temperature is best for these predictions; the bound is returned", stacklevel=2)
    fit = Fit("NLL", _nll(held_out, 1.0), found.nll, found.iterations, len(held_out), found.at_bound)
    return Temperature(fit, 1 / found.b, held_out.n_classes)


def temperature_by_ece(held_out: Predictions, *, step: float = 0.01, highest: float = 10.0) -> Temperature:
    """The temperature of least ECE (15 equal-width bins) on the grid step, 2 step, ..., highest; the first best wins.

    wang2021 has steps of .01, mukhoti2020 of .1.
    """
    return _on_grid(held_out, "ECE", lambda o: metrics.ece(metrics.equal_width(o)), step, highest)


def temperature_by_ada_ece(held_out: Predictions, *, step: float = 0.1, highest: float = 10.0) -> Temperature:
    """The temperature of least AdaECE (15 equal-mass bins) on a grid, as in mukhoti2020 table 2."""
    return _on_grid(held_out, "AdaECE", lambda o: metrics.ece(metrics.equal_mass(metrics.ranking(o))), step, highest)


def temperature_optimal_on_test(
    test: Predictions, loss: Callable[[Outcomes], float], *, step: float = 0.01, highest: float = 10.0
) -> Temperature:
    """The temperature that is best on the very samples it is judged on: a bound for figures, never a method.

    `loss` is lower for better: zhu2022's optimum for failure prediction is that of `aurc(ranking(o))`.
    """
    return _on_grid(test, "loss on the test set itself", loss, step, highest)


def fixed_temperature(held_out: Predictions, *, t: float = 1.5) -> Temperature:
    """A temperature that is not fitted: singh2021 takes 1.5 for CIFAR and 1.1 for ImageNet."""
    if not t > 0:
        raise ValueError(f"t must be > 0, got {t}")
    fit = Fit("NLL", _nll(held_out, 1.0), _nll(held_out, 1 / t), 0, len(held_out))
    return Temperature(fit, t, held_out.n_classes)


def _on_grid(
    held_out: Predictions, objective: str, loss: Callable[[Outcomes], float], step: float, highest: float
) -> Temperature:
    at = outcomes_at(held_out)
    grid = np.round(np.arange(1, round(highest / step) + 1) * step, 9)
    losses = [loss(at(t)) for t in grid]
    if np.isnan(losses).all():
        raise InputError(f"{objective} is not defined on these rows, at any temperature")
    best = int(np.nanargmin(losses))
    fit = Fit(objective, loss(at(1.0)), losses[best], len(grid), len(held_out), best == len(grid) - 1)
    return Temperature(fit, float(grid[best]), held_out.n_classes)


def outcomes_at(held_out: Predictions) -> Callable[[float], Outcomes]:
    """The confidence at a temperature, for looking at many of them."""
    below, axis = _below(held_out, double=False)
    correct = held_out.outcomes().correct
    n, k = held_out.values.shape

    def at(t: float) -> Outcomes:
        confidence = torch.empty(n, dtype=torch.float64, device=below.device)
        for rows in arrays.row_chunks(n, k, device=below.device):
            part = below[rows] if axis else below[:, rows]
            confidence[rows] = 1 / (part * (1 / t)).exp_().sum(axis, dtype=torch.float64)
        return Outcomes(confidence, correct)

    return at


@dataclass(frozen=True)
class _Optimum:
    b: float
    nll: float
    iterations: int
    at_bound: bool


def _least_nll(held_out: Predictions, start: float, unit: float) -> _Optimum:
    """Minimize NLL over b = 1 / t between unit / SPAN and unit SPAN, in the fewest looks at the data."""
    low, high, b = unit / SPAN, unit * SPAN, start
    double = held_out.values.numel() <= SMALL
    for iteration in range(1, 200):
        at = _slopes(held_out, b, double)
        low, high = (low, b) if at.first > 0 else (b, high)
        curvature = 2 * at.second**2 - at.first * at.third
        step = -2 * at.first * at.second / curvature if curvature > 0 else np.inf
        # Halley's steps settle within a few; where there is no optimum they creep, and only halving gets to the bound.
        if (low < b + step < high or step == 0) and (iteration < 12 or iteration % 2):
            b += step
            # Convergence is cubic: once a step is this small, what is left is below the resolution of doubles.
            if abs(step) <= 1e-4 * b and double:
                return _Optimum(b, at.nll + at.first * step / 2, iteration, False)
            double = double or abs(step) <= 0.05 * b
        elif high < low * (1 + 1e-9):
            return _Optimum(b, at.nll, iteration, True)
        else:
            b = sqrt(low * high)
    raise AssertionError("a bracket halved two hundred times")


@dataclass(frozen=True)
class _Slopes:
    """NLL and its derivatives by b = 1 / t."""

    nll: float
    first: float
    second: float
    third: float


def _slopes(held_out: Predictions, b: float, double: bool) -> _Slopes:
    """One pass in cache-sized chunks: moments of the logits under softmax(b z)."""
    n, k = held_out.values.shape
    totals = torch.zeros(4, dtype=torch.float64)
    for rows in arrays.row_chunks(n, k, device=held_out.values.device):
        below, axis = _below(held_out[rows], double=double)
        weight = (below * b).exp_()
        total = weight.sum(axis, dtype=torch.float64)
        m1, m2, m3 = (weight.mul_(below).sum(axis, dtype=torch.float64) / total for _ in range(3))
        label = below.gather(axis, held_out.labels[rows].unsqueeze(axis)).squeeze(axis).double()
        variance = m2 - m1 * m1
        sums = (
            (total.log() - b * label).sum(),
            (m1 - label).sum(),
            variance.sum(),
            (m3 - m1 * (m2 + 2 * variance)).sum(),
        )
        totals += torch.stack(sums).cpu()
    return _Slopes(*(totals / n).tolist())


def _nll(held_out: Predictions, b: float) -> float:
    n, k = held_out.values.shape
    total = 0.0
    for rows in arrays.row_chunks(n, k, device=held_out.values.device):
        below, axis = _below(held_out[rows], double=False)
        label = below.gather(axis, held_out.labels[rows].unsqueeze(axis)).double()
        total += float((below * b).exp_().sum(axis, dtype=torch.float64).log().sum() - b * label.sum())
    return total / n


def _below(held_out: Predictions, *, double: bool) -> tuple[Tensor, int]:
    """How far each logit lies below the highest of its row, and the axis of the classes."""
    z, axis = arrays.laid_out(held_out.logits)
    z = z.double() if double else z
    # A probability of 0 lies at -inf; from so far below its weight is 0 as well, but 0 times it is no nan.
    return (z - z.amax(axis, keepdim=True)).clamp_(min=FAR), axis


def _spread(held_out: Predictions) -> float:
    """Mean distance of the logits from the highest of their row, in a sample of rows; 1 where all are equal."""
    below, _ = _below(held_out[:: max(len(held_out) // 1000, 1)], double=True)
    return -float(below[below > FAR].mean()) or 1.0
