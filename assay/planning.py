"""How many samples does it take to show a difference of a given size?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, isnan, sqrt

import numpy as np

from assay import comparing
from assay._core.arrays import InputError
from assay.metrics import Tables
from assay.metrics.inference import auroc_influence, design, estimate, too_few_in
from assay.predictions import Outcomes, Predictions

LEVEL = comparing.LEVEL  # of a two-sided test
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
    of_pairs: bool = False  # whether a larger difference brings more noise, as more pairs of answers differ

    def needed(self, size: float) -> int:
        """Samples n of which size = z sd / sqrt(n), of pairs z^2 / (4 n) more: the detectable size of `compare`."""
        return ceil((_quantiles(self.tests) * (self.sd + sqrt(self.sd**2 + self.of_pairs * size)) / (2 * size)) ** 2)


def plan(
    pilot: Predictions | Outcomes, detect: Mapping[str, float], other: Predictions | Outcomes | None = None
) -> list[Plan]:
    """Number of samples for each metric of `detect` (ece, auroc, risk), from the noise of a pilot sample.

    Of one model: to tell a calibrated model from one whose confidence is too high by so much (ece), or an AUROC or an
    error rate from a given value. Of two models on the same samples: to tell them apart by AUROC or by error rate, in
    the most careful step of `compare`, whose axes share the level. Weights and clusters of the pilot count: the samples
    are those of a study with weights and clusters like these.

    >>> import assay.examples
    >>> print(plan(assay.examples.load(), {"ece": 0.01})[0])
    11,958 samples show over-confidence of 1 point 4 times of 5
    """
    for metric, size in detect.items():
        if metric not in DETECTABLE:
            raise InputError(f"cannot plan for '{metric}'; plan for {', '.join(DETECTABLE)}")
        if not 0 < size < 1:
            raise InputError(f"{metric} to detect must lie between 0 and 1, got {size}")
    t = Tables(pilot)
    _refuse_one(t)
    noise = _of_one(t) if other is None else _of_two(pilot, other)
    missing = [metric for metric in detect if metric not in noise]
    if missing:
        raise InputError(f"these rows do not tell the noise of '{missing[0]}': {_why(missing[0], t, other)}")
    return [
        Plan(key, size, noise[key].needed(size), noise[key].what, noise[key].tests, pilot.cluster is not None)
        for key, size in detect.items()
    ]


def _quantiles(tests: int) -> float:
    """Of a two-sided test whose level `tests` share, and of a power of 80 %, together."""
    from scipy.special import ndtri

    return float(ndtri(1 - LEVEL / 2 / tests) + ndtri(0.8))


def _refuse_one(t: Tables) -> None:
    d = design(t)
    if (t.ranking.n if d is None else d.units) < 2:
        unit = "row" if d is None or d.cluster is None else "cluster"
        raise InputError(f"one {unit} does not tell how noisy a model is; give a pilot of some more")


def _of_one(t: Tables) -> dict[str, _Noise]:
    """The noise of each metric of one model, with the weights and clusters of its rows."""
    o, d, n = t.outcomes, design(t), t.ranking.n
    found = {"risk": _Noise(estimate((~o.correct).astype(np.float64), d).error * sqrt(n), "a change of the error rate")}
    if o.is_probability:
        found["ece"] = _Noise(estimate(o.confidence - o.correct, d).error * sqrt(n), "over-confidence")
    if not too_few_in(t):
        influence = auroc_influence(t.ranking)
        variance = influence.variance() if d is None else d.variance(influence.of(d.rows))
        found["auroc"] = _Noise(sqrt(n * variance), "a change of AUROC")
    return {key: noise for key, noise in found.items() if noise.sd > 0}


def _of_two(a: Predictions | Outcomes, b: Predictions | Outcomes) -> dict[str, _Noise]:
    compared = comparing.compare(a, b)
    tests = sum(not isnan(verdict.p_value) for verdict in compared.verdicts)
    found = {}
    for metric, key, what in (("auroc", "auroc", "AUROC"), ("risk", "accuracy", "error rate")):
        difference = compared.differences.get(key)
        if difference is not None and difference.estimate is not None:
            sd = difference.estimate.error * sqrt(compared.n)
            found[metric] = _Noise(sd, f"a difference in {what}", tests, of_pairs=metric == "risk")
    return found


def _why(metric: str, t: Tables, other: Predictions | Outcomes | None) -> str:
    if metric == "ece" and other is not None:
        return "a difference of two ECEs has no test"
    if metric == "ece" and not t.is_probability:
        return "the score is no probability"
    few = too_few_in(t) if metric == "auroc" else ""
    return few or ("every answer is wrong" if t.ranking.n_wrong else "there is no error among them")
