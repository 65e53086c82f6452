"""A number with its standard error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, inf, log, sqrt

import numpy as np

from assay._core.arrays import Floats, Labels
from assay.metrics.inference._intervals import Interval, student

OUTLYING = 0.05  # chance that any of so many variances is called one
ROUNDING = 1e-8  # differences that a model has from its own logits in another precision are none


@dataclass(frozen=True)
class Estimate:
    """A number with its standard error; `degrees` are those of Student's law of its studentized noise."""

    value: float
    error: float
    degrees: float

    def half(self, level: float = 0.975) -> float:
        """Half the width of an interval whose ends each fail with a chance of 1 - `level`."""
        return student(self.degrees, level) * self.error

    def interval(self, level: float = 0.975) -> Interval:
        return Interval(self.value - self.half(level), self.value + self.half(level))

    def p_value(self) -> float:
        """Two-sided, of the value being 0."""
        from scipy.special import stdtr

        if abs(self.value) < ROUNDING or self.error == 0:
            return 1.0
        return float(2 * stdtr(self.degrees, -abs(self.value) / self.error))


def mean_estimate(column: Floats) -> Estimate:
    """The mean of a column, of paired differences say."""
    n = len(column)
    error = float(column.std(ddof=1)) / sqrt(n) if n > 1 else inf
    return Estimate(float(column.mean()), error, max(n - 1, 1))


def of_runs(value: float, *noise: Estimate) -> Estimate:
    """A value whose noise is the sum of independent ones: that between runs of a method, and that of the test set.

    Training another time would give other values, so the difference of two methods has the noise of both means over
    their runs besides the noise of the samples. Degrees of freedom are Satterthwaite's.
    """
    total = sum(one.error**2 for one in noise)
    degrees = total**2 / sum(one.error**4 / one.degrees for one in noise) if total > 0 else noise[-1].degrees
    return Estimate(value, sqrt(total), degrees)


def moderated(columns: Sequence[Floats]) -> list[Estimate]:
    """The mean of each column, with a variance that all columns lend each other strength for (Smyth 2004).

    A few runs of a method hardly tell how much runs differ. The variances of all methods have a common scale, and their
    spread, less that of variances of so few values, says how far each may be from it. A column that varies far more
    than the others allow lends nothing and keeps to its own (after Phipson et al. 2016).

    >>> alone, _, _ = moderated([np.array([1.0, 2.0]), np.array([5.0, 6.1]), np.array([8.0, 9.2])])
    >>> alone.value, alone.degrees
    (1.5, 2.0)
    """
    alone = [mean_estimate(column) for column in columns]
    own, variance = np.array([len(x) - 1.0 for x in columns]), np.array([x.var(ddof=1) for x in columns])
    alike = np.flatnonzero(variance > 0)
    if len(alike) < 3:
        return alone
    alike = _without_outliers(own, variance, alike)
    prior, common = _law(own[alike], variance[alike])
    prior = min(prior, len(alike) / 3)  # so few variances do not tell more about their law
    found = dict(enumerate(alone))
    for i in {*alike.tolist(), *np.flatnonzero(variance == 0).tolist()}:
        shared = (own[i] * variance[i] + prior * common) / (own[i] + prior)
        found[i] = Estimate(alone[i].value, sqrt(shared / (own[i] + 1)), float(own[i] + prior))
    return list(found.values())


def _without_outliers(own: Floats, variance: Floats, alike: Labels) -> Labels:
    """Columns whose variances may follow one law: the largest is left out while the others make it too unlikely."""
    from scipy.special import fdtrc

    while len(alike) > 3:
        top = alike[np.argmax(variance[alike])]
        rest = alike[alike != top]
        prior, common = _law(own[rest], variance[rest])
        chance = fdtrc(own[top], min(prior, own[rest].sum()), variance[top] / common)
        if chance * len(alike) >= OUTLYING:
            break
        alike = rest
    return alike


def _law(own: Floats, variance: Floats) -> tuple[float, float]:
    """Of variances of `own` degrees of freedom, the degrees and the scale of the law of their true values."""
    from scipy.special import digamma, polygamma

    half = own / 2
    logs = np.log(variance) - digamma(half) + np.log(half)  # each is off from that of the truth by noise alone
    excess = float(logs.var(ddof=1) - polygamma(1, half).mean())
    if excess <= 0:
        return inf, float(own @ variance / own.sum())
    prior = 2 * _inverse_trigamma(excess)
    return prior, exp(logs.mean() + digamma(prior / 2) - log(prior / 2))


def _inverse_trigamma(y: float) -> float:
    """Newton's method on 1 / trigamma, which is convex and nearly straight."""
    from scipy.special import polygamma

    x = 0.5 + 1 / y
    for _ in range(50):
        value = float(polygamma(1, x))
        step = value * (1 - value / y) / float(polygamma(2, x))
        x += step
        if abs(step) < 1e-10 * x:
            break
    return x
