"""Binned calibration: one table of sums, from which every binned error is a line."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from assay.metrics._ranking import Floats, Ranking
from assay.predictions import Outcomes


@dataclass(frozen=True, eq=False)
class Bins:
    """Sums over bins (lo, hi] of confidence; tables over the same edges merge by `+`, across batches or machines."""

    upper: Floats  # [b] right edges
    count: Floats  # [b] samples
    confidence: Floats  # [b] sum of confidence
    correct: Floats  # [b] sum of hits

    def __add__(self, other: Bins) -> Bins:
        if not np.array_equal(self.upper, other.upper):
            raise ValueError("bins with different edges do not merge; merge the rankings and bin again")
        return Bins(
            self.upper,
            self.count + other.count,
            self.confidence + other.confidence,
            self.correct + other.correct,
        )

    @cached_property
    def weight(self) -> Floats:
        """Share of the samples."""
        return self.count / float(self.count.sum())

    @cached_property
    def accuracy(self) -> Floats:
        """Share of right answers; 0 in an empty bin."""
        return self.correct / np.maximum(self.count, 1)

    @cached_property
    def gap(self) -> Floats:
        """Mean confidence minus accuracy; 0 in an empty bin."""
        return (self.confidence - self.correct) / np.maximum(self.count, 1)


def equal_width(table: Outcomes | Ranking, n_bins: int = 15) -> Bins:
    """Bins (0, 1/b], ..., (1 - 1/b, 1] as in Guo et al. (2017); a confidence of 0 is in the first.

    Outcomes are tallied as they come; of a ranking, sorted already, only the rows at the edges are read.
    """
    # Division rounds correctly where linspace does not: a confidence written .2 lies on the edge 3/15.
    edge = np.arange(n_bins + 1) / n_bins
    upper = edge[1:]
    if isinstance(table, Ranking):
        below = table.ascending.searchsorted(edge, side="right")
        below[0], below[-1] = 0, len(table.score)
        return _between(table, len(table.score) - below, upper)
    confidence, correct = table.confidence.cpu().numpy(), table.correct.cpu().numpy()
    index = upper[:-1].searchsorted(confidence)
    return Bins(upper, *(tally(index, weight, n_bins) for weight in (None, confidence, correct)))


def tally(index: NDArray[np.int64], weight: NDArray[np.generic] | None, n: int) -> Floats:
    """Sum of the weights, or count, of each index below `n`."""
    return np.bincount(index, weight, n).astype(np.float64, copy=False)


def equal_mass(r: Ranking, n_bins: int = 15) -> Bins:
    """Bins of equal count: the sample of ascending rank i (from 0) is in bin floor(i b / n).

    Tied confidences share the bin of their first rank, so some bins may be empty. A bin's right edge is the highest
    confidence in it, or of an empty bin the next lower one.
    """
    start = mass_starts(r, n_bins)
    return _between(r, start, r.score[np.minimum(start[1:], len(r.score) - 1)])


def _between(r: Ranking, start: NDArray[np.int64], upper: Floats) -> Bins:
    """Bins whose rows lie between consecutive starts, the lowest bin's first."""
    kept, claimed, right = r.kept[start], r.claimed[start], r.right[start]
    return Bins(upper, kept[:-1] - kept[1:], claimed[:-1] - claimed[1:], right[:-1] - right[1:])


def mass_starts(r: Ranking, n_bins: int) -> NDArray[np.int64]:
    """How many rows of the ranking lie in equal-mass bins j and above, for j = 0, ..., b."""
    # A row has bin >= j if its first ascending rank n - kept is at least j n / b.
    return r.kept[1:].searchsorted(np.arange(n_bins, -1, -1) * r.n // n_bins, side="right")


def mass_bin(r: Ranking, n_bins: int) -> NDArray[np.int64]:
    """Equal-mass bin of each row of the ranking, [t]."""
    return np.repeat(np.arange(n_bins)[::-1], -np.diff(mass_starts(r, n_bins))[::-1])


def ece(bins: Bins, *, norm: float = 1) -> float:
    """Expected calibration error: (sum of weight * |gap|^norm)^(1/norm)."""
    return float((bins.weight @ np.abs(bins.gap) ** norm) ** (1 / norm))


def mce(bins: Bins) -> float:
    """Maximum calibration error: the gap of the worst bin."""
    return float(np.abs(bins.gap).max())


def oe(bins: Bins) -> float:
    """Overconfidence error: sum of weight * confidence * (gap where positive) (Thulasidasan et al. 2019)."""
    return float(bins.confidence @ np.maximum(bins.gap, 0) / bins.count.sum())


def debiased_ece(bins: Bins) -> float:
    """l2 calibration error without what noise adds (Kumar et al. 2019), at least 0; a bin of one sample counts 0."""
    return sqrt(max(squared_ce(bins), 0.0))


def squared_ce(bins: Bins) -> float:
    """Unbiased square of the binned l2 error; negative where noise would have added more than is seen."""
    noise = bins.accuracy * (1 - bins.accuracy) / np.maximum(bins.count - 1, 1)
    return float(bins.weight @ ((bins.gap**2 - noise) * (bins.count > 1)))


def ece_lb(r: Ranking, n_bins: int = 15, *, norm: float = 1) -> float:
    """Label-binned ECE: each confidence against its equal-mass bin's accuracy (karandikar2021 eq 7); never below
    `ece`."""
    return float((np.abs(label_gap(r, equal_mass(r, n_bins))) ** norm @ r.size / r.n) ** (1 / norm))


def label_gap(r: Ranking, mass: Bins) -> Floats:
    """Confidence minus the accuracy of its equal-mass bin, at each score of the ranking, [t]."""
    start = mass_starts(r, len(mass.count))[::-1]
    return r.score - np.repeat(mass.accuracy[::-1], start[1:] - start[:-1])
