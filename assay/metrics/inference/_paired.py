"""Two models on the same samples: differences with their uncertainty.

The calibration of two models is compared by the debiased square of their binned l2 errors, the calibration part of the
Brier score of the top label. It is unbiased, so its difference has no preference for either model, and its variance is
known both where the errors are large (it is then linear in the gaps) and where both vanish (a quadratic form of noise).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assay._core.arrays import Floats
from assay.metrics._bins import mass_bin, tally
from assay.metrics._ranking import Ranking
from assay.metrics.inference._design import Design, estimate
from assay.metrics.inference._estimate import Estimate
from assay.predictions import Outcomes

UNSEEN = 4  # pairs


@dataclass(frozen=True)
class AccuracyChange:
    """Difference of two accuracies on the same samples."""

    estimate: Estimate  # after Agresti & Min (2005), who add half a sample to each kind of pair
    p_value: float  # McNemar's, exact


def accuracy_change(first: NDArray[np.bool_], second: NDArray[np.bool_]) -> AccuracyChange:
    """Compare two accuracies by the pairs in which exactly one answer is right."""
    return accuracy_change_of(gained=int((second & ~first).sum()), lost=int((first & ~second).sum()), n=len(first))


def accuracy_change_of(*, gained: int, lost: int, n: int) -> AccuracyChange:
    """The same from the numbers of pairs in which only the second, and only the first, is right.

    No pair that differs is not none: with `UNSEEN` more in the variance, two models that answer alike are said to
    differ by no less than exact bounds on a count of zero allow.
    """
    from scipy.special import bdtr

    n += 2
    p_value = min(1.0, 2 * float(bdtr(min(gained, lost), gained + lost, 0.5))) if gained + lost else 1.0
    change = (gained - lost) / n
    return AccuracyChange(Estimate(change, sqrt(((gained + lost + UNSEEN) / n - change**2) / n), n), p_value)


@dataclass(frozen=True, eq=False)
class CalibrationPart:
    """Debiased squared l2 error over equal-mass bins, with what its variance needs."""

    bin: NDArray[np.int64]  # [n] of each sample
    noise: Floats  # [n] of confidence - correct about its bin's mean, times the weight
    gap: Floats  # [b]
    weight: Floats  # [b]
    design: Design | None = None  # of samples that are weighted or depend on each other


def calibration_part(outcomes: Outcomes, r: Ranking, n_bins: int = 15, design: Design | None = None) -> CalibrationPart:
    confidence, correct = outcomes.confidence, outcomes.correct
    index = mass_bin(r, n_bins)[np.searchsorted(-r.score, -confidence)]
    excess = confidence - correct
    own = np.ones(len(excess)) if design is None else design.weight
    count, squares = tally(index, own, n_bins), tally(index, own**2, n_bins)
    gap = tally(index, own * excess, n_bins) / np.where(count > 0, count, 1)
    # Taking the bin's own mean away leaves (m - 1) / m of the variance of m samples, or of m clusters.
    if design is not None and design.cluster is not None:
        totals = tally(design.cluster * n_bins + index, own, design.n_clusters * n_bins).reshape(-1, n_bins)
        squares = (totals**2).sum(0)
    m = count**2 / np.where(squares > 0, squares, 1)
    center = np.where(m >= 2, gap, 0)  # a bin of one cluster tells nothing: its square is taken for noise
    noise = own * (excess - center[index]) * np.where(m >= 2, np.sqrt(m / np.maximum(m - 1, 1)), 1)[index]
    return CalibrationPart(index, noise, gap, count / len(excess), design)


def calibration_estimate(part: CalibrationPart) -> Estimate:
    """The debiased squared error of one model."""
    return _quadratic([(part, 1.0)])


def calibration_difference(a: Sequence[CalibrationPart], b: Sequence[CalibrationPart]) -> Estimate:
    """Debiased squared error of `b` minus that of `a`, on the same samples; of several runs of each the mean."""
    return _quadratic([*((part, 1 / len(b)) for part in b), *((part, -1 / len(a)) for part in a)])


def _quadratic(parts: list[tuple[CalibrationPart, float]]) -> Estimate:
    """Sum of factor * (sum of weight * gap^2) without its bias, for models that share their samples.

    The gaps g are normal about their means with covariance S, so g' Q g - tr QS is unbiased and its variance is
    4 m' Q S Q m + 2 tr QSQS; for the unknown means m, g' Q S Q g is too large by tr QSQS.
    """
    n, b = len(parts[0][0].bin), len(parts[0][0].gap)
    gap = np.concatenate([part.gap for part, _ in parts])
    form = np.concatenate([factor * part.weight for part, factor in parts])  # Q is diagonal
    weight = np.maximum(np.concatenate([part.weight for part, _ in parts]), 1 / n)
    products = np.block([[_products(p, q) for q, _ in parts] for p, _ in parts])
    covariance = products / (n * n * weight[:, None] * weight)
    qs = form[:, None] * covariance
    trace = max(float((qs * qs.T).sum()), 0.0)
    linear = max(float((form * gap) @ covariance @ (form * gap)), 0.0)
    # Between bins: a sample more or less in a bin of large gap also moves the sum.
    between = np.sum([(factor * part.gap**2)[part.bin] for part, factor in parts], axis=0)
    of_bins = estimate(between, parts[0][0].design).error ** 2 if n > 1 else 0.0
    variance = max(4 * linear - 2 * trace, 2 * trace) + of_bins
    # Pure noise is a sum of squares, skewed for one model and symmetric for two; with these degrees Student's tails
    # are heavier down to one in a thousand. The more of the variance is linear, the nearer is the law to normal.
    quadratic = max(2 * trace / variance, 1e-3) if variance > 0 else 1.0
    degrees = (b / 2 if len(parts) == 1 else 2 * b) / quadratic**2
    if parts[0][0].design is not None:
        degrees = min(degrees, parts[0][0].design.degrees)
    return Estimate(float(form @ gap**2 - np.trace(qs)), sqrt(variance), degrees)


def _products(a: CalibrationPart, b: CalibrationPart) -> Floats:
    """Sum of the products of both noises over the samples in each pair of bins, [b, b]."""
    bins = len(a.gap)
    if a.design is not None and a.design.cluster is not None:
        return by_cluster(a, a.design).T @ by_cluster(b, a.design)
    return tally(a.bin * bins + b.bin, a.noise * b.noise, bins * bins).reshape(bins, bins)


def by_cluster(part: CalibrationPart, design: Design) -> Floats:
    """Sums of the noise over the samples of each cluster in each bin, [g, b]."""
    bins = len(part.gap)
    assert design.cluster is not None, "independent samples have no clusters"
    return tally(design.cluster * bins + part.bin, part.noise, design.n_clusters * bins).reshape(-1, bins)


def fisher(wrong: int, n: int, other_wrong: int, other_n: int) -> float:
    """Fisher's exact test: the chance of so many errors among `n` or more, were they drawn from all samples alike."""
    from scipy.special import gammaln

    errors = wrong + other_wrong
    k = np.arange(wrong, min(n, errors) + 1)  # errors that may fall to the n

    def log_choose(of: int, some: ArrayLike) -> Floats:
        return np.asarray(gammaln(of + 1) - gammaln(np.add(some, 1)) - gammaln(np.subtract(of, some) + 1))

    ways = log_choose(errors, k) + log_choose(n + other_n - errors, n - k) - log_choose(n + other_n, n)
    return min(float(np.exp(ways).sum()), 1.0)


def holm(p_values: list[float]) -> list[float]:
    """P-values corrected for their number (Holm 1979), in the order given."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    corrected, worst = [0.0] * len(p_values), 0.0
    for place, index in enumerate(order):
        worst = max(worst, min(1.0, (len(p_values) - place) * p_values[index]))
        corrected[index] = worst
    return corrected
