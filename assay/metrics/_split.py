"""Confidence of right and wrong answers apart, and of the surest (zhu2022, singh2021 and mukhoti2020)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from assay.metrics._calibration import ece
from assay.metrics._failure import auroc
from assay.metrics._means import mean_confidence
from assay.metrics._ranking import Ranking, ratio
from assay.metrics._tables import Binnable, Rankable, equal_width, ranking

EQUAL = 1e-9  # accuracies and confidences nearer than this are equal but for rounding


def ece_correct(x: Rankable) -> float:
    """ECE of the right answers alone: how far their mean confidence stays below 1; nan if there are none."""
    r = ranking(x)
    return 1 - ratio(r.areas.claims_of_hits, float(r.right[-1]))


def ece_wrong(x: Rankable) -> float:
    """ECE of the wrong answers alone, their mean confidence; nan if there are none."""
    r = ranking(x)
    return ratio(r.areas.claims_of_misses, float(r.wrong[-1]))


def confidence_gap(x: Rankable) -> float:
    """Mean confidence of right minus that of wrong answers (zhu2022 fig 10); nan if there are none of either."""
    return 1 - ece_correct(x) - ece_wrong(x)


def s99(x: Rankable) -> float:
    """|S99|: share of samples with a confidence of at least .99 (mukhoti2020 table 7)."""
    r = ranking(x)
    return float(r.kept[_surest(r)]) / r.n


def s99_accuracy(x: Rankable) -> float:
    """Accuracy among the samples with a confidence of at least .99; nan if there are none."""
    r = ranking(x)
    surest = _surest(r)
    return ratio(float(r.right[surest]), float(r.kept[surest]))


def _surest(r: Ranking) -> int:
    return len(r.score) - int(r.ascending.searchsorted(0.99))


@dataclass(frozen=True)
class EceTerms:
    """singh2021 eq 9 claims ECE = mean confidence - beta - gamma. That is no identity: `residual` is what is missing.

    The equation averages accuracy over thresholds where ECE has the accuracy itself, so the residual does not vanish
    even for a model over-confident in every bin. The terms are for reading the paper, not for estimating ECE.
    """

    mean_confidence: float
    beta: float  # AUROC 2 P N / n^2, with P right and N wrong answers
    gamma: float  # (P^2 + N^2) / (2 n^2)
    ece: float
    residual: float  # ece - (mean confidence - beta - gamma)


def ece_beta(x: Rankable) -> float:
    """AUROC 2 P N / n^2 with P right and N wrong answers, a term of singh2021 eq 9; see `ece_terms`."""
    r = ranking(x)
    return auroc(r) * 2 * float(r.right[-1] * r.wrong[-1]) / r.n**2


def ece_gamma(x: Rankable) -> float:
    """(P^2 + N^2) / (2 n^2), the other term."""
    r = ranking(x)
    return float(r.right[-1] ** 2 + r.wrong[-1] ** 2) / (2 * r.n**2)


def overconfident_bins(x: Binnable, n_bins: int = 100) -> float:
    """Share of the filled bins whose accuracy is at most their mean confidence: what singh2021 eq 9 assumes of all.

    The paper counts 80 and 95 of 100 bins, on ImageNet and CIFAR-100.
    """
    bins = equal_width(x, n_bins)
    filled = bins.count > 0
    return np.count_nonzero(filled & (bins.gap > -EQUAL)) / np.count_nonzero(filled)


def ece_terms(x: Rankable, n_bins: int = 15) -> EceTerms:
    """The terms of singh2021 eq 9 and what they leave unexplained; nan without both right and wrong answers."""
    r = ranking(x)
    beta, gamma = ece_beta(r), ece_gamma(r)
    c, e = mean_confidence(r), ece(r, n_bins)
    return EceTerms(c, beta, gamma, e, e - (c - beta - gamma))
