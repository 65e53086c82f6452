"""Binned calibration: one table of sums, from which every binned error is a line."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import sqrt

import torch
from torch import Tensor

from assay.metrics._ranking import Ranking
from assay.predictions import Outcomes


@dataclass(frozen=True, eq=False)
class Bins:
    """Sums over bins (lo, hi] of confidence; tables over the same edges merge by `+`, across batches or machines."""

    upper: Tensor  # [b] right edges
    count: Tensor  # [b] samples
    confidence: Tensor  # [b] sum of confidence
    correct: Tensor  # [b] sum of hits

    def __add__(self, other: Bins) -> Bins:
        if not torch.equal(self.upper, other.upper):
            raise ValueError("bins with different edges do not merge; merge the rankings and bin again")
        return Bins(
            self.upper,
            self.count + other.count,
            self.confidence + other.confidence,
            self.correct + other.correct,
        )

    @cached_property
    def weight(self) -> Tensor:
        """Share of the samples."""
        return self.count / self.count.sum()

    @cached_property
    def gap(self) -> Tensor:
        """Mean confidence minus accuracy; 0 in an empty bin."""
        return (self.confidence - self.correct) / self.count.clamp(min=1)


def equal_width(outcomes: Outcomes, n_bins: int = 15) -> Bins:
    """Bins (0, 1/b], ..., (1 - 1/b, 1] as in Guo et al. (2017); a confidence of 0 is in the first."""
    c = outcomes.confidence
    # Division rounds correctly where linspace does not: a confidence written .2 lies on the edge 3/15.
    upper = torch.arange(1, n_bins + 1, dtype=torch.float64, device=c.device) / n_bins
    index = torch.bucketize(c, upper[:-1])
    return Bins(
        upper,
        torch.bincount(index, minlength=n_bins).double(),
        torch.bincount(index, c, minlength=n_bins),
        torch.bincount(index, outcomes.correct.double(), minlength=n_bins),
    )


def equal_mass(r: Ranking, n_bins: int = 15) -> Bins:
    """Bins of equal count: the sample of ascending rank i (from 0) is in bin floor(i b / n).

    Tied confidences share the bin of their first rank, so some bins may be empty. A bin's right edge is the highest
    confidence in it, or of an empty bin the next lower one.
    """
    start = mass_starts(r.kept, r.n, n_bins)
    top, bottom = start[:-1], start[1:]  # rows of the ranking, from the lowest bin's to the highest's
    return Bins(
        upper=r.score[bottom.clamp(max=len(r.score) - 1)],
        count=r.kept[top] - r.kept[bottom],
        confidence=r.claimed[top] - r.claimed[bottom],
        correct=r.right[top] - r.right[bottom],
    )


def mass_starts(kept: Tensor, n: int, n_bins: int) -> Tensor:
    """How many rows of the ranking lie in equal-mass bins j and above, for j = 0, ..., b."""
    # A row has bin >= j if its first ascending rank n - kept is at least j n / b.
    most = torch.arange(n_bins, -1, -1, device=kept.device) * n // n_bins
    return torch.searchsorted(kept[1:], most.double(), right=True)


def mass_bin(r: Ranking, n_bins: int) -> Tensor:
    """Equal-mass bin of each row of the ranking, [t]."""
    rows = mass_starts(r.kept, r.n, n_bins).flip(0).diff()
    return torch.arange(n_bins - 1, -1, -1, device=rows.device).repeat_interleave(rows)


def ece(bins: Bins, *, norm: float = 1) -> float:
    """Expected calibration error: (sum of weight * |gap|^norm)^(1/norm)."""
    return float((bins.weight * bins.gap.abs() ** norm).sum() ** (1 / norm))


def mce(bins: Bins) -> float:
    """Maximum calibration error: the gap of the worst bin."""
    return float(bins.gap.abs().max())


def oe(bins: Bins) -> float:
    """Overconfidence error: sum of weight * confidence * (gap where positive) (Thulasidasan et al. 2019)."""
    return float((bins.confidence * bins.gap.clamp(min=0)).sum() / bins.count.sum())


def debiased_ece(bins: Bins) -> float:
    """l2 calibration error without what noise adds (Kumar et al. 2019), at least 0; a bin of one sample counts 0."""
    return sqrt(max(squared_ce(bins), 0.0))


def squared_ce(bins: Bins) -> float:
    """Unbiased square of the binned l2 error; negative where noise would have added more than is seen."""
    accuracy = bins.correct / bins.count.clamp(min=1)
    noise = accuracy * (1 - accuracy) / (bins.count - 1).clamp(min=1)
    return float((bins.weight * (bins.gap**2 - noise) * (bins.count > 1)).sum())


def ece_lb(r: Ranking, n_bins: int = 15, *, norm: float = 1) -> float:
    """Label-binned ECE: each confidence against its equal-mass bin's accuracy (seed 003 eq 7); never below `ece`."""
    bins = equal_mass(r, n_bins)
    accuracy = (bins.correct / bins.count.clamp(min=1))[mass_bin(r, n_bins)]
    return float((((r.score - accuracy).abs() ** norm * r.kept.diff()).sum() / r.n) ** (1 / norm))
