"""Isotonic regression of correctness on confidence: the runs of a ranking that get one accuracy."""

from __future__ import annotations

from dataclasses import dataclass

from assay._core import loops
from assay._core.arrays import Floats, Labels
from assay.metrics._ranking import Ranking


@dataclass(frozen=True, eq=False)
class Isotonic:
    """Runs of the ranking, most confident first, that isotonic regression gives one accuracy."""

    hits: Floats  # [s] right answers in the run
    misses: Floats  # [s] errors
    last: Labels  # [s] its last row in the ranking

    @property
    def accuracy(self) -> Floats:
        return self.hits / (self.hits + self.misses)


def isotonic_of(r: Ranking) -> Isotonic:
    """Least-squares accuracy that never rises down the ranking: neighbors out of order are pooled."""
    ends = loops.majorant(r.kept, r.right)
    right, wrong = r.right[ends], r.wrong[ends]
    return Isotonic(right[1:] - right[:-1], wrong[1:] - wrong[:-1], ends[1:] - 1)
