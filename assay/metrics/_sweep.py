"""Mitigating bias in calibration error estimation (Roelofs, Cain, Shlens & Mozer, AISTATS 2022): the mean sweep."""

import numpy as np
from numpy.typing import NDArray

from assay._core import loops
from assay.metrics._bins import ece, equal_mass
from assay.metrics._ranking import Ranking

FEW = 16  # bins tried before asking whether the ranking is perfect
MOST = 5000  # bins tried: only near-perfect rankings get that far, at a cost of its square


def sweep_ece(r: Ranking, *, norm: float = 1) -> float:
    """ECE with as many equal-mass bins as keep the accuracy from falling anywhere."""
    return ece(equal_mass(r, sweep_bins(r)), norm=norm)


def sweep_bins(r: Ranking) -> int:
    """Largest b such that 2, 3, ..., b equal-mass bins all have non-decreasing accuracies; 1 if two bins do not.

    At most n bins, and of scores that are not perfectly in order at most `MOST`.
    """
    few, most = min(r.n, FEW), min(r.n, MOST)
    reached = _reach(r, 2, few)
    if reached < few or few == most:
        return reached
    if (np.diff(r.hits / r.size) <= 0).all():
        return r.n
    return _reach(r, few + 1, most)


def _reach(r: Ranking, first: int, last: int) -> int:
    """The number of bins, from `first` to `last`, before the first whose accuracies fall somewhere; else `last`."""
    if loops.AVAILABLE:
        return loops.sweep(r.kept, r.right, first, last)
    while first <= last:
        # Whole runs of bin numbers at once: at few samples each number alone is all overhead.
        at_once = max(min(first + FEW, 2**15 // (first + FEW)), 1)
        numbers = np.arange(first, min(first + at_once - 1, last) + 1)
        monotone = _monotone(r, numbers)
        if not monotone.all():
            return first - 1 + int(monotone.argmin())
        first = int(numbers[-1]) + 1
    return last


def _monotone(r: Ranking, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
    """For each number of bins: do their accuracies, empty bins aside, never fall?"""
    b, j = numbers[:, None], np.arange(numbers[-1] + 1)  # a number's bins beyond its own are empty
    start = np.searchsorted(r.kept[1:], np.maximum(b - j, 0) * r.n // b, side="right")
    kept, right = r.kept[start], r.right[start]
    count, hits = kept[:, :-1] - kept[:, 1:], right[:, :-1] - right[:, 1:]
    accuracy = hits / np.maximum(count, 1)
    return np.asarray(((accuracy >= np.maximum.accumulate(accuracy, axis=1)) | (count == 0)).all(1))
