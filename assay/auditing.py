"""How far can these confidences be trusted? Every metric with its error bar and its noise floor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf, isfinite, sqrt

import numpy as np
import torch

from assay import metrics
from assay.metrics import Estimate, Influence, Interval, NoiseFloors, Ranking, Survey
from assay.predictions import Outcomes, Predictions

MIN_ERRORS = 20  # with fewer, right or wrong, no statement on ranking or on differences can be relied on

INFLUENCES: dict[str, Callable[[Ranking], Influence]] = {
    "auroc": metrics.auroc_influence,
    "aupr_success": metrics.aupr_success_influence,
    "aupr_error": metrics.aupr_error_influence,
    "aurc": metrics.aurc_influence,
    "e_aurc": metrics.e_aurc_influence,
    "augrc": metrics.augrc_influence,
}


@dataclass(frozen=True)
class Measurement:
    """A metric as measured. Where it has no interval, `note` says why."""

    value: float
    interval: Interval | None = None
    floor: float | None = None  # what a perfectly calibrated model would show on average
    note: str = ""


@dataclass(frozen=True)
class Finding:
    """A group that is significantly worse than all other samples together."""

    group: str
    metric: str
    value: float
    rest: float
    p_value: float  # one-sided, corrected for all groups and metrics tested (Holm)

    def __str__(self) -> str:
        return f"{self.group}: {self.metric} {self.value:.4f}, elsewhere {self.rest:.4f} (p = {self.p_value:.2g})"


@dataclass(frozen=True)
class Audit:
    """What `audit` found; `print` it for the verdict in words."""

    n: int
    n_wrong: int
    measurements: dict[str, Measurement]
    calibrated_p: float | None  # chance that a calibrated model shows such an ECE; none for a mere score
    groups: dict[str, Audit] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()

    def __getitem__(self, key: str) -> Measurement:
        return self.measurements[key]

    def __str__(self) -> str:
        return f"{_calibration_in_words(self)} {_refinement_in_words(self)}".strip()


def audit(predictions: Predictions | Outcomes, *, draws: int = 1000, seed: int = 0) -> Audit:
    """Every metric, with a 95 % interval where one is known to hold, and the noise floor of the binned errors.

    `draws` and `seed` are those of the noise floor. Where the predictions have groups, each is audited too and those
    significantly worse than the rest are named.

    >>> import assay.examples
    >>> found = audit(assay.examples.load())
    >>> found["ece"].value > found["ece"].interval.low > found["ece"].floor
    True
    """
    whole = metrics.survey(predictions)
    found = _audit(whole, draws, seed)
    if predictions.group is None:
        return found
    names, member = np.unique(predictions.group, return_inverse=True)
    rows = {str(name): torch.from_numpy(member == i) for i, name in enumerate(names)}
    return Audit(
        found.n,
        found.n_wrong,
        found.measurements,
        found.calibrated_p,
        groups={name: _audit(metrics.survey(predictions[mask]), draws, seed) for name, mask in rows.items()},
        findings=_worse_groups(whole.outcomes, rows),
    )


def _audit(found: Survey, draws: int, seed: int) -> Audit:
    floors = None
    if found.outcomes.is_probability:
        floors = metrics.noise_floors(found.ranking, draws=draws, seed=seed)
    intervals, notes = _intervals(found, floors), _notes(found.ranking)
    shown = {"ece": floors.ece, "ada_ece": floors.ada_ece, "ece_l2_mass": floors.ece_l2_mass} if floors else {}

    def measurement(key: str, value: float) -> Measurement:
        interval, floor = intervals.get(key), shown.get(key)
        note = "" if interval else notes.get(key, "no interval of known coverage")
        return Measurement(value, interval, floor.mean if floor else None, note)

    return Audit(
        n=found.ranking.n,
        n_wrong=found.ranking.n_wrong,
        measurements={key: measurement(key, value) for key, value in found.values.items()},
        calibrated_p=floors.ece.p_value(found.values["ece"]) if floors else None,
    )


def _intervals(found: Survey, floors: NoiseFloors | None) -> dict[str, Interval | None]:
    """Of each metric that has one in principle; none where the data do not allow it."""
    o, r, width, mass = found.outcomes, found.ranking, found.width, found.mass
    intervals: dict[str, Interval | None] = {"accuracy": metrics.proportion_interval(r.n - r.n_wrong, r.n)}
    intervals |= {key: metrics.risk_interval(r, coverage) for key, coverage in metrics.COVERAGES.items()}
    means = (("nll", o.nll, inf), ("brier", o.brier, 2.0))
    intervals |= {key: metrics.mean_interval(x, most=most) for key, x, most in means if x is not None}
    if not too_few(r):
        intervals |= {key: metrics.share_interval(found.values[key], f(r)) for key, f in INFLUENCES.items()}
        intervals["fpr95"] = metrics.fpr95_interval(r)
    if floors and width and mass:
        squared = metrics.ece_l2_interval(mass, floors.ece_l2_mass)
        intervals |= {
            "ece": metrics.ece_interval(width, floors.ece),
            "ada_ece": metrics.ece_interval(mass, floors.ada_ece),
            "ece_l2_mass": squared,
            "debiased_ece": squared,
        }
    return intervals


def _notes(r: Ranking) -> dict[str, str]:
    """Why one of those metrics has no interval after all."""
    ranked = too_few(r) or "a perfect ranking: no interval"
    averaged = "a value is infinite or there is but one sample"
    return dict.fromkeys((*INFLUENCES, "fpr95"), ranked) | dict.fromkeys(("nll", "brier"), averaged)


def too_few(r: Ranking) -> str:
    """Why nothing can be said of ranking or of differences here, or nothing."""
    for what, count in (("error", r.n_wrong), ("right answer", r.n - r.n_wrong)):
        if count < MIN_ERRORS:
            return f"only {count} {what}{'s' * (count != 1)}, at least {MIN_ERRORS} are needed"
    return ""


def _worse_groups(outcomes: Outcomes, rows: dict[str, torch.Tensor]) -> tuple[Finding, ...]:
    tests: list[Finding] = []
    for name, mask in rows.items():
        if not mask.all():
            tests += _against_rest(name, outcomes[mask], outcomes[~mask])
    corrected = metrics.holm([test.p_value for test in tests])
    found = [Finding(t.group, t.metric, t.value, t.rest, p) for t, p in zip(tests, corrected, strict=True) if p < 0.05]
    return tuple(sorted(found, key=lambda finding: finding.p_value))


def _against_rest(name: str, group: Outcomes, rest: Outcomes) -> list[Finding]:
    """One-sided tests that the group's accuracy, calibration and ranking are worse."""
    from scipy.stats import hypergeom

    r, s = metrics.ranking(group), metrics.ranking(rest)
    p = hypergeom.sf(r.n_wrong - 1, r.n + s.n, r.n_wrong + s.n_wrong, r.n)  # Fisher's exact test
    tests = [Finding(name, "accuracy", 1 - r.n_wrong / r.n, 1 - s.n_wrong / s.n, float(p))]
    if too_few(r) or too_few(s):
        return tests
    if group.is_probability:
        a, b = (metrics.calibration_estimate(metrics.calibration_part(o, t)) for o, t in ((group, r), (rest, s)))
        tests.append(Finding(name, "calibration_part", a.value, b.value, _worse(a.value - b.value, a, b)))
    x, y = (Estimate(metrics.auroc(t), sqrt(metrics.auroc_influence(t).variance()), _fewest(t) - 1) for t in (r, s))
    return [*tests, Finding(name, "auroc", x.value, y.value, _worse(y.value - x.value, x, y))]


