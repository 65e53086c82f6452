"""Two classes: which probability to answer class 1 from, with a promise about precision, recall or cost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, inf, log, nan

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assay import metrics
from assay._core.arrays import InputError
from assay._core.showing import html_table
from assay.metrics import Ranking
from assay.predictions import Predictions
from assay.thresholds._evidence import Evidence, cells_at, evidence
from assay.thresholds._records import level, spelled
from assay.thresholds._search import counting, fewest, first_look, looks_from, midway, safest, widest

STEP = 1.05  # of the looks for the least cost, each of which takes its share of the doubt
TRIES = 20  # looks for the best precision that can be promised


@dataclass(frozen=True)
class PositiveThreshold:
    """Answer class 1 where its probability is at least `value`.

    Of `n` held-out rows, `positives` of which are of class 1, it answers class 1 for `flagged`, `hits` of them rightly.
    """

    value: float  # midway between two scores; -inf answers class 1 always, inf never
    goal: str  # precision, recall or cost
    promised: float  # the precision or recall is at least this, or the mean cost at most ...
    confidence: float  # ... with this probability over held-out sets
    n: int
    positives: int
    flagged: int
    hits: int
    reason: str = ""  # why the promise cannot be given
    instead: PositiveThreshold | None = None  # the best that can be promised then
    cost: float = nan  # mean cost of a held-out row, where costs are the goal
    map_digest: str | None = None  # `maps.digest` of the maps before it
    weighted: tuple[float, float, float] | None = None  # share answered 1, precision and recall by weight, where rows
    # have weights

    @property
    def accepted(self) -> int:
        """Rows answered 1."""
        return self.flagged

    @property
    def coverage(self) -> float:
        """Share of rows answered 1."""
        return self.flagged / self.n if self.weighted is None else self.weighted[0]

    @property
    def guaranteed_risk(self) -> float:
        """At most this share of the rows answered 1 is wrong, or of class 1 is missed; nan where costs are the goal."""
        return nan if self.goal == "cost" else 1 - self.promised

    @property
    def precision(self) -> float:
        """Share of class 1 among the rows answered so; nan if there are none."""
        if self.weighted is not None:
            return self.weighted[1]
        return self.hits / self.flagged if self.flagged else nan

    @property
    def recall(self) -> float:
        """Share of the rows of class 1 that are answered so; nan if there are none."""
        if self.weighted is not None:
            return self.weighted[2]
        return self.hits / self.positives if self.positives else nan

    @property
    def written(self) -> str:
        """The threshold to read, rounded to the side on which its promise still holds."""
        if self.value == inf:
            return "nothing"
        return spelled(self.value, up=self.goal == "precision", down=self.goal == "recall")

    @property
    def promise(self) -> str:
        """The promise in words."""
        if self.goal == "cost":
            return f"mean cost at most {self.promised:.4g} at {level(self.confidence)} confidence"
        return f"{self.goal} at least {self.promised:.2%} at {level(self.confidence)} confidence"

    def _repr_html_(self) -> str:
        figures = {"answer class 1 from": self.value, "promise": self.promise}
        figures |= {"precision": self.precision, "recall": self.recall}
        return html_table(str(self), list(figures), [list(figures.values())])

    def __str__(self) -> str:
        if self.reason:
            rest = f"; instead: {self.instead}" if self.instead else ""
            return f"no promise: {self.reason}{rest}"
        seen = f"precision {_share(self.precision)} and recall {_share(self.recall)} seen"
        answer = "never answer class 1" if self.value == inf else f"answer class 1 from {self.written}"
        return f"{answer}: {self.promise}, {seen}"


def choose_positive_threshold(
    held_out: Predictions,
    *,
    precision: float | None = None,
    recall: float | None = None,
    costs: ArrayLike | None = None,
    confidence: float = 0.95,
) -> PositiveThreshold:
    """From which probability of class 1 to answer class 1, so that a promise holds with probability `confidence`.

    One of three goals. `precision`: at least this share of the rows answered 1 are of class 1, and as many rows as
    possible are. `recall`: at least this share of the rows of class 1 are answered 1, and as few others as possible.
    `costs`: the least mean cost seen, by [[cost of a true 0, of a false 1], [of a false 0, of a true 1]]; the promise
    is a bound on it, which on few rows can be above that of the same answer always. All are exact: binomial bounds that
    pay for looking at several thresholds, and for recall the order statistics of the rows of class 1; or bets where
    rows have weights or clusters. They hold for rows drawn like the held-out ones, with as many of class 1.

    >>> import numpy as np
    >>> p = np.linspace(0, 1, 2000)
    >>> rows = Predictions.from_binary_probabilities(p, p > 0.9)
    >>> t = choose_positive_threshold(rows, precision=0.9)
    >>> print(t)
    answer class 1 from 0.895: precision at least 90.00% at 95% confidence, precision 94.79% and recall 100.00% seen
    """
    if not isinstance(held_out, Predictions) or held_out.n_classes != 2:
        raise InputError("precision, recall and costs of class 1 need predictions of two classes")
    if not 0 < confidence < 1:
        raise InputError(f"confidence must lie between 0 and 1, got {confidence}")
    if sum(goal is not None for goal in (precision, recall, costs)) != 1:
        raise InputError("give one of precision, recall and costs")
    rows = metrics.positive_class(held_out)
    search = _Search(evidence(rows, metrics.ranking(rows)), 1 - confidence, held_out.map_digest)
    if precision is not None:
        return search.by_precision(_inside("precision", precision))
    return search.by_recall(_inside("recall", recall)) if recall is not None else search.by_cost(_matrix(costs))


@dataclass(frozen=True, eq=False)
class _Search:
    """Rows ranked by the probability of class 1, so that a right answer of the ranking is a row of class 1."""

    seen: Evidence
    doubt: float
    map_digest: str | None

    @property
    def r(self) -> Ranking:
        return self.seen.ranking

    def by_precision(self, precision: float) -> PositiveThreshold:
        """A precision is a risk among the rows answered 1: the same chain of tests."""
        risk, r = 1 - precision, self.r
        least = fewest(risk, self.doubt)
        row = widest(self.seen, risk, self.doubt) if self.seen.units >= least else None
        if row is not None:
            return self.at(row, "precision", precision)
        found = safest(self.seen, self.doubt, np.geomspace(min(5, r.n), r.n, TRIES))
        first = first_look(self.seen, risk, self.doubt)
        highest = f"{int(r.right[first])} of the {int(r.kept[first])} highest rows of {r.n} are of class 1"
        reason = f"{highest}{counting(self.seen)}; a precision of {precision:.3g} cannot be promised"
        instead = None if found is None else self.at(found[0], "precision", 1 - found[1])
        if instead is not None and instead.promised >= precision:  # a few fixed looks may pass where no chain does
            reason += " by a search for as many rows as possible"
        return self.none("precision", precision, reason, instead)

    def by_recall(self, recall: float) -> PositiveThreshold:
        """The highest score of class 1 with few enough rows of class 1 below it."""
        row = self.seen.reaching(recall, self.doubt)
        if row is not None:
            return self.at(row, "recall", recall)
        m = int(self.r.right[-1])
        takes = ceil(log(self.doubt) / log(recall))
        alike = " of equal weight that are independent" if self.seen.units < self.r.n else ""
        reason = f"a recall of {recall:.3g} takes {takes} rows of class 1{alike} and there are {m}"
        if alike:
            reason += f" of {self.r.n} rows{counting(self.seen)}"
        last = int(np.searchsorted(self.r.right, m))
        instead = self.at(last, "recall", self.seen.highest_recall(self.doubt)) if m else None
        return self.none("recall", recall, reason, instead)

    def by_cost(self, costs: NDArray[np.float64]) -> PositiveThreshold:
        """The mean cost exceeds the least one by the shares of the other cells, each with its bound."""
        looks = np.append(0, looks_from(self.r, 1, STEP))
        mean = np.tensordot(costs.reshape(-1), cells_at(self.seen.shares, looks), 1) / self.r.n
        above = (costs - costs.min()).reshape(-1)
        doubt = self.doubt / len(looks) / np.count_nonzero(above)
        best = int(mean.argmin())
        answers = [0] if best == 0 else [1] if best == len(looks) - 1 else [0, 1]
        bound = float(costs.min() + above @ self.seen.cells(int(looks[best]), doubt))
        return self.at(int(looks[best]), "cost", min(bound, float(costs[:, answers].max())), cost=float(mean[best]))

    def at(self, row: int, goal: str, promised: float, cost: float = nan) -> PositiveThreshold:
        r, weighed = self.r, self.seen.shares
        flagged, hits = int(r.kept[row]), int(r.right[row])
        counts = (r.n, int(r.right[-1]), flagged, hits)
        value = midway(r, row) if row else inf
        found = PositiveThreshold(value, goal, promised, 1 - self.doubt, *counts, cost=cost, map_digest=self.map_digest)
        if weighed.weighing is None:
            return found
        kept, right, every = (float(x) for x in (weighed.kept[row], weighed.right[row], weighed.right[-1]))
        return replace(found, weighted=(kept / r.n, right / kept if kept else nan, right / every if every else nan))

    def none(self, goal: str, promised: float, reason: str, instead: PositiveThreshold | None) -> PositiveThreshold:
        counts = (self.r.n, int(self.r.right[-1]), 0, 0)
        return PositiveThreshold(
            inf, goal, promised, 1 - self.doubt, *counts, reason, instead, map_digest=self.map_digest
        )


def _inside(name: str, share: float) -> float:
    if not 0 < share < 1:
        raise InputError(f"{name} must lie between 0 and 1, got {share}")
    return share


def _matrix(costs: ArrayLike | None) -> NDArray[np.float64]:
    matrix = np.asarray(costs, dtype=np.float64)
    if matrix.shape != (2, 2) or not np.isfinite(matrix).all():
        raise InputError("costs must be [[of a true 0, of a false 1], [of a false 0, of a true 1]]")
    if matrix[0, 1] <= matrix[0, 0] or matrix[1, 0] <= matrix[1, 1]:
        raise InputError("a wrong answer must cost more than the right one of the same class")
    return matrix


def _share(value: float) -> str:
    return "undefined" if np.isnan(value) else f"{value:.2%}"
