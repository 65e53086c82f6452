"""A number with its standard error."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt

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
