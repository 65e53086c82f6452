"""Error bars that hold: a 95 % interval for each metric that has one, in closed form.

The bootstrap of a binned error is invalid near zero, where the error is a sum of absolute values of noise. Here the
law of the statistic is inverted instead: an interval holds the true values under which the observed one is not unusual.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import erf, exp, inf, log, pi, sqrt

import numpy as np

from assay._core.arrays import Floats
from assay.metrics._bins import Bins
from assay.metrics._calibration import ece
from assay.metrics._failure import fpr95, risk_at_coverage
from assay.metrics._ranking import Ranking
from assay.metrics.inference._influence import Influence
from assay.metrics.inference._noise import NoiseFloor

Z = 1.959963984540054  # of a two-sided level of 95 %


@dataclass(frozen=True)
class Interval:
    low: float
    high: float

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


def proportion_interval(hits: float, n: float, z: float = Z) -> Interval:
    """Wilson's interval of a share; `n` may be an effective number of samples."""
    p, shrink = hits / n, 1 + z**2 / n
    half = z * sqrt(p * (1 - p) / n + z**2 / (4 * n**2)) / shrink
    center = (p + z**2 / (2 * n)) / shrink
    return Interval(max(center - half, 0.0), min(center + half, 1.0))


def mean_interval(column: Floats, *, most: float = inf) -> Interval | None:
    """Student's interval for the mean of a column of values in [0, most]; None for one sample or an infinite value."""
    if len(column) < 2 or not np.isfinite(column).all():
        return None
    mean, half = float(column.mean()), student(len(column) - 1) * float(column.std(ddof=1)) / sqrt(len(column))
    return Interval(max(mean - half, 0.0), min(mean + half, most))


def share_interval(value: float, influence: Influence) -> Interval | None:
    """Interval for a ranking metric in (0, 1), on the logit scale, where its law is nearest to normal; None at 0 and 1.

    The rarest errors move a ranking most and are seen least, so a quarter of an unseen one is added to the variance;
    without it intervals near a perfect ranking cover the truth 80 to 90 % of the time.
    """
    if not 0 < value < 1:
        return None
    fewest = min(influence.ranking.n_wrong, influence.ranking.n - influence.ranking.n_wrong)
    half = student(fewest - 1) * sqrt(influence.variance() + influence.unseen() / 4) / (value * (1 - value))
    center = log(value / (1 - value))
    return Interval(_expit(center - half), _expit(center + half))


def ece_interval(bins: Bins, floor: NoiseFloor, *, doubt: float = 2.0) -> Interval:
    """Interval for the l1 binned error of the population, over the given bins.

    Bin b holds d_b = weight * gap with noise of scale s_b, and the error is the sum of |d_b|, seen too large by the
    noise in bins whose d_b is small beside s_b. For the upper end the bias is taken as small as it can be, which for a
    given true error is when all d_b / s_b are equal; for the lower end as large as the data allow: |d_b| may be `doubt`
    scales below what was seen, down to 0. The lower end is 0 where the noise floor explains what was seen.
    """
    scale = bin_noise(bins)
    size = np.abs(bins.weight * bins.gap)[scale > 0]
    scale = scale[scale > 0]
    seen, total, spread = ece(bins), float(scale.sum()), float((scale**2).sum())
    if total == 0:
        return Interval(seen, seen)
    # Less than noise usually shows is luck, and no reason for a narrower interval.
    least = max(seen, floor.quantile(0.5))

    def reach(error: float) -> float:
        x = error / total
        mean = _folded_mean(x)
        return total * mean - Z * sqrt(spread * max(1 + x**2 - mean**2, 0.0))

    high = min(max(_last_where(lambda error: reach(error) <= least, least + 10 * total), seen), 1.0)
    if seen <= floor.quantile(0.975):
        return Interval(0.0, high)
    x = np.maximum(size / scale - doubt, 0)
    mean = np.array([_folded_mean(value) for value in x])
    bias, variance = float(scale @ (mean - x)), float(scale**2 @ (1 + x**2 - mean**2))
    return Interval(max(seen - bias - Z * sqrt(variance), 0.0), high)


