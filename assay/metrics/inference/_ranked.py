"""Intervals of ranking metrics and of the risk among the most confident, in closed form."""

from __future__ import annotations

from math import exp, inf, log, sqrt

import numpy as np

from assay._core.arrays import Floats
from assay.metrics._failure import risk_at_coverage
from assay.metrics._ranking import Ranking
from assay.metrics.inference._influence import Influence
from assay.metrics.inference._intervals import Interval, luck, proportion_interval, student

MIN_ERRORS = 20  # with fewer, right or wrong, no statement on ranking or on differences can be relied on


def share_interval(
    value: float,
    influence: Influence,
    *,
    effect: float = 1.0,
    fewest: float | None = None,
    telling: float = inf,
    scatter: float | None = None,
) -> Interval | None:
    """Interval for a ranking metric in (0, 1), on the logit scale, where its law is nearest to normal; None at 0 and 1.

    The rarest errors move a ranking most and are seen least, so a quarter of an unseen one is added to the variance;
    without it intervals near a perfect ranking cover the truth 80 to 90 % of the time. The end for fewer errors is
    farther off where there are hardly enough of them. Of weighted or dependent samples, `effect` is how many times the
    variance of independent ones the metric has, `fewest` the number of independent samples of the rarer kind, `telling`
    that of those that make up the variance, and `scatter` the standard error of the error rate; both ends are farther
    off then, since the heaviest may have been missed by luck.
    """
    if not 0 < value < 1:
        return None
    r, slope, center = influence.ranking, value * (1 - value), log(value / (1 - value))
    fewest = min(r.n_wrong, r.n - r.n_wrong) if fewest is None else fewest
    variance = effect * (influence.variance() + influence.unseen() / 4)
    half = student(min(fewest, telling) - 1) * sqrt(variance) / slope
    alone = sqrt(r.n_wrong * (r.n - r.n_wrong) / r.n**3)
    lucky = 1.5 * luck(fewest, MIN_ERRORS) * _by_share(influence) * (alone if scatter is None else scatter) / slope
    fewer, more = (max(lucky, 0.0), max(-lucky, 0.0)) if scatter is None else (abs(lucky), abs(lucky))
    return Interval(_expit(center - half - fewer), _expit(center + half + more))


def _by_share(influence: Influence) -> float:
    """What the metric changes by with the share of errors, or with that of right answers if these are fewer."""
    r = influence.ranking
    wrong, right = (float(column[-1]) for column in (r.wrong, r.right))
    rare, count, number = (influence.wrong, r.misses, wrong) if wrong <= right else (influence.right, r.hits, right)
    return float(rare @ count) / number * r.n / (r.n - number)


def fpr95_interval(r: Ranking) -> Interval:
    """Interval for FPR95: every share of errors that is plausible at a threshold that may have 95 % of right answers.

    A threshold whose rate of right answers is x standard errors from .95 leaves its share of errors the doubt that
    x spends not: both together stay within one quantile. Where scores are tied the two plausible thresholds can be far
    apart; where they are not this is the rule of Zou & Donner (2008) for two joint sources of doubt.
    """
    n_right, quantile = r.n - r.n_wrong, student(r.n_wrong - 1)
    tpr, fpr = r.right / r.right[-1], r.wrong / r.wrong[-1]
    # A row is the first to reach .95 if it does and the one before does not.
    missed = np.maximum(0.95 - tpr[1:], tpr[:-1] - 0.95).clip(0) / sqrt(0.95 * 0.05 / n_right)
    missed *= quantile / student(n_right - 1)
    plausible = missed <= quantile
    left = quantile * np.sqrt(1 - (missed[plausible] / quantile) ** 2)
    least = fpr[1:] if r.order is None else fpr[:-1]  # a threshold may lie inside a block that is no tie
    low, _ = _wilson(least[plausible], r.n_wrong, left)
    _, high = _wilson(fpr[1:][plausible], r.n_wrong, left)
    return Interval(max(float(low.min()), 0.0), min(float(high.max()), 1.0))


def _wilson(p: Floats, n: float, z: Floats) -> tuple[Floats, Floats]:
    """Wilson's interval of shares, each with its own quantile."""
    shrink = 1 + z**2 / n
    half = z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2)) / shrink
    center = (p + z**2 / (2 * n)) / shrink
    return np.where(p > 0, center - half, 0.0), np.where(p < 1, center + half, 1.0)


def risk_interval(r: Ranking, coverage: float, effect: float = 1.0) -> Interval:
    """Interval for the risk at a coverage: an exact one, with fewer samples to account for the uncertain threshold.

    The variance is (R (1 - R) + (R - e)^2 (1 - coverage)) / (coverage n), with e the error rate at the threshold;
    `effect` times that where samples are weighted or depend on each other.
    """
    risk, kept = risk_at_coverage(r, coverage), coverage * r.n
    window = sqrt(r.n)
    first = np.searchsorted(r.kept, max(kept - window, 0), side="right") - 1
    last = np.searchsorted(r.kept, min(kept + window, r.n))
    edge = float((r.wrong[last] - r.wrong[first]) / (r.kept[last] - r.kept[first]))
    own, moved = risk * (1 - risk), (risk - edge) ** 2 * (1 - coverage)
    effective = (kept * own / (own + moved) if own > 0 else kept) / effect
    return proportion_interval(risk * effective, effective)


def _expit(x: float) -> float:
    return 1 / (1 + exp(-x)) if x > 0 else exp(x) / (1 + exp(x))
