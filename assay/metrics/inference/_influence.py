"""How much one sample moves a ranking metric: the influence functions behind its error bar.

A metric is a functional of the joint law of score and correctness. Its influence at a sample is its derivative when a
little mass is moved there; the mean of the influences is 0 and their variance over n is that of the metric. A sample
matters only through its place in the ranking and whether it is right, so two columns of the table hold them all. For
AUROC this is the variance of DeLong, DeLong & Clarke-Pearson (1988).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np

from assay._core.arrays import Floats
from assay.metrics._failure import augrc, aupr_error, aupr_success, auroc
from assay.metrics._ranking import Ranking, midway
from assay.predictions import Outcomes


@dataclass(frozen=True, eq=False)
class Influence:
    """Influence of a right and of a wrong sample at each distinct score of a ranking."""

    ranking: Ranking
    right: Floats  # [t]
    wrong: Floats  # [t]

    def __sub__(self, other: Influence) -> Influence:
        return Influence(self.ranking, self.right - other.right, self.wrong - other.wrong)

    def variance(self) -> float:
        """Variance of the metric; right and wrong samples each with the small-sample factor of DeLong."""
        r = self.ranking
        parts = ((self.right, r.hits, r.n - r.n_wrong), (self.wrong, r.misses, r.n_wrong))
        return sum(float(x**2 @ count) * n / max(n - 1, 1) for x, count, n in parts) / r.n**2

    def unseen(self) -> float:
        """Variance that one more error would add if it were as confident as a right answer."""
        r = self.ranking
        return float(self.wrong**2 @ r.hits) / float(r.right[-1]) / r.n**2

    def of(self, outcomes: Outcomes) -> Floats:
        """Influence of each sample of the ranking, [n], in the order of the file."""
        row = np.searchsorted(-self.ranking.score, -outcomes.confidence)
        return np.where(outcomes.correct, self.right[row], self.wrong[row])


def auroc_influence(r: Ranking) -> Influence:
    """For a right sample the share of errors below it, for an error that of right samples above it."""
    below = (r.wrong[-1] - midway(r.wrong, r.misses)) / r.wrong[-1]
    above = midway(r.right, r.hits) / r.right[-1]
    area = auroc(r)
    return Influence(r, (below - area) * r.n / r.right[-1], (above - area) * r.n / r.wrong[-1])


def aurc_influence(r: Ranking) -> Influence:
    """A sample shares in the risks at its own score, and changes those at every lower one.

    A block of m tied samples with w errors, below k samples with e errors, adds its risk over all orders,
    w + (e - w k / m) ln(1 + m / k), whose derivatives by w, m, e and k follow.
    """
    k, m, e, w = r.kept[:-1], r.size, r.wrong[:-1], r.misses
    length = np.log1p(np.divide(m, k, out=np.zeros_like(m), where=k > 0))  # nothing lies above the first block
    excess = e - w * k / m
    by_w, by_m = 1 - k / m * length, w * k / m**2 * length + excess / (k + m)
    by_k = -w / m * length - excess * np.divide(m, k * (k + m), out=np.zeros_like(m), where=k > 0)
    area = float((w + excess * length).sum()) / r.n
    right = by_m + _below(by_k) - area
    return Influence(r, right, right + by_w + _below(length))


def e_aurc_influence(r: Ranking) -> Influence:
    """That of AURC less the slope -ln(1 - r) of the optimum times the influence on the error rate r."""
    rate = float(r.wrong[-1]) / r.n
    slope = -log(1 - rate)
    optimum = Influence(r, np.full_like(r.score, -slope * rate), np.full_like(r.score, slope * (1 - rate)))
    return aurc_influence(r) - optimum


def augrc_influence(r: Ranking) -> Influence:
    own = midway(r.wrong, r.misses) / r.n - 2 * augrc(r)
    return Influence(r, own, own + 1 - midway(r.kept, r.size) / r.n)


def aupr_success_influence(r: Ranking) -> Influence:
    hit, miss = _precision_influence(r.right, r.kept, aupr_success(r))
    return Influence(r, hit, miss)


def aupr_error_influence(r: Ranking) -> Influence:
    hits, kept = (r.wrong[-1] - r.wrong)[::-1], (r.kept[-1] - r.kept)[::-1]
    hit, miss = _precision_influence(hits, kept, aupr_error(r))
    return Influence(r, miss[::-1], hit[::-1])


def _precision_influence(hits: Floats, kept: Floats, area: float) -> tuple[Floats, Floats]:
    """Of average precision, at a hit and at a miss: its own precision, and that of every hit at or below its score."""
    precision, share = hits[1:] / kept[1:], np.diff(hits) / kept[1:]
    rate = hits[-1] / kept[-1]
    miss = -_from_here_down(share * precision) / rate
    return miss + (precision + _from_here_down(share) - area) / rate, miss


def _from_here_down(terms: Floats) -> Floats:
    return np.cumsum(terms[::-1])[::-1]


def _below(terms: Floats) -> Floats:
    """Sum of what follows each place."""
    return _from_here_down(terms) - terms