def _fewest(r: Ranking) -> int:
    return min(r.n_wrong, r.n - r.n_wrong)


def _worse(excess: float, a: Estimate, b: Estimate) -> float:
    """One-sided p-value of the difference of two independent estimates being positive."""
    p = Estimate(excess, sqrt(a.error**2 + b.error**2), min(a.degrees, b.degrees)).p_value()
    return p / 2 if excess > 0 else 1 - p / 2


def _calibration_in_words(found: Audit) -> str:
    if found.calibrated_p is None:
        return "The score is no probability, so it can only rank: no statement on calibration."
    ece, over = found["ece"], found["mean_confidence"].value - found["accuracy"].value
    against = f"ECE {ece.value:.2%}, where noise alone shows {ece.floor:.2%} (p = {found.calibrated_p:.2g})"
    if found.calibrated_p >= 0.05:
        return f"No sign of miscalibration: {against}."
    if abs(over) < ece.value / 2:
        return f"Miscalibrated, too high here and too low there: {against}."
    return f"{'Over' if over > 0 else 'Under'}-confident by {100 * abs(over):.1f} points: {against}."


def _refinement_in_words(found: Audit) -> str:
    auroc = found["auroc"]
    if not isfinite(auroc.value):
        return "Ranking cannot be judged: all answers are " + ("wrong." if found.n_wrong else "right.")
    bar = f"{auroc.interval.low:.1%} to {auroc.interval.high:.1%}" if auroc.interval else auroc.note
    return f"A right answer is more confident than a wrong one {auroc.value:.1%} of the time ({bar})."
