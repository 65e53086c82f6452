"""Maps of the confidence in the predicted class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from assay._core.arrays import Array, Floats
from assay.maps._kinds import ConfidenceMap, calculable, probabilities, require, rising

CLIP = 2.0**-53  # log-odds are taken of a confidence at least this far from 0 and 1


@dataclass(frozen=True, eq=False)
class Steps(ConfidenceMap):
    """One value for each bin (lo, hi]; the first and last also hold outside the edges."""

    upper: Floats  # [b] right edges, rising
    value: Floats  # [b]

    def __post_init__(self) -> None:
        require(rising(self.upper), self, "edges that rise")
        require(self.value.shape == self.upper.shape and probabilities(self.value), self, "a probability for each edge")

    @property
    def keeps_ranking(self) -> bool:
        return False

    def __call__(self, confidence: Array) -> Array:
        return _like(confidence, self.value[np.searchsorted(self.upper[:-1], confidence)])

    def __str__(self) -> str:
        return f"{len(self.value)} steps from {self.value.min():.3f} to {self.value.max():.3f}"


@dataclass(frozen=True, eq=False)
class Curve(ConfidenceMap):
    """Straight lines between points (x, y), flat beyond the ends."""

    x: Floats  # [m] rising
    y: Floats  # [m]

    def __post_init__(self) -> None:
        require(rising(self.x), self, "points whose x rises")
        require(self.y.shape == self.x.shape and probabilities(self.y), self, "a probability for each x")

    @property
    def keeps_ranking(self) -> bool:
        return bool((np.diff(self.y) > 0).all() and self.x[0] <= 0 and self.x[-1] >= 1)

    def __call__(self, confidence: Array) -> Array:
        return _like(confidence, np.interp(confidence, self.x, self.y))

    def __str__(self) -> str:
        return f"a curve through {len(self.x)} points from {self.y[0]:.3f} to {self.y[-1]:.3f}"


@dataclass(frozen=True, eq=False)
class Logistic(ConfidenceMap):
    """sigmoid(a ln c - b ln(1 - c) + m): Platt scaling of the log-odds if a = b, else beta calibration."""

    a: float
    b: float
    m: float

    def __post_init__(self) -> None:
        require(calculable(self.a, self.b, self.m), self, "numbers to calculate with")

    @property
    def keeps_ranking(self) -> bool:
        return self.a > 0 and self.b > 0

    def __call__(self, confidence: Array) -> Array:
        c = np.clip(confidence, CLIP, 1 - CLIP, dtype=np.float64)
        return _like(confidence, _sigmoid(self.a * np.log(c) - self.b * np.log1p(-c) + self.m))

    def __str__(self) -> str:
        sign = "-" if self.m < 0 else "+"
        return f"sigmoid({self.a:.3g} ln c - {self.b:.3g} ln(1 - c) {sign} {abs(self.m):.3g})"


@dataclass(frozen=True, eq=False)
class ScoreLogistic(ConfidenceMap):
    """sigmoid(a s + m): Platt scaling of a score that is no probability."""

    a: float
    m: float

    def __post_init__(self) -> None:
        require(calculable(self.a, self.m), self, "numbers to calculate with")

    @property
    def keeps_ranking(self) -> bool:
        return self.a > 0

    def __call__(self, confidence: Array) -> Array:
        return _like(confidence, _sigmoid(np.multiply(confidence, self.a, dtype=np.float64) + self.m))

    def __str__(self) -> str:
        return f"sigmoid({self.a:.3g} s {self.m:+.3g})"


def _sigmoid(x: Floats) -> Floats:
    """Never quite 0 or 1, so that no loss is infinite."""
    with np.errstate(over="ignore"):  # 1 / inf is 0
        return np.clip(1 / (1 + np.exp(-x)), CLIP, 1 - CLIP)


def _like(given: Array, found: Floats) -> Array:
    """`found` in the precision of what was given, at least float32."""
    return found.astype(np.result_type(given, np.float32), copy=False)
