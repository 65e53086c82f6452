"""What a sample says about the risk above a threshold: exact counts, or bets where rows have weights or clusters.

Rows that are independent and count alike make the number of errors binomial. Weighted rows, and rows of one cluster,
do not: there the evidence is the capital of a gambler who bets, on each cluster, that the risk is lower than claimed
(Waudby-Smith & Ramdas, Estimating means of bounded random variables by betting, JRSS B 2024). If the claim is true the
capital is 1 on average at most, so it reaches 20 with a chance of at most 1 / 20, whatever a cluster has in common.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import log, sqrt
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assay._core.arrays import Floats, Labels
from assay.metrics import Ranking, ranking, tally
from assay.predictions import Outcomes

Looks = NDArray[np.int64]  # rows of a ranking, each a threshold
FULL = 1 - 1e-6  # of the capital that a bet may lose at most; sums round
FINE = 1.002  # ratio within which the bound of a bet is found


class Evidence(Protocol):
    """What is known about the errors above each threshold of a ranking."""

    @property
    def ranking(self) -> Ranking:
        """Numbers of rows."""

    @property
    def shares(self) -> Ranking:
        """The same by weight."""

    @property
    def units(self) -> float:
        """As many independent rows of equal weight as these are sure to tell as much as."""

    def chance(self, looks: Looks, risk: float, doubt: float) -> Floats:
        """Chance of so few errors above each threshold if the risk there were as high as this; `doubt` is what counts
        as small."""

    def bound(self, look: int, doubt: float) -> float:
        """The risk above a threshold is at most this, but for a chance of `doubt`."""

    def excess(self, risk: float) -> float:
        """Chance of so many errors among all rows if the risk were at most this."""

    def reaching(self, recall: float, doubt: float) -> int | None:
        """The first row of the ranking up to which so large a share of all right answers lies, but for `doubt`."""

    def highest_recall(self, doubt: float) -> float:
        """Up to the last right answer lies at least this share of all right answers, but for a chance of `doubt`."""

    def cells(self, look: int, doubt: float) -> Floats:
        """Bounds of the shares among all rows of errors beyond a threshold and above it, and of right answers, [4]."""


def evidence(outcomes: Outcomes, r: Ranking, among: Outcomes | None = None) -> Evidence:
    """What outcomes say, of which `r` is the ranking.

    It is exact where rows are independent and count alike, as rows of the same weight and clusters of one row do.
    Outcomes that are a group `among` others may have rows as heavy as theirs, and clusters as large.
    """
    whole = outcomes if among is None else among
    alike = whole.weights is None or bool((whole.weights == whole.weights[0]).all())
    alone = whole.cluster is None or len(np.unique(whole.cluster)) == len(whole)
    counted = r if r.weighing is None else ranking(replace(outcomes, weights=None))
    if alike and alone:
        return Counts(counted)
    unit = 1.0 if outcomes.weights is None else float(outcomes.weights.mean())
    return Bets(counted, r, *_by_confidence(outcomes), _heaviest(whole) / unit)


def _heaviest(outcomes: Outcomes) -> float:
    """The weight of the heaviest cluster, or row."""
    weight = np.ones(len(outcomes)) if outcomes.weights is None else outcomes.weights
    if outcomes.cluster is None:
        return float(weight.max())
    return float(np.bincount(np.unique(outcomes.cluster, return_inverse=True)[1], weight).max())


def cells_at(r: Ranking, looks: Looks | int) -> Floats:
    """Errors beyond each threshold and above it, and right answers beyond and above, [4] or [4, looks]."""
    wrong, right = r.wrong[looks], r.right[looks]
    return np.stack([r.wrong[-1] - wrong, wrong, r.right[-1] - right, right])


def risk_bound(wrong: ArrayLike, accepted: ArrayLike, confidence: float) -> NDArray[np.float64]:
    """The exact upper bound of Clopper & Pearson for a share of errors."""
    from scipy.special import betaincinv

    k, n = np.asarray(wrong, dtype=float), np.asarray(accepted, dtype=float)
    return np.where(k < n, betaincinv(k + 1, np.maximum(n - k, 0.5), confidence), 1.0)


@dataclass(frozen=True, eq=False)
class Counts:
    """Independent rows that count alike: the number of errors is binomial."""

    ranking: Ranking

    @property
    def shares(self) -> Ranking:
        return self.ranking

    @property
    def units(self) -> float:
        return self.ranking.n

    def chance(self, looks: Looks, risk: float, doubt: float) -> Floats:
        from scipy.special import bdtr

        return np.asarray(bdtr(self.ranking.wrong[looks], self.ranking.kept[looks].astype(int), risk))

    def bound(self, look: int, doubt: float) -> float:
        return float(risk_bound(self.ranking.wrong[look], self.ranking.kept[look], 1 - doubt))

    def excess(self, risk: float) -> float:
        from scipy.special import bdtrc

        wrong, n = self.ranking.n_wrong, self.ranking.n
        return float(bdtrc(wrong - 1, n, risk)) if wrong else 1.0

    def reaching(self, recall: float, doubt: float) -> int | None:
        """With m right answers, the share of these below the (i + 1)-th lowest exceeds 1 - recall with the chance that
        at most i of m draws fall into a share of that size."""
        from scipy.special import bdtr

        m = int(self.ranking.right[-1])
        missed = np.arange(m + 1)
        allowed = np.flatnonzero(bdtr(missed, m, 1 - recall) <= doubt) if m else missed[:0]
        return int(np.searchsorted(self.ranking.right, m - int(allowed[-1]))) if len(allowed) else None

    def highest_recall(self, doubt: float) -> float:
        m = int(self.ranking.right[-1])
        return float(doubt ** (1 / m)) if m else 0.0

    def cells(self, look: int, doubt: float) -> Floats:
        return risk_bound(cells_at(self.ranking, look), self.ranking.n, 1 - doubt)


@dataclass(frozen=True, eq=False)
class Bets:
    """Rows with weights or clusters, the most confident first.

    No cluster is taken to weigh more than the heaviest seen: of rarer and heavier ones a sample tells nothing.
    """

    ranking: Ranking
    shares: Ranking
    weight: Floats  # [n]
    wrong: Floats  # [n] the weight of an error, 0 of a right answer
    cluster: Labels  # [n]
    most: float  # the weight of the heaviest cluster

    @property
    def units(self) -> float:
        return float(self.weight.sum()) / self.most

    @cached_property
    def before(self) -> tuple[Floats, Floats]:
        """Weight and errors of the cluster of each row among the rows before it, [n] each."""
        order = np.argsort(self.cluster, kind="stable")
        first = np.searchsorted(self.cluster[order], self.cluster[order])
        found = np.empty((2, len(order)))
        for own, column in zip(found, (self.weight, self.wrong), strict=True):
            summed = np.append(0, np.cumsum(column[order]))
            own[order] = summed[:-1] - summed[first]
        return found[0], found[1]

    def chance(self, looks: Looks, risk: float, doubt: float) -> Floats:
        last = self.ranking.kept[looks].astype(int) - 1
        total, wrong = self.before
        lost, then = wrong - risk * total, wrong + self.wrong - risk * (total + self.weight)
        together = np.cumsum((total + self.weight) ** 2 - total**2)[last]
        table = _Table(self.most, risk, doubt, together, np.cumsum(self.weight**2)[last])
        return table.p_values(lambda bet: np.cumsum(np.log1p(-bet * then) - np.log1p(-bet * lost))[last])

    def bound(self, look: int, doubt: float) -> float:
        rows = int(self.ranking.kept[look])
        return self._first(rows).highest(doubt, self.most)

    def excess(self, risk: float) -> float:
        """So many errors are so few right answers."""
        rows = self._first(len(self.weight))
        return replace(rows, wrong=rows.total - rows.wrong).chance(1 - risk, 0.05, self.most)

    def reaching(self, recall: float, doubt: float) -> int | None:
        """Fewer rows miss more right answers and so lower the capital of every bet: the first row that passes is found
        by halving, and no other than the last that should not pass can be passed by chance."""
        if self._right_alike:
            return Counts(self.ranking).reaching(recall, doubt)
        low, high = 0, len(self.ranking.score)
        if self._missed(high).chance(1 - recall, doubt, self._most_right) > doubt:
            return None
        while high - low > 1:
            middle = (low + high) // 2
            enough = self._missed(middle).chance(1 - recall, doubt, self._most_right) <= doubt
            low, high = (low, middle) if enough else (middle, high)
        return high

    def highest_recall(self, doubt: float) -> float:
        if self._right_alike:
            return Counts(self.ranking).highest_recall(doubt)
        none_missed = self._missed(len(self.ranking.score))
        return 1 - none_missed.highest(doubt, self._most_right)

    def cells(self, look: int, doubt: float) -> Floats:
        rows = int(self.ranking.kept[look])
        every = self._first(len(self.weight))
        sides = (slice(rows, None), slice(None, rows))
        found = [self._sums(column, side) for column in (self.wrong, self._right) for side in sides]
        return np.array([replace(every, wrong=one).highest(doubt, self.most) for one in found])

    @cached_property
    def _right(self) -> Floats:
        return self.weight - self.wrong

    @cached_property
    def _right_alike(self) -> bool:
        """Whether right answers are independent and count alike, as where only the class decides the weight."""
        own, cluster = self._right[self._right > 0], self.cluster[self._right > 0]
        return bool((own == own[:1]).all()) and len(np.unique(cluster)) == len(own)

    @cached_property
    def _most_right(self) -> float:
        """The largest weight that the right answers of a cluster have."""
        return float(self._sums(self._right, slice(None)).max())

    def _missed(self, look: int) -> _Accepted:
        """All right answers, of which those beyond a threshold are missed."""
        beyond = slice(int(self.ranking.kept[look]), None)
        total, missed = (self._sums(self._right, rows) for rows in (slice(None), beyond))
        return _Accepted(total, missed, float((self._right**2).sum()))

    def _sums(self, column: Floats, rows: slice) -> Floats:
        """The sum of a column over some rows of each cluster."""
        return tally(self.cluster[rows], column[rows], int(self.cluster.max()) + 1)

    def _first(self, rows: int) -> _Accepted:
        member = self.cluster[:rows]
        total, wrong = (tally(member, column[:rows], int(member.max()) + 1) for column in (self.weight, self.wrong))
        return _Accepted(total, wrong, float((self.weight[:rows] ** 2).sum()))


def _by_confidence(outcomes: Outcomes) -> tuple[Floats, Floats, Labels]:
    """Weight, errors and cluster of each row, the most confident first."""
    n = len(outcomes)
    order = np.argsort(-outcomes.confidence, kind="stable")
    weight = np.ones(n) if outcomes.weights is None else outcomes.weights / outcomes.weights.mean()
    cluster = np.arange(n) if outcomes.cluster is None else np.unique(outcomes.cluster, return_inverse=True)[1]
    return weight[order], (weight * ~outcomes.correct)[order], cluster[order]


@dataclass(frozen=True, eq=False)
class _Accepted:
    """The clusters above one threshold."""

    total: Floats  # [c] weight of each
    wrong: Floats  # [c] its errors
    squares: float  # of the weights of all rows

    def chance(self, risk: float, doubt: float, most: float) -> float:
        lost = self.wrong - risk * self.total
        table = _Table(most, risk, doubt, np.array([self.total @ self.total]), np.array([self.squares]))
        return float(table.p_values(lambda bet: np.array([np.log1p(-bet * lost).sum()]))[0])

    def highest(self, doubt: float, most: float) -> float:
        """The highest risk that cannot be excluded, found by halving between the risk seen and 1."""
        low, high = max(float(self.wrong.sum() / self.total.sum()), 1e-9), 1.0
        while high / low > FINE:
            middle = sqrt(low * high)
            low, high = (low, middle) if self.chance(middle, doubt, most) <= doubt else (middle, high)
        return high


@dataclass(frozen=True, eq=False)
class _Table:
    """Which bets are made: they depend on the weights, not on the errors.

    The best bet is about the gain that is needed divided by the variance of the losses, which is least if the errors of
    a cluster are independent, and largest if they come together. The stake is spread evenly between the two.
    """

    most: float
    risk: float
    doubt: float
    together: Floats  # [looks] squares of the weights of clusters above each threshold
    alone: Floats  # [looks] those of rows

    def p_values(self, log_capital: Callable[[float], Floats]) -> Floats:
        """One over the final capital at each threshold; `log_capital` is what one bet leads to."""
        highest = FULL / ((1 - self.risk) * self.most)
        low, high = (_best_bet(squares, self.risk, self.doubt) for squares in (self.together, self.alone))
        # Bets are the highest one halved so many times.
        first, last = np.floor(np.log2(highest / high).clip(0)), np.ceil(np.log2(highest / low).clip(0))
        capital = np.full(len(first), -np.inf)
        for halved in range(int(first.min()), int(last.max()) + 1):
            made = (first <= halved) & (halved <= last)
            capital[made] = np.logaddexp(capital, log_capital(highest * 0.5**halved))[made]
        return np.asarray(np.exp(np.minimum(np.log(last - first + 1) - capital, 0)))


def _best_bet(squares: Floats, risk: float, doubt: float) -> Floats:
    return np.asarray(np.sqrt(2 * log(1 / doubt) / (risk * (1 - risk) * squares)))
