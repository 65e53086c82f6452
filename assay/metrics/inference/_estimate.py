"""A number with its standard error."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt

import numpy as np

from assay._core.arrays import Floats
from assay.metrics.inference._intervals import Interval, student

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


def of_runs(a: Floats, b: Floats, paired: list[Estimate]) -> Estimate:
    """Difference of two methods from a metric of several runs of each, and the paired estimate of each pair of runs.

    Training another time would give other values: their variance between runs is added to that of the test set, which
    the mean over runs has no more of than a single pair.
    """
    parts = [(float(x.var(ddof=1)) / len(x), len(x) - 1.0) for x in (a, b)]
    parts.append((float(np.mean([one.error**2 for one in paired])), min(one.degrees for one in paired)))
    total = sum(variance for variance, _ in parts)
    degrees = total**2 / sum(variance**2 / own for variance, own in parts) if total > 0 else parts[-1][1]
    return Estimate(float(b.mean() - a.mean()), sqrt(total), degrees)
