"""Mitigating bias in calibration error estimation (Roelofs, Cain, Shlens & Mozer, AISTATS 2022): the mean sweep."""

import numpy as np
from numpy.typing import NDArray

from assay.metrics._bins import ece, equal_mass
from assay.metrics._ranking import Ranking

MOST = 5000  # bins tried: only near-perfect rankings get that far, at a cost of its square


def sweep_ece(r: Ranking, *, norm: float = 1) -> float:
    """ECE with as many equal-mass bins as keep the accuracy from falling anywhere."""
    return ece(equal_mass(r, sweep_bins(r)), norm=norm)


def sweep_bins(r: Ranking) -> int:
    """Largest b such that 2, 3, ..., b equal-mass bins all have non-decreasing accuracies; 1 if two bins do not.

    At most n bins, and of scores that are not perfectly in order at most `MOST`.
    """
    if (np.diff(r.hits / r.size) <= 0).all():
        return r.n
    tried, most = 1, min(r.n, MOST)
    while tried < most:
        # Whole runs of bin numbers at once: at few samples each number alone is all overhead.
        at_once = max(min(tried + 14, 2**15 // (tried + 15)), 1)
        numbers = np.arange(tried + 1, min(tried + at_once, most) + 1)
        monotone = _monotone(r, numbers)
        if not monotone.all():
            return tried + int(monotone.argmin())
        tried = int(numbers[-1])
    return tried


def _monotone(r: Ranking, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
    """For each number of bins: do their accuracies, empty bins aside, never fall?"""
    owner = np.repeat(np.arange(len(numbers)), numbers + 1)
    b = numbers[owner]
    first = np.cumsum(numbers + 1) - numbers - 1
    j = np.arange(len(owner)) - first[owner]
    start = np.searchsorted(r.kept[1:], (b - j) * r.n // b, side="right")
    count, hits = -np.diff(r.kept[start]), -np.diff(r.right[start])
    filled = (count > 0) & (owner[1:] == owner[:-1])
    accuracy, owner = hits[filled] / count[filled], owner[1:][filled]
    falls = (np.diff(accuracy) < 0) & (np.diff(owner) == 0)
    return np.asarray(np.bincount(owner[1:][falls], minlength=len(numbers)) == 0)
