"""Intervals of binned calibration errors.

The bootstrap of a binned error is invalid near zero, where the error is a sum of absolute values of noise. Here the
law of the statistic is inverted instead: an interval holds the true values under which the observed one is not unusual.
"""

from __future__ import annotations

from collections.abc import Callable
from math import erf, exp, hypot, pi, sqrt

import numpy as np

from assay._core.arrays import Floats, Mask
from assay.metrics._bins import Bins
from assay.metrics._calibration import ece
from assay.metrics._ranking import ROUNDING
from assay.metrics.inference._estimate import Estimate
from assay.metrics.inference._intervals import Interval, Z, proportion_interval
from assay.metrics.inference._noise import NoiseFloor


def ece_interval(bins: Bins, floor: NoiseFloor, *, doubt: float = 2.0) -> Interval:
    """Interval for the l1 binned error of the population, over the given bins.

    Bin b holds d_b = weight * gap with noise of scale s_b, and the error is the sum of |d_b|, seen too large by the
    noise in bins whose d_b is small beside s_b. For the upper end the bias is taken as small as it can be, which for a
    given true error is when all d_b / s_b are equal; for the lower end as large as the data allow: |d_b| may be `doubt`
    scales below what was seen, down to 0. The lower end is 0 where the noise floor explains what was seen.

    Two things fold no noise. Bins without an error (or without a right answer) may have had some: no more than an
    exact bound allows in all of them together. And where all gaps have one sign, as where confidence is near 1, the
    error is the distance of mean confidence from accuracy, for which there is an exact bound too.
    """
    scale = bin_noise(bins)
    size = np.abs(bins.weight * bins.gap)[scale > 0]
    scale = scale[scale > 0]
    seen, total, spread = ece(bins), float(scale.sum()), float((scale**2).sum())
    # Less than noise usually shows is luck, and no reason for a narrower interval.
    least = max(seen, floor.quantile(0.5))

    def reach(error: float) -> float:
        x = error / total
        mean = _folded_mean(x)
        return total * mean - Z * sqrt(spread * max(1 + x**2 - mean**2, 0.0))

    folded = _last_where(lambda error: reach(error) <= least, least + 10 * total)
    mixed = seen + hypot(max(folded - seen, 0.0), _unseen(bins))
    high = min(max(mixed, _of_one_sign(bins, seen - floor.mean)), 1.0)
    if seen <= floor.quantile(0.975):
        return Interval(0.0, high)
    x = np.maximum(size / scale - doubt, 0)
    mean = np.array([_folded_mean(value) for value in x])
    bias, variance = float(scale @ (mean - x)), float(scale**2 @ (1 + x**2 - mean**2))
    return Interval(max(seen - bias - Z * sqrt(variance), 0.0), high)


def _unseen(bins: Bins) -> float:
    """What errors can add in bins that have shown none, or right answers in those that have shown none, together."""
    silent = (bins.count > 0) & _alike(bins)
    n = float(bins.samples[silent].sum())
    return float(bins.weight[silent].sum()) * proportion_interval(0, n).high if n > 0 else 0.0


def _of_one_sign(bins: Bins, beyond_noise: float) -> float:
    """Upper end if all gaps have one sign; what the seen error has beyond that and beyond noise is added."""
    n, total = float(bins.samples.sum()), float(bins.count.sum())
    right, claimed = float(bins.correct.sum()) / total, float(bins.confidence.sum()) / total
    bound = proportion_interval(right * n, n)
    rest = max(beyond_noise - abs(claimed - right), 0.0)
    return max(claimed - bound.low, bound.high - claimed) + rest


def ece_l2_interval(bins: Bins, floor: NoiseFloor, square: Estimate) -> Interval:
    """Interval for the l2 binned error of the population; its observed square is about a scaled non-central chi-square.

    Where errors are few in some bins that is not its law: the upper end is at least that of the unbiased estimate of
    the square, whose variance is measured. As for `ece_interval`, the lower end is 0 where the noise floor explains
    what was seen, and less than noise usually shows is no reason for a narrower interval.
    """
    from scipy.special import chndtrinc

    noise = (bin_noise(bins) / np.where(bins.count > 0, bins.weight, 1)) ** 2  # variance of each bin's gap
    mean, seen, half = float((bins.weight * noise).sum()), ece(bins, norm=2), square.half()
    degrees = mean**2 / float((bins.weight**2 * noise**2).sum())
    unit = mean / degrees

    def end(error: float, p: float) -> float:
        return sqrt(max(float(chndtrinc(error**2 / unit, degrees, p)), 0.0) * unit)

    high = max(end(max(seen, floor.quantile(0.5)), 0.025), sqrt(max(square.value, 0.0) + half), seen)
    if seen <= floor.quantile(0.975):
        return Interval(0.0, min(high, 1.0))
    return Interval(end(seen, 0.975), min(high, 1.0))


def bin_noise(bins: Bins) -> Floats:
    """Standard deviation of weight * gap of each bin; 0 in an empty one.

    A bin without an error is no proof that it has none: its accuracy is drawn towards its confidence by one sample, and
    its errors are as doubtful as if there had been one, or a half of all.
    """
    m, some = bins.samples, np.maximum(bins.samples, 1)
    claimed = bins.accuracy + bins.gap
    p = (bins.accuracy * m + claimed) / (m + 1)
    errors = np.maximum(m * p * (1 - p), np.where(_alike(bins), np.minimum(m / 4, 1), 0))
    return np.asarray(np.sqrt(errors + m * bins.gap**2 * (1 - bins.weight)) / some * bins.weight)


def _alike(bins: Bins) -> Mask:
    """Bins whose answers are all right or all wrong."""
    return np.asarray((bins.correct <= ROUNDING) | (bins.count - bins.correct <= ROUNDING))


def _folded_mean(x: float) -> float:
    """E|x + Z| for a standard normal Z."""
    return x * erf(x / sqrt(2)) + sqrt(2 / pi) * exp(-(x**2) / 2)


def _last_where(holds: Callable[[float], bool], high: float) -> float:
    """Largest value up to `high` at which a condition that turns false once still holds."""
    low = 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return high
