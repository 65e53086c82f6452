"""How many samples does it take to show a difference of a given size?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, sqrt

from assay import comparing
from assay._core.arrays import Floats, InputError
from assay.metrics import Tables
from assay.metrics.inference import auroc_influence, too_few
from assay.predictions import Outcomes, Predictions

POWER = 2.801585218112969  # quantiles of a two-sided test at 5 % and of a power of 80 %, together
DETECTABLE = ("ece", "auroc", "risk")


@dataclass(frozen=True)
class Plan:
    """Samples that show a difference of this size 4 times of 5."""

    metric: str
    size: float
    n: int
    what: str  # the difference, in words

    def __str__(self) -> str:
        return f"{self.n:,} samples show {self.what} of {100 * self.size:g} points 4 times of 5"


def plan(
    pilot: Predictions | Outcomes, detect: Mapping[str, float], other: Predictions | Outcomes | None = None
) -> list[Plan]:
    """Number of samples for each metric of `detect` (ece, auroc, risk), from the noise of a pilot sample.

    Of one model: to tell a calibrated model from one whose confidence is too high by so much (ece), or an AUROC or an
    error rate from a given value. Of two models on the same samples: to tell them apart by AUROC or by error rate.

    >>> import assay.examples
    >>> print(plan(assay.examples.load(), {"ece": 0.01})[0])
    11,958 samples show over-confidence of 1 points 4 times of 5
    """
    for metric, size in detect.items():
        if metric not in DETECTABLE:
            raise InputError(f"cannot plan for '{metric}'; plan for {', '.join(DETECTABLE)}")
        if not 0 < size < 1:
            raise InputError(f"{metric} to detect must lie between 0 and 1, got {size}")
    noise = _of_one(Tables(pilot)) if other is None else _of_two(pilot, other)
    missing = [metric for metric in detect if metric not in noise]
    if missing:
        raise InputError(f"these rows do not tell the noise of '{missing[0]}': {_why(missing[0], pilot, other)}")
    found = {metric: noise[metric] for metric in detect}
    return [Plan(key, detect[key], ceil((POWER * sd / detect[key]) ** 2), what) for key, (sd, what) in found.items()]


def _of_one(t: Tables) -> dict[str, tuple[float, str]]:
    """Standard deviation of what one sample adds to each metric."""
    o, rate = t.outcomes, t.ranking.n_wrong / t.ranking.n
    found = {"risk": (sqrt(rate * (1 - rate)), "a change of the error rate")} if rate > 0 else {}
    if o.is_probability and len(o) > 1:
        found["ece"] = (_spread(o.confidence - o.correct), "over-confidence")
    if not too_few(t.ranking):
        found["auroc"] = (sqrt(t.ranking.n * auroc_influence(t.ranking).variance()), "a change of AUROC")
    return found


def _of_two(a: Predictions | Outcomes, b: Predictions | Outcomes) -> dict[str, tuple[float, str]]:
    compared = comparing.compare(a, b)
    found = {}
    for metric, key, what in (("auroc", "auroc", "a difference in AUROC"), ("risk", "accuracy", "one in error rate")):
        estimate = compared[key].estimate
        if estimate is not None:
            found[metric] = (estimate.error * sqrt(compared.n), what)
    return found


def _why(metric: str, pilot: Predictions | Outcomes, other: Predictions | Outcomes | None) -> str:
    if metric == "ece":
        return "a difference of two ECEs has no test" if other is not None else "the score is no probability"
    return too_few(Tables(pilot).ranking) or "there is no error among them"


def _spread(column: Floats) -> float:
    return float(column.std(ddof=1))
