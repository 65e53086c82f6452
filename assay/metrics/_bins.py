"""Binned calibration: one table of sums, from which every binned error is a line."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from assay._core import loops
from assay._core.arrays import Array, Floats, InputError, Labels, Mask
from assay.metrics._ranking import ROUNDING, Ranking

MOST_BINS = 10**6


@dataclass(frozen=True, eq=False)
class Bins:
    """Sums over bins (lo, hi] of confidence; tables over the same edges merge by `+`, across batches or machines."""

    upper: Floats  # [b] right edges
    count: Floats  # [b] samples
    confidence: Floats  # [b] sum of confidence
    correct: Floats  # [b] sum of hits
    effective: Floats | None = None  # [b] of weighted samples, as many that count alike would tell as much

    def __add__(self, other: Bins) -> Bins:
        if self.effective is not None or other.effective is not None:
            raise ValueError("bins of weighted samples do not merge; merge the rankings and bin again")
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
        return self.correct / self._some

    @cached_property
    def gap(self) -> Floats:
        """Mean confidence minus accuracy; 0 in an empty bin."""
        return (self.confidence - self.correct) / self._some

    @property
    def samples(self) -> Floats:
        """How many samples of equal weight tell as much, [b] (Kish); without weights the count."""
        return self.count if self.effective is None else self.effective

    @cached_property
    def _some(self) -> Floats:
        return np.where(self.count > 0, self.count, 1.0)


def refuse_bins(n_bins: object, n: int = 0) -> None:
    """Refuse what is no number of bins, and more bins than anybody, or these n samples, can fill."""
    most = max(MOST_BINS, n)
    if isinstance(n_bins, bool) or not isinstance(n_bins, int | np.integer) or not 1 <= n_bins <= most:
        raise InputError(f"the number of bins must be 1 to {most:,}, got {n_bins}")


@cache
def edges(n_bins: int) -> Floats:
    """0, 1/b, ..., 1; division rounds correctly where linspace does not, so a confidence of .2 is on the edge 3/15."""
    refuse_bins(n_bins)
    return np.arange(n_bins + 1) / n_bins


def width_bins(confidence: Floats, correct: Mask, n_bins: int) -> Bins:
    """Bins of equal width of samples as they come."""
    upper = edges(n_bins)[1:]
    return Bins(upper, *loops.width_bins(confidence, correct, upper))


def width_bins_of(r: Ranking, n_bins: int) -> Bins:
    """Bins of equal width of a ranking: it is sorted already, so only the rows at the edges are read."""
    edge = edges(n_bins)
    below = r.ascending.searchsorted(edge, side="right")
    below[0], below[-1] = 0, len(r.score)
    return _between(r, len(r.score) - below, edge[1:])[0]


@dataclass(frozen=True, eq=False)
class MassBins:
    """Equal-mass bins of a ranking, and how far the confidence in them is from their accuracy."""

    bins: Bins  # a bin's right edge is the highest confidence in it, or of an empty bin the next lower one
    gaps: float  # sum over samples of |confidence - accuracy of its bin|
    squares: float  # and of its square


def mass_bins_of(r: Ranking, n_bins: int) -> MassBins:
    """Bins of equal mass."""
    start = mass_starts(r, n_bins)
    bins, gaps, squares = _between(r, start, r.score[np.minimum(start[1:], len(r.score) - 1)])
    return MassBins(bins, float(gaps.sum()), float(squares.sum()))


def _between(r: Ranking, start: Labels, upper: Floats) -> tuple[Bins, Floats, Floats]:
    """Bins whose rows lie between consecutive starts, the lowest bin's first, and the sums of `loops.between`."""
    count, claims, right, gaps, squares = loops.between(r.score, r.kept, r.wrong, start)
    effective = None if r.weighing is None else kish(count, -np.diff(r.weighing.squares[start]))
    return Bins(upper, count, claims, right, effective), gaps, squares


def kish(weight: Floats, squares: Floats) -> Floats:
    """As many samples of equal weight as tell as much, by the sums of weights and of their squares."""
    return np.divide(weight**2, squares, out=np.zeros_like(weight), where=squares > 0)


def mass_starts(r: Ranking, n_bins: int) -> Labels:
    """How many rows of the ranking lie in equal-mass bins j and above, for j = 0, ..., b."""
    refuse_bins(n_bins, r.n)
    # A row has bin >= j if its first ascending rank n - kept is at least j n / b.
    start = r.kept[1:].searchsorted(np.arange(n_bins, -1, -1) * r.n / n_bins + ROUNDING, side="right")
    start[-1] = 0  # however light the first row is
    return start


def mass_bin(r: Ranking, n_bins: int) -> Labels:
    """Equal-mass bin of each row of the ranking, [t]."""
    return np.repeat(np.arange(n_bins)[::-1], -np.diff(mass_starts(r, n_bins))[::-1])


def tally(index: Labels, weight: Array | None, n: int) -> Floats:
    """Sum of the weights, or count, of each index below `n`."""
    return np.bincount(index, weight, n).astype(np.float64, copy=False)
