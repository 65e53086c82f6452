"""The ranking: one sorted table, from which every metric of failure prediction is a line."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import nan

import numpy as np

from assay._core import loops
from assay._core.arrays import Floats, InputError
from assay._core.plain import Areas, from_zero, last_of_runs
from assay.predictions import Outcomes


@dataclass(frozen=True, eq=False)
class Weighing:
    """What a ranking of weighted samples knows beside the sums of their weights."""

    unit: float  # the mean weight, which counts as one sample
    n: int  # samples
    n_wrong: int  # errors
    squares: Floats  # [t + 1] cumulative squares of the weights in this unit
    wrong_squares: Floats  # [t + 1] those of errors


@dataclass(frozen=True, eq=False)
class Order:
    """Of blocks that are no ties, what is known about the order of their samples, or expected of an unknown one."""

    areas: Areas  # sums over samples instead of blocks
    tie_excess: float | None  # see `aurc`; None: that of the blocks is right, as all orders are equally likely
    wrong_at_95: float  # errors accepted with 95 % of the right answers
    wrong_at: dict[int, float]  # errors among so many most confident; others are expected


@dataclass(frozen=True, eq=False)
class Ranking:
    """Cumulative counts at each distinct score, most confident first.

    For each threshold it tells how many samples score at least that, and how many of them are errors. Tied samples
    count together, so no metric depends on the order of the file. Rankings of two sets of rows merge by `+`. Weighted
    samples count by their weights, in units of the mean weight, so that all together still count n.
    """

    score: Floats  # [t] distinct scores, descending
    kept: Floats  # [t + 1] samples that score at least this: 0, those of the first score, ..., n
    wrong: Floats  # [t + 1] errors among them
    weighing: Weighing | None = None  # of samples that do not all count alike
    order: Order | None = None  # where blocks stand for several scores

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
        if self.weighing is None and other.weighing is None:
            return Ranking(score[order[last]], from_zero(size[order])[ends], from_zero(misses[order])[ends])
        a, b = (r.weighing or Weighing(1.0, r.n, r.n_wrong, r.kept, r.wrong) for r in (self, other))
        unit = (a.unit * a.n + b.unit * b.n) / (a.n + b.n)
        factor = np.repeat([a.unit / unit, b.unit / unit], [len(self.score), len(other.score)])
        squares, of_errors = (
            np.concatenate([np.diff(x), np.diff(y)]) * factor**2
            for x, y in ((a.squares, b.squares), (a.wrong_squares, b.wrong_squares))
        )
        columns = (size * factor, misses * factor, squares, of_errors)
        cumulative = [from_zero(x[order])[ends] for x in columns]
        return weighted_ranking(score[order[last]], cumulative, unit, a.n + b.n, a.n_wrong + b.n_wrong)

    @cached_property
    def n(self) -> int:
        """Samples."""
        return self.weighing.n if self.weighing else int(self.kept[-1])

    @cached_property
    def n_wrong(self) -> int:
        """Errors, however much each counts."""
        return self.weighing.n_wrong if self.weighing else int(self.wrong[-1])

    @cached_property
    def areas(self) -> Areas:
        """Sums over the scores that metrics share."""
        return loops.areas(self.score, self.kept, self.wrong) if self.order is None else self.order.areas

    @cached_property
    def right(self) -> Floats:
        """Right answers among the `kept` samples, [t + 1]."""
        return self.kept - self.wrong if self.weighing is None else from_zero(self.hits)

    @cached_property
    def claimed(self) -> Floats:
        """Sum of the confidence of the `kept` samples, which is the number of right answers it promises, [t + 1]."""
        return from_zero(self.claims)

    @cached_property
    def size(self) -> Floats:
        """Samples at each score, [t]."""
        return self.kept[1:] - self.kept[:-1]

    @cached_property
    def misses(self) -> Floats:
        """Errors at each score, [t]."""
        return self.wrong[1:] - self.wrong[:-1]

    @cached_property
    def hits(self) -> Floats:
        """Right answers at each score, [t]."""
        found = self.size - self.misses
        return found if self.weighing is None else np.where(found > 1e-15 * self.n, found, 0.0)  # sums of weights round

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


def ranking_of(outcomes: Outcomes) -> Ranking:
    """Sort the scores once, and find the place of each error among them."""
    if len(outcomes) == 0:
        raise InputError("no rows")
    if outcomes.weights is not None:
        return _weighted(outcomes, outcomes.weights)
    # Plain doubles sort several times faster than doubles with an index or a flag in tow; negated, they descend.
    negated = np.negative(outcomes.confidence, dtype=np.float64)
    wrong = np.sort(negated.compress(~outcomes.correct))
    negated.sort()
    return Ranking(*loops.runs(negated, wrong))


def _weighted(outcomes: Outcomes, weights: Floats) -> Ranking:
    n, unit = len(weights), float(weights.mean())
    score, place = np.unique(-outcomes.confidence, return_inverse=True)
    own, errors = weights / unit, ~outcomes.correct
    columns = (own, own * errors, own**2, own**2 * errors)
    cumulative = [from_zero(np.bincount(place, x, len(score))) for x in columns]
    return weighted_ranking(-score, cumulative, unit, n, int(errors.sum()))


def weighted_ranking(score: Floats, cumulative: list[Floats], unit: float, n: int, n_wrong: int) -> Ranking:
    """The ranking of weights in this unit: sums over all and over errors, and those of the squares, each [t + 1]."""
    kept, wrong, squares, of_errors = cumulative
    # All together count n, from which the sum of the weights is off by rounding: the last score takes the difference.
    wrong[-1] += (n - kept[-1]) * (wrong[-1] - wrong[-2]) / (kept[-1] - kept[-2])
    kept[-1] = n
    return Ranking(score, kept, wrong, Weighing(unit, n, n_wrong, squares, of_errors))


ROUNDING = 1e-9  # by which a sum of weights may miss the number that it stands for


def midway(cumulative: Floats, steps: Floats) -> Floats:
    """What lies above each score plus half of what is at it: ties count half."""
    return cumulative[:-1] + steps / 2


def ratio(a: float, b: float) -> float:
    """a / b, nan where there is nothing to divide by."""
    return a / b if b else nan
