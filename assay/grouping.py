"""Groups of samples against the rest: which are worse, and what differences could have been seen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from assay import metrics
from assay._core.arrays import Mask
from assay.metrics import Summary, Tables
from assay.metrics.inference import (
    Estimate,
    Interval,
    auroc_influence,
    calibration_estimate,
    calibration_part,
    design,
    fewest_in,
    fisher,
    holm,
    too_few_in,
)
from assay.predictions import Outcomes, Predictions

LEVEL = 0.05  # chance of naming any group where none is worse


@dataclass(frozen=True)
class Finding:
    """A group that is significantly worse than all other samples together."""

    group: str
    metric: str  # accuracy, over_confidence, calibration_part or auroc
    value: float
    rest: float
    p_value: float  # corrected for all groups and metrics tested (Holm)
    interval: Interval | None = None  # of an over-confidence

    def __str__(self) -> str:
        if self.interval is None:
            return f"{self.group}: {self.metric} {self.value:.4f}, elsewhere {self.rest:.4f} (p = {self.p_value:.2g})"
        sign, word = (100, "over") if self.value > 0 else (-100, "under")
        low, high = sorted((sign * self.interval.low, sign * self.interval.high))
        by = f"{sign * self.value:.1f} points ({low:.1f} to {high:.1f}), elsewhere {sign * self.rest:.1f}"
        return f"{self.group}: {word}-confident by {by} (p = {self.p_value:.2g})"


@dataclass(frozen=True)
class Groups:
    """What the tests of all groups found."""

    findings: tuple[Finding, ...]
    worst_first: tuple[str, ...]  # names of groups, by the least p-value of a group's tests against the rest
    detectable: dict[str, float]  # over-confidence beyond the rest that would have been seen 4 times of 5


def group_tests(outcomes: Outcomes, rows: dict[str, Mask], *, by_label: bool) -> Groups:
    """Each group against the rest; groups chosen by the true label are compared by accuracy alone."""
    tables = {name: (Tables(outcomes[mask]), Tables(outcomes[~mask])) for name, mask in rows.items() if not mask.all()}
    return _tested(tables, list(rows), by_label)


def summary_tests(groups: dict[str, tuple[Summary, Summary]], *, by_label: bool) -> Groups:
    """The same of groups whose rows are not in memory, each with the summary of all other rows.

    Accuracy, over-confidence and ranking are compared; the calibration part would need the rows.
    """
    return _tested({name: (Tables(a), Tables(b)) for name, (a, b) in groups.items()}, list(groups), by_label)


def _tested(groups: dict[str, tuple[Tables, Tables]], names: list[str], by_label: bool) -> Groups:
    errors: dict[str, Estimate] = {}
    tests = [test for name, (a, b) in groups.items() for test in _against_rest(name, a, b, errors, by_label)]
    return _judged(tests, errors, names)


def _judged(tests: list[Finding], errors: dict[str, Estimate], names: list[str]) -> Groups:
    tests.sort(key=lambda test: test.p_value)
    corrected = holm([test.p_value for test in tests])
    named = tuple(replace(test, p_value=p) for test, p in zip(tests, corrected, strict=True) if p < LEVEL)
    order = tuple(dict.fromkeys([*(test.group for test in tests), *names]))
    strict = 1 - LEVEL / 2 / max(len(tests), 1)
    return Groups(named, order, {name: gap.half(strict) + gap.half(0.8) for name, gap in errors.items()})


def chosen_by_label(predictions: Predictions | Outcomes) -> bool:
    """Whether the group is a function of the true label.

    Such groups select on the outcome: answers of a calibrated model are over-confident where the label is a rare one.
    """
    if not isinstance(predictions, Predictions) or predictions.group is None:
        return False
    names, member = np.unique(predictions.group, return_inverse=True)
    pairs = np.unique(predictions.labels * len(names) + member)
    return len(names) > 1 and len(pairs) == len(np.unique(predictions.labels))


def _against_rest(name: str, group: Tables, rest: Tables, errors: dict[str, Estimate], by_label: bool) -> list[Finding]:
    """Tests that the group's accuracy, calibration and ranking are worse."""
    accuracies = metrics.accuracy(group), metrics.accuracy(rest)
    tests = [Finding(name, "accuracy", *accuracies, _less_accurate(group, rest))]
    if by_label:
        return tests
    if group.is_probability and min(group.ranking.n, rest.ranking.n) > 1:
        tests.append(_over_confident(name, _over_confidence(group), _over_confidence(rest), errors))
    if too_few_in(group) or too_few_in(rest):
        return tests
    if group.is_probability and group.summary is None:
        a, b = (calibration_estimate(calibration_part(t.outcomes, t.ranking, design=design(t))) for t in (group, rest))
        tests.append(Finding(name, "calibration_part", a.value, b.value, _worse(_difference(a, b))))
    x, y = _auroc(group), _auroc(rest)
    return [*tests, Finding(name, "auroc", x.value, y.value, _worse(_difference(y, x)))]


