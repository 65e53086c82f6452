"""Intervals of shares and means that hold where what is counted is rare."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from assay._core.arrays import Floats, Mask
from assay.metrics._tables import Moments

FEW = 5  # of fewer samples the mean says little about the next one
Z = 1.959963984540054  # of a two-sided level of 95 %


@dataclass(frozen=True)
class Interval:
    low: float
    high: float

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


def proportion_interval(hits: float, n: float) -> Interval:
    """The exact interval of a share (Clopper & Pearson 1934); `n` may be an effective number of samples."""
    from scipy.special import betaincinv

    low = float(betaincinv(hits, n - hits + 1, 0.025)) if hits > 0 else 0.0
    high = float(betaincinv(hits + 1, n - hits, 0.975)) if hits < n else 1.0
    return Interval(low, high)


def loss_interval(loss: Floats, correct: Mask, *, worst: float, needed: int = 0) -> Interval:
    """Interval for a mean loss that errors and right answers differ in: how many there are, and what each costs, apart.

    The number of the rarer kind has an exact interval, the mean losses of both Student's, and these sources of doubt
    are joined as independent ones (Zou & Donner 2008). An answer costs `worst` at most; of fewer than two nothing else
    is known. `needed` of each kind are a condition of showing the interval.
    """
    return moments_interval(moments_of(loss[correct]), moments_of(loss[~correct]), worst=worst, needed=needed)


def moments_interval(right: Moments, wrong: Moments, *, worst: float, needed: int = 0) -> Interval:
    """The same from the losses of right answers and of errors in short."""
    rarer, other = (wrong, right) if right.n >= wrong.n else (right, wrong)
    n, k = right.n + wrong.n, rarer.n
    rate, share = k / n, proportion_interval(k, n)
    common, common_half = _mean_and_half(other)
    cost, half = _mean_and_half(rarer)
    cheapest, dearest = (max(cost - half, 0.0), min(cost + half, worst)) if k > 1 else (0.0, worst)
    more, fewer = share.high - rate, rate - share.low + luck(k, needed) * sqrt(k) / n
    dear, cheap = (dearest, cheapest) if k < FEW else (cost, cost)
    up = max(more * (dear - common), fewer * (common - cost), 0.0)
    down = max(fewer * (cost - common), more * (common - cheap), 0.0)
    mean = (right.n * right.mean + wrong.n * wrong.mean) / n
    low = mean - _norm(down, rate * (cost - cheapest), (1 - rate) * common_half)
    return Interval(max(low, 0.0), min(mean + _norm(up, rate * (dearest - cost), (1 - rate) * common_half), worst))


def moments_of(column: Floats) -> Moments:
    """A column in short; 0 of an empty one."""
    n = len(column)
    return Moments(n, float(column.sum()) / max(n, 1), float(column.var(ddof=1)) if n > 1 else 0.0)


def _mean_and_half(m: Moments) -> tuple[float, float]:
    """Mean and half the width of Student's interval."""
    return m.mean, student(m.n - 1) * sqrt(m.variance / m.n) if m.n > 1 else 0.0


def _norm(*parts: float) -> float:
    return float(np.linalg.norm(parts))


def luck(seen: float, needed: int) -> float:
    """By how many standard deviations more a number may be seen too large if only a large one is shown.

    Of counts that are shown from `needed` on, those hardly as large are often lucky ones: the end of an interval for
    smaller counts is that much farther off, so that shown intervals hold as often as others.
    """
    return max(1 - (seen - needed) / 12, 0.0) if needed else 0.0


def student(degrees: float, level: float = 0.975) -> float:
    """Quantile of Student's law, that of 97.5 % unless told."""
    from scipy.special import stdtrit

    return float(stdtrit(max(degrees, 1), level))
