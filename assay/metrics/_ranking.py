"""The ranking: one sorted table, from which every metric of failure prediction is a line."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import nan
from typing import NamedTuple

import numpy as np

from assay._core import loops
from assay._core.arrays import Floats, InputError
from assay._core.plain import from_zero, last_of_runs
from assay.predictions import Outcomes


@dataclass(frozen=True, eq=False)
class Ranking:
    """Cumulative counts at each distinct score, most confident first.

    For each threshold it tells how many samples score at least that, and how many of them are errors. Tied samples
    count together, so no metric depends on the order of the file. Rankings of two sets of rows merge by `+`.
    """

    score: Floats  # [t] distinct scores, descending
    kept: Floats  # [t + 1] samples that score at least this: 0, those of the first score, ..., n
    wrong: Floats  # [t + 1] errors among them

    def __post_init__(self) -> None:
        for name in ("score", "kept", "wrong"):
            column = np.ascontiguousarray(getattr(self, name), dtype=np.float64)
            object.__setattr__(self, name, column if column.flags.writeable else column.copy())
        t = len(self.score)
        if t == 0 or len(self.kept) != t + 1 or len(self.wrong) != t + 1:
            raise ValueError(f"{t} scores need {t + 1} counts each, got {len(self.kept)} and {len(self.wrong)}")

    def __add__(self, other: Ranking) -> Ranking:
        score = np.concatenate([self.score, other.score])
        order = np.argsort(-score)
        size, misses = np.concatenate([self.size, other.size]), np.concatenate([self.misses, other.misses])
        last = last_of_runs(score[order])
        ends = np.append(0, last + 1)
        return Ranking(score[order[last]], from_zero(size[order])[ends], from_zero(misses[order])[ends])

    @cached_property
    def n(self) -> int:
        return int(self.kept[-1])

    @cached_property
    def n_wrong(self) -> int:
        return int(self.wrong[-1])

    @cached_property
    def _spread(self) -> _Spread:
        return _Spread(*loops.spread(self.score, self.kept, self.wrong))

    @property
    def right(self) -> Floats:
        """Right answers among the `kept` samples, [t + 1]."""
        return self._spread.right

    @property
    def claimed(self) -> Floats:
        """Sum of the confidence of the `kept` samples, which is the number of right answers it promises, [t + 1]."""
        return self._spread.claimed

    @property
    def size(self) -> Floats:
        """Samples at each score, [t]."""
        return self._spread.size

    @property
    def misses(self) -> Floats:
        """Errors at each score, [t]."""
        return self._spread.misses

    @property
    def hits(self) -> Floats:
        """Right answers at each score, [t]."""
        return self._spread.hits

    @property
    def precision(self) -> Floats:
        """Accuracy of the `kept` samples at each threshold, [t]; one minus the selective risk."""
        return self.right[1:] / self.kept[1:]

    @property
    def claims(self) -> Floats:
        """Sum of the confidence at each score, [t]."""
        return self.score * self.size

    @property
    def ascending(self) -> Floats:
        """The scores from below, to search in."""
        return self.score[::-1]


class _Spread(NamedTuple):
    """Counts that follow from those of a ranking."""

    right: Floats
    claimed: Floats
    size: Floats
    misses: Floats
    hits: Floats


def ranking_of(outcomes: Outcomes) -> Ranking:
    """Sort the scores once, and find the place of each error among them."""
    if len(outcomes) == 0:
        raise InputError("no rows")
    # Plain doubles sort several times faster than doubles with an index or a flag in tow; negated, they descend.
    negated = np.negative(outcomes.confidence, dtype=np.float64)
    wrong = np.sort(negated.compress(~outcomes.correct))
    negated.sort()
    return Ranking(*loops.runs(negated, wrong))


def midway(cumulative: Floats, steps: Floats) -> Floats:
    """What lies above each score plus half of what is at it: ties count half."""
    return cumulative[:-1] + steps / 2


def ratio(a: float, b: float) -> float:
    """a / b, nan where there is nothing to divide by."""
    return a / b if b else nan
