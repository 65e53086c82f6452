"""Mitigating bias in calibration error estimation (Roelofs, Cain, Shlens & Mozer, AISTATS 2022): the mean sweep."""

import numpy as np

from assay._core import loops, plain
from assay._core.arrays import row_chunks
from assay.metrics._calibration import ada_ece
from assay.metrics._ranking import Ranking
from assay.metrics._tables import Rankable, ranking

FEW = 16  # bins tried before asking whether the ranking is perfect
MOST = 5000  # bins tried: only near-perfect rankings get that far, at a cost of its square


def sweep_ece(x: Rankable, *, norm: float = 1) -> float:
    """ECE with as many equal-mass bins as keep the accuracy from falling anywhere."""
    return ada_ece(x, sweep_bins(x), norm=norm)


def sweep_bins(x: Rankable) -> int:
    """Largest b such that 2, 3, ..., b equal-mass bins all have non-decreasing accuracies; 1 if two bins do not.

    At most n bins, and of scores that are not perfectly in order at most `MOST`.
    """
    r = ranking(x)
    few, most = min(r.n, FEW), min(r.n, MOST)
    sweep = loops.sweep if r.weighing is None else plain.sweep
    reached = sweep(r.kept, r.right, 2, few)
    if reached < few or few == most:
        return reached
    return r.n if _in_order(r) else sweep(r.kept, r.right, few + 1, most)


def _in_order(r: Ranking) -> bool:
    """Whether the error rate never falls from one score to the next lower one; the first fall ends the search."""
    for rows in row_chunks(len(r.score), 1):
        near = slice(max(rows.start - 1, 0), rows.stop + 1)
        risk = np.diff(r.wrong[near]) / np.diff(r.kept[near])
        if (risk[1:] < risk[:-1]).any():
            return False
    return True
