"""Maps of the confidence in the predicted class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import torch
from torch import Tensor

from assay.maps._kinds import ConfidenceMap

CLIP = 2.0**-53  # log-odds are of a confidence so far from 0 and 1 at least: 1 counts as the number before it


@dataclass(frozen=True, eq=False)
class Steps(ConfidenceMap):
    """One value for each bin (lo, hi]; below the first and above the last edge theirs hold."""

    upper: tuple[float, ...]  # right edges
    value: tuple[float, ...]

    @property
    def keeps_ranking(self) -> bool:
        return False

    def __call__(self, confidence: Tensor) -> Tensor:
        return self.by_row([self], confidence.unsqueeze(0)).squeeze(0)

    @staticmethod
    def by_row(maps: Sequence[Steps], rows: Tensor) -> Tensor:
        """Each of the rows [k, n] by steps of its own."""
        upper = _table(rows, [mapping.upper[:-1] for mapping in maps], end=inf)
        value = _table(rows, [mapping.value for mapping in maps])
        return value.gather(1, _place(rows.double(), upper)).to(rows.dtype)

    def __str__(self) -> str:
        return f"{len(self.value)} steps from {min(self.value):.3f} to {max(self.value):.3f}"


@dataclass(frozen=True, eq=False)
class Curve(ConfidenceMap):
    """Straight lines between points (x, y), flat beyond the ends."""

    x: tuple[float, ...]  # rising
    y: tuple[float, ...]

    @property
    def keeps_ranking(self) -> bool:
        rises = all(low < high for low, high in zip(self.y, self.y[1:], strict=False))
        return rises and self.x[0] <= 0 and self.x[-1] >= 1

    def __call__(self, confidence: Tensor) -> Tensor:
        return self.by_row([self], confidence.unsqueeze(0)).squeeze(0)

    @staticmethod
    def by_row(maps: Sequence[Curve], rows: Tensor) -> Tensor:
        """Each of the rows [k, n] by a curve of its own."""
        # A point at infinity is never reached, and makes two of a single one.
        x = _table(rows, [(*mapping.x, inf) for mapping in maps], end=inf)
        y = _table(rows, [(*mapping.y, mapping.y[-1]) for mapping in maps])
        ends = _table(rows, [(mapping.x[0], mapping.x[-1]) for mapping in maps])
        c = rows.double().clamp(ends[:, :1], ends[:, 1:])
        right = _place(c, x).clamp(min=1)
        (x0, x1), (y0, y1) = ((table.gather(1, right - 1), table.gather(1, right)) for table in (x, y))
        return torch.lerp(y0, y1, (c - x0) / (x1 - x0)).to(rows.dtype)

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
        c = confidence.double().clamp(CLIP, 1 - CLIP)
        return torch.sigmoid(self.a * c.log() - self.b * torch.log1p(-c) + self.m).to(confidence.dtype)

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


def _table(like: Tensor, rows: list[tuple[float, ...]], *, end: float | None = None) -> Tensor:
    """One row for each, the shorter ones continued by `end` or by their last."""
    width = max(map(len, rows))
    full = [(*row, *[row[-1] if end is None else end] * (width - len(row))) for row in rows]
    return torch.tensor(full, dtype=torch.float64, device=like.device)


def _place(x: Tensor, edges: Tensor) -> Tensor:
    """How many of the edges of its row [k, m] lie below each x [k, n]."""
    if torch.compiler.is_exporting():  # ONNX has no search
        return (x.unsqueeze(2) > edges.unsqueeze(1)).sum(2)
    return torch.searchsorted(edges, x)
