"""How many samples does it take to show a difference of a given size?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, isnan, pi, sqrt

import numpy as np
from scipy.special import erf, ndtri

from assay import comparing
from assay._core.arrays import Floats, InputError
from assay.metrics import Tables
from assay.metrics.inference import UNSEEN, auroc_influence, design, estimate, too_few_clusters, too_few_in
from assay.predictions import Outcomes, Predictions

LEVEL = comparing.LEVEL  # of a two-sided test
ROUNDING = 1e-9  # of a standard deviation
DETECTABLE = ("ece", "auroc", "risk")


@dataclass(frozen=True)
class Plan:
    """Samples that show a difference of this size 4 times of 5."""

    metric: str
    size: float
    n: int
    what: str  # the difference, in words
    tests: int = 1  # that share the level of 5 %, as the axes of a comparison do
    clustered: bool = False  # whether the samples come in clusters, like those of the pilot

    def __str__(self) -> str:
        points = "1 point" if self.size == 0.01 else f"{100 * self.size:g} points"
        where = " in clusters like these" if self.clustered else ""
        level = f", if {self.tests} axes are compared and share the level of 5 %" if self.tests > 1 else ""
        return f"{self.n:,} samples{where} show {self.what} of {points} 4 times of 5{level}"


@dataclass(frozen=True)
class _Noise:
    """Standard deviation of what one sample adds to a metric, and the tests that share the level."""

    sd: float
    what: str
    tests: int = 1
    square: float = 0.0  # of a pair of answers that differ: a larger difference brings more noise, as more pairs do

    def needed(self, size: float) -> int:
        """Samples n that detect the size: z sd / sqrt(n), and of pairs those that `compare` adds to what it has seen.

        These are `UNSEEN` pairs in the variance, and z^2 / 4 that a difference of this size brings.
        """
        z, square = _quantiles(self.tests), self.square
        # size n = z sqrt(sd^2 n + UNSEEN square) + z^2 square / 4
        own, unseen, more = (z * self.sd) ** 2, z**2 * UNSEEN * square, z**2 * square / 4
        middle = 2 * size * more + own
        return ceil((middle + sqrt(middle**2 + 4 * size**2 * (unseen - more**2))) / (2 * size**2))


@dataclass(frozen=True, eq=False)
class _Bins:
    """The bins of a model's ECE, of which over-confidence moves all gaps alike, and the noise of a sample in each."""

    confidence: Floats  # [b] mean of each bin
    weight: Floats  # [b] together 1
    effect: float  # times the variance of independent samples of equal weight
    what: str = "over-confidence"
    tests: int = 1

    def needed(self, size: float) -> int:
        """Samples of which ECE exceeds what noise alone shows one time in twenty, as `audit` judges, 4 times of 5."""
        enough = 2
        while not self._shown(enough, size):
            enough *= 2
        low = enough // 2
        while enough - low > 1:
            middle = (low + enough) // 2
            low, enough = (low, middle) if self._shown(middle, size) else (middle, enough)
        return enough

    def _shown(self, n: int, size: float) -> bool:
        (mean, sd), (noise, own) = self._law(n, size), self._law(n, 0.0)
        return bool(mean - ndtri(0.8) * sd >= noise + ndtri(1 - LEVEL) * own)

    def _law(self, n: int, size: float) -> tuple[float, float]:
        """Mean and standard deviation of ECE: a sum of sizes of normal gaps, independent of each other."""
        right = np.clip(self.confidence - size, 0, 1)
        scale = np.sqrt(self.effect * self.weight * np.maximum(right * (1 - right), 1 / n) / n)
        x = self.weight * size / scale
        mean = x * erf(x / sqrt(2)) + sqrt(2 / pi) * np.exp(-(x**2) / 2)
        return float(scale @ mean), sqrt(float(scale**2 @ np.maximum(1 + x**2 - mean**2, 0)))


