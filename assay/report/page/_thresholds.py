"""Thresholds as short numbers: accepting scores of at least that number accepts exactly the counted samples."""

from __future__ import annotations

from dataclasses import replace
from decimal import ROUND_FLOOR, Decimal
from math import floor, inf, log10

import numpy as np

from assay.metrics import Ranking, Tables
from assay.thresholds import evidence_of, spelled


def steps(t: Tables) -> Ranking:
    """The numbers of rows above each threshold; those of a summary are the lowest confidences of its cells."""
    return evidence_of(t).ranking if t.summary is None else replace(t.summary.thresholds, order=t.ranking.order)


def written(r: Ranking, accepted: int) -> str:
    """The shortest threshold that accepts so many samples; ties are accepted together.

    Of cells that are no ties it is rounded up: samples of the next cell may have any confidence below it.
    """
    row = int(np.searchsorted(r.kept, accepted))
    if row == len(r.score):
        return spelled(-inf)
    least = float(r.score[row - 1])
    return between(float(r.score[row]), least) if r.order is None else spelled(least, up=True)


def between(lower: float, upper: float) -> str:
    """The shortest number above `lower` and at most `upper`, also after conversion to float; of several the highest.

    >>> between(0.98391, 0.98417), between(0.8999999, 0.9), between(-3.0, 2.5)
    ('0.984', '0.9', '2')
    """
    least = Decimal(repr(upper))  # read back as `upper`, so its number of digits is always enough
    step = Decimal(1).scaleb(floor(log10(max(abs(lower), abs(upper)))))
    while float(shown := least.quantize(step, ROUND_FLOOR)) <= lower:
        step = step.scaleb(-1)
    return f"{shown.normalize():f}"
