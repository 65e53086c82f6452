"""On calibration of modern neural networks (Guo, Pleiss, Sun & Weinberger, ICML 2017): temperature scaling.

By NLL, or by ECE or AdaECE on a grid as in wang2021 and mukhoti2020; fixed as in singh2021; or chosen on the test set
itself, as zhu2022 and wang2021 do to show what the best choice could reach.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from math import inf, sqrt
from typing import Any

import numpy as np

from assay import metrics
from assay._core import arrays, loops
from assay._core.arrays import Array, Floats, InputError, Labels
from assay.maps import Fit, Temperature
from assay.predictions import Outcomes, Predictions

SPAN = 1e6  # temperatures are searched from 1 / SPAN to SPAN times the spread of the logits
SUBSAMPLE = 2**20  # elements of the subsample that gives larger sets their start
SMALL = 2**19  # elements up to which logits are converted to float64


def temperature(held_out: Predictions) -> Temperature:
    """The temperature of least NLL.

    NLL is convex in b = 1 / t, so the sign of its slope brackets the minimum, and Halley's steps within the bracket
    find it from any start: there is no learning rate and no number of epochs. Without a finite optimum, as when every
    answer is right, the bound is returned with a warning.

    >>> import assay.examples
    >>> round(temperature(assay.examples.load(split="held_out")).t, 3)
    2.744
    """
    refuse_impossible(held_out)
    z, labels, weights = logits_of(held_out), held_out.labels, held_out.weights
    z = z.astype(np.float64) if z.size <= SMALL else z
    unit = 1 / spread(z)
    start, every = unit, z.size // SUBSAMPLE
    if every > 1:
        some = weights if weights is None else weights[::every]
        part = np.ascontiguousarray(z[::every])
        start = least_nll(lambda b: _moments(part, labels[::every], some, b), z.dtype, unit, unit).b
    found = least_nll(lambda b: _moments(z, labels, weights, b), z.dtype, start, unit)
    if found.at_bound:
        warnings.warn("no finite temperature is best for these predictions; the bound is returned", stacklevel=2)
    before = float(_moments(z, labels, weights, 1.0)[0])
    fit = Fit("NLL", before, found.nll, found.iterations, len(held_out), found.at_bound)
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
    """The temperature that is best on the very samples it is judged on: a bound for figures, not a method.

    `loss` is lower for better: zhu2022's optimum for failure prediction is that of `aurc(ranking(o))`.
    """
    return _on_grid(test, "loss on the test set itself", loss, step, highest)


def fixed_temperature(held_out: Predictions, *, t: float = 1.5) -> Temperature:
    """A temperature that is not fitted: singh2021 takes 1.5 for CIFAR and 1.1 for ImageNet."""
    if not t > 0:
        raise ValueError(f"t must be > 0, got {t}")
    z = logits_of(held_out)
    before, after = (float(_moments(z, held_out.labels, held_out.weights, b)[0]) for b in (1.0, 1 / t))
    return Temperature(Fit("NLL", before, after, 0, len(held_out)), t, held_out.n_classes)


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
    """A function from a temperature to confidence and correctness, to try many temperatures."""
    z, correct = logits_of(held_out), held_out.outcomes().correct

    def at(t: float) -> Outcomes:
        confidence = np.empty(len(z))
        loops.confidence_at(z, 1 / t, confidence)
        return Outcomes(confidence, correct, weights=held_out.weights)

    return at


def refuse_impossible(held_out: Predictions) -> None:
    """Refuse true classes of probability 0, whose NLL is infinite at any temperature."""
    if held_out.normalized:
        impossible = np.take_along_axis(held_out.values, held_out.labels[:, None], 1)[:, 0] == 0
        arrays.refuse(held_out.labels, impossible, "the true class {} has probability 0, which no temperature can mend")


def logits_of(held_out: Predictions) -> Array:
    """Logits in one piece, for many passes over them."""
    return np.ascontiguousarray(arrays.single(held_out.logits))


def spread(z: Array) -> float:
    """Mean distance of the logits from the highest of their row, in a sample of rows; 1 if all are equal."""
    some = z[:: max(len(z) // 1000, 1)].astype(np.float64)
    below = some.max(1, keepdims=True) - some
    return float(below[below < inf].mean()) or 1.0


@dataclass(frozen=True)
class Optimum:
    """Where NLL is least: b = 1 / t, and how it was found."""

    b: float
    nll: float
    iterations: int
    at_bound: bool


def _moments(z: Array, labels: Labels, weights: Floats | None, b: float) -> Floats:
    """NLL at b = 1 / t and its three derivatives, means over the rows by their weights."""
    if weights is None:
        return loops.moments(z, labels, b)
    sums = np.zeros(4)
    for rows in np.array_split(np.arange(len(z)), max(z.size // SMALL, 1)):
        answer = z[rows, labels[rows]].astype(np.float64)
        x = z[rows].astype(np.float64) - z[rows].max(1, keepdims=True)
        p = np.exp(b * x)
        total = p.sum(1)
        p /= total[:, None]
        x[p == 0] = 0  # of logits at -inf
        mean = np.einsum("nk,nk->n", p, x)
        x -= mean[:, None]
        second, third = np.einsum("nk,nk->n", p, x**2), np.einsum("nk,nk->n", p, x**3)
        answer -= z[rows].max(1)
        sums += weights[rows] @ np.stack([np.log(total) - b * answer, mean - answer, second, third], 1)
    return sums / float(weights.sum())


def least_nll(moments: Callable[[float], Floats], of: np.dtype[Any], start: float, unit: float) -> Optimum:
    """Minimize NLL over b = 1 / t between unit / SPAN and unit SPAN, in as few passes over the data as possible.

    `moments` are NLL and its derivatives, from logits of the type `of`.
    """
    low, high, b, close = unit / SPAN, unit * SPAN, start, 1 + sqrt(np.finfo(of).eps)
    for iteration in range(1, 200):
        b = float(of.type(b))  # the number that the logits are multiplied by
        nll, first, second, third = moments(b).tolist()
        low, high = (low, b) if first > 0 else (b, high)
        curvature = 2 * second**2 - first * third
        step = -2 * first * second / curvature if curvature > 0 else inf
        # Halley's steps converge in a few; without an optimum they creep, and only bisection reaches the bound.
        if (low < b + step < high or step == 0) and (iteration < 12 or iteration % 2):
            # Convergence is cubic: after a step this small, the error left is below the resolution of doubles.
            if abs(step) <= 1e-4 * b:
                return Optimum(b + step, nll + first * step / 2, iteration, False)
            b += step
        elif high < low * close:
            return Optimum(b, nll, iteration, True)
        else:
            b = sqrt(low * high)
    raise AssertionError("a bracket halved two hundred times")
