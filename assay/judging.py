"""A judge's scores and a few human labels: how far can its verdicts be trusted, and how many answers are right?

Angelopoulos, Duchi & Zrnic, "PPI++: Efficient Prediction-Powered Inference", 2023.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike

from assay._core.arrays import Floats, InputError, floats, refuse
from assay.auditing import Audit, audit
from assay.metrics.inference import Estimate, Interval, proportion_interval
from assay.predictions import Predictions
from assay.thresholds import Threshold, choose_threshold

FEWEST = 20  # labels, below which no interval has been shown to hold
UNLIKE = 0.001  # p-value below which labelled answers are not taken for a random part of all


@dataclass(frozen=True)
class Share:
    """The share of right answers, with a 95 % interval."""

    value: float
    interval: Interval


@dataclass(frozen=True)
class Judged:
    """What `judge` found; `print` it for the verdict in words."""

    n: int
    labelled: int
    claimed: float  # share of right answers by the judge's scores alone
    accuracy: Share  # corrected by the labels
    labels_alone: Share
    weight: float  # of the judge's scores in the corrected share, 0 to 1
    audit: Audit  # of its verdicts on the labelled answers
    threshold: Threshold  # of the confidence in a verdict
    trusted: float  # share of all answers whose verdict is at least that confident
    unlike: float  # p-value of labelled answers having the same scores as the others

    def __str__(self) -> str:
        bar = self.accuracy.interval
        doubt = "; the labelled answers are not like the others" if self.unlike < UNLIKE else ""
        return (
            f"{self.accuracy.value:.1%} of the answers are right ({bar.low:.1%} to {bar.high:.1%}), "
            f"where the judge says {self.claimed:.1%}; "
            f"{self.trusted:.1%} of its verdicts can be trusted{doubt}"
        )


def judge(scores: ArrayLike, labels: ArrayLike, *, risk: float = 0.05) -> Judged:
    """Audit a judge on the answers that people labelled, and correct the accuracy that it gives.

    `scores` are its probabilities that each answer is right, or its verdicts as 0 and 1; `labels` are 1 for right and
    0 for wrong, and nan for answers that nobody labelled. The labelled answers must be a random part of all. A verdict
    is that of the likelier side; those above the threshold are wrong at most in a share of `risk`, with a guarantee.

    >>> rng = np.random.default_rng(0)
    >>> chance = rng.beta(0.6, 0.2, 5000)
    >>> labels = np.where(np.arange(5000) < 300, rng.random(5000) < chance, np.nan)
    >>> print(judge(chance**0.5, labels))
    76.9% of the answers are right (73.5% to 80.0%), where the judge says 82.6%; 61.3% of its verdicts can be trusted
    """
    score, label = floats(scores, name="scores", ndim=1), np.asarray(labels, dtype=np.float64)
    _check(score, label)
    known = ~np.isnan(label)
    seen = Predictions.from_binary_probabilities(score[known], label[known].astype(np.int64))
    chosen = choose_threshold(seen, risk=risk)
    accuracy, weight = prediction_powered(label[known], score[known], score[~known])
    hits = float(label[known].sum())
    return Judged(
        n=len(score),
        labelled=int(known.sum()),
        claimed=float(score.mean()),
        accuracy=accuracy,
        labels_alone=Share(hits / known.sum(), proportion_interval(hits, int(known.sum()))),
        weight=weight,
        audit=audit(seen),
        threshold=chosen,
        trusted=float((np.maximum(score, 1 - score) >= chosen.value).mean()),
        unlike=_unlike(score[known], score[~known]),
    )


def prediction_powered(label: Floats, score: Floats, unlabelled: Floats) -> tuple[Share, float]:
    """The share of right answers from labels and the scores of labelled and other answers, and the scores' weight.

    The mean of label - w score over the labelled answers plus w times the mean score of the others, with the w in
    [0, 1] of least variance. For the interval, one right and one wrong answer of mean score are added to the labelled
    ones: without them it holds 57 % of the time for 20 labels and an accuracy of 95 %.
    """
    n, others = len(label), len(unlabelled)
    spread = float(np.append(score, unlabelled).var(ddof=1))
    weight = 0.0
    if others and spread > 0:
        weight = float(np.clip(np.cov(label, score)[0, 1] / ((1 + n / others) * spread), 0, 1))
    base = weight * float(unlabelled.mean()) if others else 0.0
    rest = np.append(label - weight * score, np.array([0.0, 1.0]) - weight * score.mean())
    error = sqrt(float(rest.var(ddof=1)) / (n + 2) + (weight**2 * spread / others if others else 0.0))
    bar = Estimate(base + float(rest.mean()), error, n + 1).interval()
    value = min(max(base + float(rest[:n].mean()), 0.0), 1.0)
    return Share(value, Interval(max(min(bar.low, value), 0.0), min(max(bar.high, value), 1.0))), weight


def _check(score: Floats, label: Floats) -> None:
    if score.shape != label.shape:
        raise InputError(f"{len(score)} scores but {label.size} labels")
    refuse(score, ~((score >= 0) & (score <= 1)), "score {} of the judge is outside [0, 1]; divide it by the most")
    refuse(label, ~(np.isnan(label) | (label == 0) | (label == 1)), "label {} is neither 0 nor 1")
    labelled = int((~np.isnan(label)).sum())
    if labelled < FEWEST:
        raise InputError(f"{labelled} answers have a human label; {FEWEST} or more are needed")


def _unlike(labelled: Floats, others: Floats) -> float:
    from scipy.stats import ks_2samp

    return float(ks_2samp(labelled, others, method="asymp").pvalue) if len(others) else 1.0
