"""Selective classification for deep neural networks (Geifman & El-Yaniv, NeurIPS 2017): answer when sure enough.

Which threshold keeps a promise about the errors among the accepted answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Decimal
from math import ceil, floor, inf, isfinite, log, log1p, log10, nan

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assay import metrics
from assay._core.arrays import InputError
from assay.metrics import Rankable, Ranking

STEP = 1.005  # each look takes in .5 % more samples than the last
APART = 10  # a further start, with its share of the doubt, for each factor of this in the number of samples


@dataclass(frozen=True)
class Threshold:
    """Accept samples that score at least `value`: `accepted` of `n` held-out samples, of which `wrong` are errors."""

    value: float  # midway between two scores; -inf accepts all, inf none
    guaranteed_risk: float  # the share of errors among accepted samples is at most this ...
    confidence: float  # ... with this probability over held-out sets
    n: int
    accepted: int
    wrong: int
    reason: str = ""  # why nothing is accepted

    @property
    def coverage(self) -> float:
        """Share of samples accepted."""
        return self.accepted / self.n

    @property
    def workload(self) -> float:
        """Share of samples expected to be left for review."""
        return 1 - self.coverage

    @property
    def observed_risk(self) -> float:
        """Share of errors among accepted samples; nan if there are none."""
        return self.wrong / self.accepted if self.accepted else nan

    def __str__(self) -> str:
        if not self.accepted:
            return f"accept nothing: {self.reason}"
        promise = f"at most {self.guaranteed_risk:.2%} errors on {self.coverage:.1%} of inputs"
        rest = f"{self.observed_risk:.2%} seen; {self.workload:.1%} left for review"
        return f"accept above {spelled(self.value, up=True)}: {promise} at {self.confidence:.0%} confidence, {rest}"


def spelled(value: float, *, up: bool = False) -> str:
    """A score to read: a confidence with three digits of its distance from 1, any other with six.

    A threshold is rounded `up`: who takes what is written for it accepts no more than was promised.

    >>> spelled(0.87623), spelled(0.87623, up=True), spelled(0.99999995138), spelled(-inf)
    ('0.876', '0.877', '0.9999999514', 'anything')
    """
    if not isfinite(value) or value == 0:
        return "anything" if value == -inf else f"{value:g}"
    near_one = 0.5 < value < 1
    digits = 2 + ceil(-log10(1 - value)) if near_one else 5 - floor(log10(abs(value)))
    rounding = ROUND_CEILING if up else ROUND_HALF_EVEN
    written = f"{Decimal(value).quantize(Decimal(1).scaleb(-digits), rounding):f}"
    return written if near_one or "." not in written else written.rstrip("0").rstrip(".")


def choose_threshold(
    held_out: Rankable,
    *,
    risk: float | None = None,
    coverage: float | None = None,
    error_cost: float | None = None,
    confidence: float = 0.95,
) -> Threshold:
    """The threshold of largest coverage whose share of errors is at most `risk`, with probability `confidence`.

    Or, instead of `risk`, which is .01 where nothing is given: the threshold that accepts a given `coverage`, or the
    one of least cost where an accepted error costs `error_cost` times a review. Bounds are exact binomial ones, and
    looking at several thresholds is paid for. They hold for samples drawn like the held-out set, under a map that was
    fitted on others.

    >>> import assay.examples
    >>> t = choose_threshold(assay.examples.load(split="held_out"), risk=0.1)
    >>> print(t)
    accept above 0.9803: at most 10.00% errors on 62.2% of inputs at 95% confidence, 9.00% seen; 37.8% left for review
    """
    if not 0 < confidence < 1:
        raise InputError(f"confidence must lie between 0 and 1, got {confidence}")
    if sum(way is not None for way in (risk, coverage, error_cost)) > 1:
        raise InputError("give only one of risk, coverage and error_cost")
    r = metrics.ranking(held_out)
    if coverage is not None:
        return _by_coverage(r, coverage, confidence)
    if error_cost is not None:
        return _by_cost(r, error_cost, confidence)
    return _by_risk(r, 0.01 if risk is None else risk, confidence)


def risk_bound(wrong: ArrayLike, accepted: ArrayLike, confidence: float) -> NDArray[np.float64]:
    """The exact upper bound of Clopper & Pearson for a share of errors."""
    from scipy.special import betaincinv

    k, n = np.asarray(wrong, dtype=float), np.asarray(accepted, dtype=float)
    return np.where(k < n, betaincinv(k + 1, np.maximum(n - k, 0.5), confidence), 1.0)


def _by_risk(r: Ranking, risk: float, confidence: float) -> Threshold:
    """Test thresholds from the strictest to the most lenient, all chosen beforehand by how many samples they accept.

    A threshold that passes hands its doubt to the next (the fallback procedure of Wiens, 2003), so that only as many
    shares of the doubt are needed as there are places to start from after a failure.
    """
    from scipy.special import bdtr

    if not 0 < risk < 1:
        raise InputError(f"risk must lie between 0 and 1, got {risk}")
    doubt = 1 - confidence
    least = ceil(log(doubt) / log1p(-risk))
    if r.n < least:
        promise = f"even without an error, {risk:.3g} at {confidence:.3g} takes {least} samples"
        return _none(r, risk, confidence, f"{promise} and there are {r.n}")
    n_starts = 1 + int(log(r.n / least) / log(APART))
    first = ceil(log(doubt / n_starts) / log1p(-risk))
    looks = _looks(r, first, STEP)
    starts = np.searchsorted(r.kept[looks], first * (r.n / first) ** (np.arange(n_starts) / n_starts) - 0.5)
    share = np.bincount(np.minimum(starts, len(looks) - 1), minlength=len(looks)) * doubt / n_starts
    # Chance of so few errors if the risk were as high as that.
    chance = bdtr(r.wrong[looks], r.kept[looks].astype(int), risk)
    best, carried = None, 0.0
    for look, p, own in zip(looks, chance, share, strict=True):
        carried = carried + own if p <= carried + own else 0.0
        best = look if carried > 0 else best
    if best is None:
        wrong, kept = int(r.wrong[looks[0]]), int(r.kept[looks[0]])
        reason = f"there are {wrong} errors among the {kept} most confident"
        return _none(r, risk, confidence, f"{reason}; {risk:.3g} cannot be promised at {confidence:.3g}")
    return _at(r, int(best), risk, confidence)


def _by_coverage(r: Ranking, coverage: float, confidence: float) -> Threshold:
    """One look, so nothing to pay for; of tied samples all are accepted."""
    if not 0 < coverage <= 1:
        raise InputError(f"coverage must lie between 0 and 1, got {coverage}")
    row = int(np.searchsorted(r.kept, coverage * r.n - 1e-9))
    return _at(r, row, float(risk_bound(r.wrong[row], r.kept[row], confidence)), confidence)


def _by_cost(r: Ranking, error_cost: float, confidence: float) -> Threshold:
    """Least cost of errors and reviews; the bound holds for all looks at once."""
    if not error_cost > 0:
        raise InputError(f"error_cost must be positive, got {error_cost}")
    looks = _looks(r, 1, 1.02)  # few, as here each one takes its share of the doubt
    cost = error_cost * r.wrong[looks] + (r.n - r.kept[looks])
    best = int(looks[np.argmin(cost)])
    if cost.min() >= r.n:
        return _none(r, 0.0, confidence, f"at {error_cost:.3g} reviews an error, reviewing everything costs least")
    doubt = (1 - confidence) / len(looks)
    return _at(r, best, float(risk_bound(r.wrong[best], r.kept[best], 1 - doubt)), confidence)


def _looks(r: Ranking, first: int, step: float) -> NDArray[np.int64]:
    """Rows of the ranking that accept `first` samples and then each time `step` as many, to all; ties move together."""
    n_steps = max(ceil(log(r.n / first) / log(step)), 0) if first < r.n else 0
    sizes = np.append(np.floor(first * step ** np.arange(n_steps)), r.n)
    return np.unique(np.searchsorted(r.kept, sizes))


def _at(r: Ranking, row: int, guaranteed: float, confidence: float) -> Threshold:
    value = -inf if row == len(r.score) else float(r.score[row - 1] + r.score[row]) / 2
    # Two neighbouring doubles have none between them, and their mean may be the lower one.
    if row < len(r.score) and value <= r.score[row]:
        value = float(r.score[row - 1])
    return Threshold(value, guaranteed, confidence, r.n, int(r.kept[row]), int(r.wrong[row]))


def _none(r: Ranking, risk: float, confidence: float, reason: str) -> Threshold:
    return Threshold(inf, risk, confidence, r.n, 0, 0, reason)