def _over_confident(name: str, a: Estimate, b: Estimate, errors: dict[str, Estimate]) -> Finding:
    """The test of over-confidence; the difference is noted."""
    errors[name] = _difference(a, b)
    # No farther from 0 than the signed difference from that, so the two-sided p-value is an upper bound.
    farther = replace(errors[name], value=max(abs(a.value) - abs(b.value), 0.0))
    return Finding(name, "over_confidence", a.value, b.value, farther.p_value(), a.interval())


def _over_confidence(t: Tables) -> Estimate:
    """Mean confidence minus accuracy, no surer than if the confidences were right: no error seen is not none."""
    d, r = design(t), t.ranking
    if d is not None:
        c = d.rows.confidence
        found, least = d.mean(c - d.rows.correct), float(d.squares @ (c * (1 - c)))
        return replace(found, error=sqrt(max(found.error**2, least / d.n**2)))
    c, n = r.score, r.n
    mean = float(r.claimed[-1] - r.right[-1]) / n
    squares = float((1 - c) ** 2 @ r.hits + c**2 @ r.misses)
    spread = max(squares - n * mean**2, 0.0) / (n - 1)
    return Estimate(mean, sqrt(max(spread / n, float(c * (1 - c) @ r.size) / n**2)), n - 1)


def _less_accurate(group: Tables, rest: Tables) -> float:
    """One-sided p-value: Fisher's exact test, or Student's of weighted or clustered samples."""
    d, other, r, s = design(group), design(rest), group.ranking, rest.ranking
    if d is None or other is None:
        return fisher(r.n_wrong, r.n, s.n_wrong, s.n)
    a, b = (x.mean((~x.rows.correct).astype(np.float64)) for x in (d, other))
    spread = sqrt(b.value * (1 - b.value) / d.n)  # no error seen is not none
    return _worse(_difference(replace(a, error=max(a.error, spread)), b))


def _auroc(t: Tables) -> Estimate:
    d, influence = design(t), auroc_influence(t.ranking)
    variance = influence.variance() if d is None else d.variance(influence.of(d.rows))
    return Estimate(metrics.auroc(t), sqrt(variance), fewest_in(t) - 1)


def _difference(a: Estimate, b: Estimate) -> Estimate:
    """a - b of independent estimates, with the degrees of Welch & Satterthwaite."""
    x, y = a.error**2, b.error**2
    degrees = (x + y) ** 2 / (x**2 / a.degrees + y**2 / b.degrees) if x + y > 0 else a.degrees
    return Estimate(a.value - b.value, sqrt(x + y), degrees)


def _worse(excess: Estimate) -> float:
    """One-sided p-value of a difference being positive."""
    p = excess.p_value()
    return p / 2 if excess.value > 0 else 1 - p / 2
