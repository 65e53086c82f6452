"""How far metrics of cells can be from those of the rows in them: over all orders of a cell's rows, the worst.

The cells of confidence 0 and 1 hold true ties, so they add nothing.
"""

from __future__ import annotations

from math import ceil

import numpy as np

from assay._core.arrays import Floats, Mask
from assay._core.plain import from_zero

EXACT = ("accuracy", "nll", "brier", "ece", "mce", "oe", "rmsce", "classwise_ece", "tace", "ece_positive")


def bounds(cells: Floats) -> dict[str, float]:
    """By metric, from cells [t, 3] in ascending order of confidence."""
    size, misses = cells[::-1, 0], cells[::-1, 1]
    hits, mixed = size - misses, np.ones(len(cells), dtype=bool)
    mixed[[0, -1]] = False  # true ties
    n, n_wrong = float(size.sum()), float(misses.sum())
    pairs = np.where(mixed, hits * misses / 2, 0.0)
    kept, wrong = from_zero(size), from_zero(misses)
    aurc = float((pairs / (kept[:-1] + 1)).sum()) / n
    at_coverage = {
        f"risk_at_{share}": _risk(kept, hits, misses, mixed, ceil(share / 100 * n - 1e-9)) for share in (80, 90, 95)
    }
    found = dict.fromkeys((*EXACT, "mean_confidence", "mean_entropy"), 0.0)
    found |= {"aurc": aurc, "e_aurc": aurc, "augrc": float(pairs.sum()) / n**2} | at_coverage
    if n_wrong < n:
        found["aupr_success"] = _precision(hits, misses, mixed) / (n - n_wrong)
    if n_wrong > 0:
        found["aupr_error"] = _precision(misses[::-1], hits[::-1], mixed[::-1]) / n_wrong
    if 0 < n_wrong < n:
        right = kept - wrong
        found["auroc"] = float(pairs.sum()) / (n_wrong * (n - n_wrong))
        crossing = int(np.searchsorted(right, -(-19 * int(n - n_wrong) // 20))) - 1
        found["fpr95"] = float(misses[crossing] * mixed[crossing]) / n_wrong
    return found


def _risk(kept: Floats, hits: Floats, misses: Floats, mixed: Mask, k: int) -> float:
    cell = int(np.searchsorted(kept, k)) - 1
    if not mixed[cell]:
        return 0.0
    j, h, m = k - kept[cell], hits[cell], misses[cell]
    expected = j * m / (h + m)
    return float(max(min(j, m) - expected, expected - max(0.0, j - h))) / k


def _precision(hits: Floats, misses: Floats, mixed: Mask) -> float:
    """Of average precision times its positives: all hits of a cell tied before its errors, or one by one after them.

    Also without errors in the cell: precision grows from hit to hit, and tied hits share that of the last.
    """
    from scipy.special import digamma

    some = mixed & (hits > 0)
    before, right = (from_zero(x)[:-1][some] for x in (hits + misses, hits))
    h, m = hits[some], misses[some]
    counted = h * (right + h) / (before + h + m)
    best = h * (right + h) / (before + h)
    worst = h + (right - before - m) * (digamma(before + m + h + 1) - digamma(before + m + 1))
    return float(np.maximum(best - counted, counted - worst).sum())
