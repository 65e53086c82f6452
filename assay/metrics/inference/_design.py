"""Samples that do not count alike or are not independent: variances of weighted means by sums over clusters.

The samples of a cluster (a patient, a video, a prompt) may depend on each other in any way; clusters are independent.
A metric's variance is that of the sums of its influences over clusters.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from assay._core.arrays import Floats, Labels, Mask
from assay.metrics._ranking import Ranking
from assay.metrics._tables import Tables
from assay.metrics.inference._estimate import Estimate, mean_estimate
from assay.predictions import Outcomes


@dataclass(frozen=True, eq=False)
class Design:
    """How much each row counts, and which rows depend on each other.

    A row is a sample; of a summary, several of the same confidence that are all right or all wrong.
    """

    n: int  # samples
    rows: Outcomes  # [m]
    weight: Floats  # [m] in units of the mean weight, so that all together count n
    squares: Floats  # [m] of the weights of its samples
    cluster: Labels | None = None  # [m] without it all samples are independent
    n_clusters: int = 0

    @property
    def units(self) -> int:
        """Independent samples or clusters."""
        return self.n if self.cluster is None else self.n_clusters

    @cached_property
    def degrees(self) -> float:
        """Of Student's law of a studentized mean: few heavy samples tell their own spread no better than few do."""
        return max(min(self.units, self.n**2 / float(self.squares.sum())) - 1, 1.0)

    def variance(self, influence: Floats) -> float:
        """Variance of the weighted mean of a column whose mean is 0."""
        if self.cluster is None:
            total = float(self.squares @ influence**2)
        else:
            total = float((self.totals(influence) ** 2).sum())
        return total / self.n**2 * self.units / max(self.units - 1, 1)

    def totals(self, column: Floats) -> Floats:
        """The weighted sum of a column over each independent sample or cluster."""
        alone = self.weight * column
        return alone if self.cluster is None else np.asarray(np.bincount(self.cluster, alone, self.n_clusters))

    def telling(self, influence: Floats) -> float:
        """As many samples or clusters as make up the variance of a mean, if all had the same part in it (Kish)."""
        squares = self.totals(influence) ** 2
        return float(squares.sum() ** 2 / (squares @ squares)) if squares.any() else 0.0

    def mean(self, column: Floats) -> Estimate:
        value = float(self.weight @ column) / self.n
        return Estimate(value, float(np.sqrt(self.variance(column - value))), self.degrees)

    def effect(self, column: Floats) -> float:
        """How many times the variance of independent samples of the same weights this design has; at least 1.

        What few clusters with an error, or with a right answer, do not tell of their dependence is taken to be as
        strong as it can be: one more such cluster counts as wholly alike.
        """
        about = column - float(self.weight @ column) / self.n
        alone = float(self.squares.sum()) / self.n**2
        spread = alone * float(self.weight @ about**2) / self.n
        seen = max(self.variance(about) / spread, 1.0) if spread > 0 and self.rarer > 0 else 1.0
        return max(seen, (self.rarer * seen + 1 / alone / self.samples) / (self.rarer + 1))

    @cached_property
    def rarer(self) -> float:
        """Independent samples, or clusters, of the rarer kind: errors or right answers."""
        return min(self.number(self.rows.correct), self.number(~self.rows.correct))

    def number(self, mask: Mask) -> float:
        """As many independent samples of equal weight as these rows tell (Kish), or clusters with any, if fewer."""
        mask = mask & (self.weight > 0)
        if not mask.any():
            return 0.0
        count = float(self.weight[mask].sum() ** 2 / self.squares[mask].sum())
        return count if self.cluster is None else min(count, len(np.unique(self.cluster[mask])))

    @cached_property
    def samples(self) -> float:
        """As many independent samples of equal weight as these tell, at least (Kish): clusters count once."""
        if self.cluster is None:
            return self.n**2 / float(self.squares.sum())
        totals = self.totals(np.ones(len(self.weight)))
        return float(totals.sum() ** 2 / (totals @ totals))


def design_of(outcomes: Outcomes) -> Design | None:
    """The design of weighted or clustered samples; none where all count alike and are independent."""
    n = len(outcomes)
    weight = np.ones(n) if outcomes.weights is None else outcomes.weights / outcomes.weights.mean()
    if outcomes.cluster is not None:
        names, cluster = np.unique(outcomes.cluster, return_inverse=True)
        if len(names) < n:
            return Design(n, outcomes, weight, weight**2, cluster, len(names))
    return Design(n, outcomes, weight, weight**2) if (weight != weight[:1]).any() else None


def design(t: Tables) -> Design | None:
    """The design of these tables, found once."""
    return t.once(_design)


def _design(t: Tables) -> Design | None:
    return design_of(t.outcomes) if t.summary is None else _of_ranking(t.ranking)


def _of_ranking(r: Ranking) -> Design | None:
    """The design of weighted samples from their ranking: right answers and errors of each score."""
    if r.weighing is None:
        return None
    of_errors = np.diff(r.weighing.wrong_squares)
    of_hits = np.maximum(np.diff(r.weighing.squares) - of_errors, 0)  # sums round
    rows = Outcomes(np.tile(r.score, 2), np.repeat([True, False], len(r.score)))
    return Design(r.n, rows, np.concatenate([r.hits, r.misses]), np.concatenate([of_hits, of_errors]))


def estimate(column: Floats, of: Design | None) -> Estimate:
    """The mean of a column with its standard error."""
    return mean_estimate(column) if of is None else of.mean(column)
