"""Humanity's Last Exam (Phan et al., 2025): its calibration error, as published and without its dependence on order.

The published code sorts by confidence, cuts runs of 100 rows, leaves the last run out of the sum but not out of the
count, and takes the root of the mean squared gap. Language models state few distinct values, so most runs are cut
through ties, and the order of the file decides which answers fall into which run.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from assay._core.arrays import Floats
from assay.metrics._tables import Rankable, ranking
from assay.predictions import Outcomes

SIZE = 100  # rows of a run


def hle_rms_published(outcomes: Outcomes, *, size: int = SIZE) -> float:
    """The published figure, of rows in the order of the file; nan with fewer than `size` rows, where it has no run.

    Tied rows stay in the order of the file; the published code leaves them to numpy's default sort, which may differ.

    >>> o = Outcomes.from_scores([0.9] * 4, [True, True, False, False])
    >>> [round(hle_rms_published(rows, size=2), 3) for rows in (o, o[::-1])]
    [0.071, 0.636]
    """
    order = np.argsort(outcomes.confidence, kind="stable")
    excess = outcomes.confidence[order] - outcomes.correct[order]
    runs = len(excess) // size
    if runs == 0:
        return float("nan")
    gap = excess[: (runs - 1) * size].reshape(-1, size).mean(1)
    return sqrt(float((gap**2).sum()) * size / len(excess))


def hle_rms(x: Rankable, *, size: int = SIZE) -> float:
    """The same over all runs, and tied rows share their runs in equal parts, so that no order matters.

    The last run takes the rest, as many as make no whole run more.

    >>> round(hle_rms(Outcomes.from_scores([0.9] * 4, [True, True, False, False]), size=2), 3)
    0.4
    """
    r = ranking(x)
    runs = max(r.n // size, 1)
    edge: Floats = np.append(np.arange(runs) * size, r.n).astype(np.float64)
    rank = np.append(0, np.cumsum(r.size[::-1]))
    excess = np.append(0, np.cumsum((r.claims - r.hits)[::-1]))
    gap = np.diff(np.interp(edge, rank, excess)) / np.diff(edge)
    return sqrt(float(np.diff(edge) @ gap**2) / r.n)