def ece_l2_interval(bins: Bins, floor: NoiseFloor) -> Interval:
    """Interval for the l2 binned error of the population; its observed square is about a scaled non-central chi-square.

    As for `ece_interval`, the lower end is 0 where the noise floor explains what was seen.
    """
    from scipy.special import chndtrinc

    noise = (bin_noise(bins) / np.where(bins.count > 0, bins.weight, 1)) ** 2  # variance of each bin's gap
    mean = float((bins.weight * noise).sum())
    if mean == 0:
        return Interval(ece(bins, norm=2), ece(bins, norm=2))
    degrees = mean**2 / float((bins.weight**2 * noise**2).sum())
    unit = mean / degrees
    seen = ece(bins, norm=2)

    def end(error: float, p: float) -> float:
        return sqrt(max(float(chndtrinc(error**2 / unit, degrees, p)), 0.0) * unit)

    high = min(max(end(max(seen, floor.quantile(0.5)), 0.025), seen), 1.0)
    return Interval(0.0 if seen <= floor.quantile(0.975) else end(seen, 0.975), high)


def bin_noise(bins: Bins) -> Floats:
    """Standard deviation of weight * gap of each bin; 0 in an empty one.

    A bin without an error is no proof that it has none: its accuracy is drawn towards its confidence by one sample, and
    its errors are as doubtful as if there had been one, or a half of all.
    """
    n = float(bins.count.sum())
    p = (bins.correct + bins.confidence / np.maximum(bins.count, 1)) / (bins.count + 1)
    alike = (bins.correct == 0) | (bins.correct == bins.count)
    errors = np.maximum(bins.count * p * (1 - p), np.where(alike, np.minimum(bins.count / 4, 1), 0))
    return np.sqrt(errors + bins.count * bins.gap**2 * (1 - bins.weight)) / n


def fpr95_interval(r: Ranking) -> Interval:
    """Interval for FPR95: joins the uncertainty of the threshold and of the errors that pass it (Zou & Donner 2008).

    The threshold's doubt is the order statistics of the right answers that may have 95 % of them above.
    """
    value, n_right = fpr95(r), r.n - r.n_wrong
    passed = proportion_interval(value * r.n_wrong, r.n_wrong, student(r.n_wrong - 1))
    spread = student(n_right - 1) * sqrt(0.95 * 0.05 / n_right)
    tpr, fpr = r.right / r.right[-1], r.wrong / r.wrong[-1]
    moved = fpr[np.minimum(np.searchsorted(tpr, [0.95 - spread, 0.95 + spread]), len(fpr) - 1)]
    low = value - sqrt((value - passed.low) ** 2 + (value - moved[0]) ** 2)
    high = value + sqrt((passed.high - value) ** 2 + (moved[1] - value) ** 2)
    return Interval(max(low, 0.0), min(high, 1.0))


def risk_interval(r: Ranking, coverage: float) -> Interval:
    """Interval for the risk at a coverage: Wilson's, with fewer samples to account for the uncertain threshold.

    The variance is (R (1 - R) + (R - e)^2 (1 - coverage)) / (coverage n), with e the error rate at the threshold.
    """
    risk, kept = risk_at_coverage(r, coverage), coverage * r.n
    window = sqrt(r.n)
    first = np.searchsorted(r.kept, max(kept - window, 0), side="right") - 1
    last = np.searchsorted(r.kept, min(kept + window, r.n))
    edge = float((r.wrong[last] - r.wrong[first]) / (r.kept[last] - r.kept[first]))
    own, moved = risk * (1 - risk), (risk - edge) ** 2 * (1 - coverage)
    effective = kept * own / (own + moved) if own > 0 else kept
    return proportion_interval(risk * effective, effective)


def student(degrees: float) -> float:
    """97.5 % quantile of Student's law."""
    from scipy.special import stdtrit

    return float(stdtrit(max(degrees, 1), 0.975))


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


def _expit(x: float) -> float:
    return 1 / (1 + exp(-x)) if x > 0 else exp(x) / (1 + exp(x))
