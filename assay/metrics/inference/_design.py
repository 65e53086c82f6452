"""Samples that do not count alike or are not independent: variances of weighted means by sums over clusters.

The samples of a cluster (a patient, a video, a prompt) may depend on each other in any way; clusters are independent.
A metric's variance is that of the sums of its influences over clusters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from assay._core.arrays import Floats, Labels, Mask
from assay.metrics._tables import Tables
from assay.metrics.inference._estimate import Estimate, mean_estimate
from assay.predictions import Outcomes


@dataclass(frozen=True, eq=False)
class Design:
    """Weights with a mean of 1, and the cluster of each sample; without clusters each sample is its own."""

    weight: Floats  # [n]
    cluster: Labels  # [n]
    n_clusters: int

    def variance(self, influence: Floats) -> float:
        """Variance of the weighted mean of a column whose mean is 0."""
        totals = np.bincount(self.cluster, self.weight * influence, self.n_clusters)
        return float(totals @ totals) / len(influence) ** 2 * self.n_clusters / max(self.n_clusters - 1, 1)

    def mean(self, column: Floats) -> Estimate:
        value = float(self.weight @ column) / len(column)
        return Estimate(value, float(np.sqrt(self.variance(column - value))), max(self.n_clusters - 1, 1))

    def effect(self, column: Floats) -> float:
        """How many times the variance of independent samples of the same weights this design has; at least 1."""
        about = column - float(self.weight @ column) / len(column)
        alone = float((self.weight**2).sum()) / len(column) ** 2 * float(self.weight @ about**2) / len(column)
        return max(self.variance(about) / alone, 1.0) if alone > 0 else 1.0

    def number(self, mask: Mask) -> int:
        """Clusters that have any of these samples."""
        return len(np.unique(self.cluster[mask]))

    def samples(self, mask: Mask) -> float:
        """As many independent samples of equal weight as these tell, at least (Kish): clusters count once."""
        totals = np.bincount(self.cluster[mask], self.weight[mask], self.n_clusters)
        return float(totals.sum() ** 2 / (totals @ totals)) if totals.any() else 0.0


def design_of(outcomes: Outcomes) -> Design | None:
    """The design of weighted or clustered samples; none where all count alike and are independent."""
    if outcomes.weights is None and outcomes.cluster is None:
        return None
    n = len(outcomes)
    weight = np.ones(n) if outcomes.weights is None else outcomes.weights / outcomes.weights.mean()
    if outcomes.cluster is None:
        return Design(weight, np.arange(n), n)
    names, cluster = np.unique(outcomes.cluster, return_inverse=True)
    return Design(weight, cluster, len(names))


def design(t: Tables) -> Design | None:
    """The design of these tables, found once."""
    return t.once(_design)


def _design(t: Tables) -> Design | None:
    return None if t.summary is not None else design_of(t.outcomes)


def estimate(column: Floats, of: Design | None) -> Estimate:
    """The mean of a column with its standard error."""
    return mean_estimate(column) if of is None else of.mean(column)
