"""Maps of the confidence in the predicted class."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from assay.maps._kinds import ConfidenceMap


@dataclass(frozen=True, eq=False)
class Steps(ConfidenceMap):
    """One value for each bin (lo, hi]; below the first and above the last edge theirs hold."""

    upper: tuple[float, ...]  # right edges
    value: tuple[float, ...]

    @property
    def keeps_ranking(self) -> bool:
        return False

    def __call__(self, confidence: Tensor) -> Tensor:
        upper, value = _columns(confidence, self.upper[:-1], self.value)
        return value[torch.bucketize(confidence.double(), upper)].to(confidence.dtype)

    def __str__(self) -> str:
        return f"{len(self.value)} steps from {min(self.value):.3f} to {max(self.value):.3f}"


@dataclass(frozen=True, eq=False)
class Curve(ConfidenceMap):
    """Straight lines between points (x, y), flat beyond the ends."""

    x: tuple[float, ...]  # rising
    y: tuple[float, ...]

    @property
    def keeps_ranking(self) -> bool:
        return len(self.x) > 1 and all(low < high for low, high in zip(self.y, self.y[1:], strict=False))

    def __call__(self, confidence: Tensor) -> Tensor:
        x, y = _columns(confidence, self.x, self.y)
        if len(self.x) == 1:
            return y.expand(confidence.shape).to(confidence.dtype)
        c = confidence.double().clamp(self.x[0], self.x[-1])
        right = torch.bucketize(c, x).clamp(1, len(self.x) - 1)
        share = (c - x[right - 1]) / (x[right] - x[right - 1])
        return torch.lerp(y[right - 1], y[right], share).to(confidence.dtype)

    def __str__(self) -> str:
        return f"a curve through {len(self.x)} points from {self.y[0]:.3f} to {self.y[-1]:.3f}"


@dataclass(frozen=True, eq=False)
class Logistic(ConfidenceMap):
    """sigmoid(a ln c - b ln(1 - c) + m); with a = b Platt scaling of the log-odds, else beta calibration."""

    a: float
    b: float
    m: float

    @property
    def keeps_ranking(self) -> bool:
        return self.a > 0 and self.b > 0

    def __call__(self, confidence: Tensor) -> Tensor:
        c = confidence.double()
        # 0 log 0 = 0: a side whose coefficient is 0 plays no part, also where its logarithm is infinite.
        up, down = (c.log() * self.a if self.a else 0 * c), (torch.log1p(-c) * self.b if self.b else 0 * c)
        return torch.sigmoid(up - down + self.m).to(confidence.dtype)

    def __str__(self) -> str:
        sign = "-" if self.m < 0 else "+"
        return f"sigmoid({self.a:.3g} ln c - {self.b:.3g} ln(1 - c) {sign} {abs(self.m):.3g})"


@dataclass(frozen=True, eq=False)
class ScoreLogistic(ConfidenceMap):
    """sigmoid(a s + m): Platt scaling of a score that is no probability."""

    a: float
    m: float

    @property
    def keeps_ranking(self) -> bool:
        return self.a > 0

    def __call__(self, confidence: Tensor) -> Tensor:
        return torch.sigmoid(confidence.double() * self.a + self.m).to(confidence.dtype)

    def __str__(self) -> str:
        return f"sigmoid({self.a:.3g} s {self.m:+.3g})"


def _columns(like: Tensor, *columns: tuple[float, ...]) -> list[Tensor]:
    return [torch.tensor(column, dtype=torch.float64, device=like.device) for column in columns]