def plan(
    pilot: Predictions | Outcomes, detect: Mapping[str, float], other: Predictions | Outcomes | None = None
) -> list[Plan]:
    """Number of samples for each metric of `detect` (ece, auroc, risk), from the noise of a pilot sample.

    Of one model: to have `audit` tell a calibrated model from one whose confidence is too high by so much everywhere
    (ece), or an AUROC or an error rate from a given value. Of two models on the same samples: to tell them apart by
    AUROC or by error rate, in the most careful step of `compare`, whose axes share the level. Weights and clusters of
    the pilot count: the samples are those of a study with weights and clusters like these.

    >>> import assay.examples
    >>> print(plan(assay.examples.load(), {"ece": 0.01})[0])
    3,295 samples show over-confidence of 1 point 4 times of 5
    """
    for metric, size in detect.items():
        if metric not in DETECTABLE:
            raise InputError(f"cannot plan for '{metric}'; plan for {', '.join(DETECTABLE)}")
        if not 0 < size < 1:
            raise InputError(f"{metric} to detect must lie between 0 and 1, got {size}")
    t = Tables(pilot)
    _refuse_one(t)
    compared = None if other is None else comparing.compare(pilot, other)
    noise = _of_one(t) if compared is None else _of_two(compared)
    missing = [metric for metric in detect if metric not in noise]
    if missing:
        raise InputError(f"these rows do not tell the noise of '{missing[0]}': {_why(missing[0], t, compared)}")
    return [
        Plan(key, size, noise[key].needed(size), noise[key].what, noise[key].tests, pilot.cluster is not None)
        for key, size in detect.items()
    ]


def _quantiles(tests: int) -> float:
    """Of a two-sided test whose level `tests` share, and of a power of 80 %, together."""
    return float(ndtri(1 - LEVEL / 2 / tests) + ndtri(0.8))


def _refuse_one(t: Tables) -> None:
    doubt = too_few_clusters(t) or ("only 1 row, at least 2 are needed" if t.ranking.n < 2 else "")
    if doubt:
        raise InputError(f"{doubt} to tell how noisy a model is; give a larger pilot")


def _of_one(t: Tables) -> Mapping[str, _Noise | _Bins]:
    """The noise of each metric of one model, with the weights and clusters of its rows."""
    o, d, n = t.outcomes, design(t), t.ranking.n
    wrong = estimate((~o.correct).astype(np.float64), d)
    found = {"risk": _Noise(wrong.error * sqrt(n), "a change of the error rate")} if 0 < t.ranking.n_wrong < n else {}
    if not too_few_in(t):
        influence = auroc_influence(t.ranking)
        variance = influence.variance() if d is None else d.variance(influence.of(d.rows))
        found["auroc"] = _Noise(sqrt(n * variance), "a change of AUROC")
    shown: dict[str, _Noise | _Bins] = {key: noise for key, noise in found.items() if noise.sd > ROUNDING}
    return shown | ({"ece": _bins(t)} if t.is_probability else {})


def _bins(t: Tables) -> _Bins:
    bins, d = t.width, design(t)
    some = bins.count > 0
    effect = 1.0 if d is None else d.effect(d.rows.confidence - d.rows.correct) * float(d.squares.sum()) / d.n
    return _Bins((bins.accuracy + bins.gap)[some], bins.weight[some], effect)


def _of_two(compared: comparing.Comparison) -> Mapping[str, _Noise | _Bins]:
    tests = sum(not isnan(verdict.p_value) for verdict in compared.verdicts)
    found = {}
    for metric, key, what in (("auroc", "auroc", "AUROC"), ("risk", "accuracy", "error rate")):
        difference = compared.differences.get(key)
        if difference is not None and difference.estimate is not None and difference.estimate.error > 0:
            square = compared.n / difference.pairs
            variance = difference.estimate.error**2 * compared.n - UNSEEN * square / compared.n
            found[metric] = _Noise(sqrt(max(variance, 0)), f"a difference in {what}", tests, square)
    return found


def _why(metric: str, t: Tables, compared: comparing.Comparison | None) -> str:
    if compared is not None:
        if metric == "ece":
            return "a difference of two ECEs has no test"
        difference = compared.differences.get("accuracy" if metric == "risk" else metric)
        return (difference.note if difference else "") or "both models answer alike"
    if metric == "ece":
        return "the score is no probability"
    few = too_few_in(t) if metric == "auroc" else ""
    if few or 0 < t.ranking.n_wrong < t.ranking.n:
        return few or "all clusters are alike"
    return "every answer is wrong" if t.ranking.n_wrong else "there is no error among them"
