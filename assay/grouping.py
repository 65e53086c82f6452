"""Groups of samples against the rest: which are worse, and what differences could have been seen."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from math import pi, sqrt

import numpy as np

from assay import metrics
from assay._core.arrays import Labels, Mask
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
BY_CHANCE = 1e-3  # groups are chosen by the label if chance would give such groups less often


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
    # Over-confidence beyond the rest that would have been seen 4 times of 5; of a group that is not here, none would.
    detectable: dict[str, float]


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
    tests = [test for name, (a, b) in groups.items() for test in _against_rest(name, a, b, by_label)]
    tests.sort(key=lambda test: test.p_value)
    corrected = holm([test.p_value for test in tests])
    named = tuple(replace(test, p_value=p) for test, p in zip(tests, corrected, strict=True) if p < LEVEL)
    order = tuple(dict.fromkeys([*(test.group for test in tests), *names]))
    of_over_confidence = {test.group for test in tests if test.metric == "over_confidence"}
    could = {name: _detectable(*groups[name], len(tests)) for name in groups if name in of_over_confidence}
    return Groups(named, order, {name: size for name, size in could.items() if size is not None})


def _detectable(group: Tables, rest: Tables, n_tests: int) -> float | None:
    """Over-confidence beyond the rest that the tests see 4 times of 5; none if even an accuracy of 0 is less.

    A group that is more over-confident has more errors, and more noise where there are few: if each chance p to be
    right falls by d, its variance p (1 - p) grows by d (2 p - 1) - d^2. The size is the d that its own noise allows.
    """
    a, b = group.once(_over_confidence), rest.once(_over_confidence)
    like_the_rest = metrics.mean_confidence(group) - b.value  # the accuracy that the group would have
    gap, n = _difference(a, b), _samples(group)
    unit = Estimate(0.0, 1.0, min(gap.degrees, a.degrees))
    quantiles = unit.half(1 - LEVEL / 2 / n_tests) + unit.half(0.8)
    growth = quantiles**2 / n
    half = growth * max(2 * like_the_rest - 1, 0.0) / 2
    size = (half + sqrt(half**2 + (1 + growth) * (quantiles * gap.error) ** 2)) / (1 + growth)
    size = max(size, quantiles * gap.error) + sqrt(2 / pi) * b.error  # the noise of the rest moves it away from 0
    return size if size <= min(like_the_rest, 1.0) else None


Pairs = dict[tuple[str, str], int]
"""How many rows each pair of a label and a group has."""


def pairs_of(rows: Predictions | Outcomes) -> Pairs:
    """Of rows without groups or without known labels, none."""
    if rows.group is None or rows.labels is None:
        return {}
    names, member = np.unique(rows.group, return_inverse=True)
    labels, label = np.unique(rows.labels, return_inverse=True)
    pairs, count = np.unique(label * len(names) + member, return_counts=True)
    tags = (labels[pairs // len(names)], names[pairs % len(names)])
    return dict(zip(zip(*(map(str, tag.tolist()) for tag in tags), strict=True), count.tolist(), strict=True))


def chosen_by_label(pairs: Pairs) -> bool:
    """Whether the group is a function of the true label, or the label one of the group.

    Such groups select on the outcome: answers of a calibrated model are over-confident where the label is a rare one.
    Where chance may give so few rows one group a label, or one label a group, they are not chosen by it.
    """
    labels, groups = Counter[str](), Counter[str]()
    for (label, group), count in pairs.items():
        labels[label] += count
        groups[group] += count
    if min(len(labels), len(groups)) < 2:
        return False
    sizes = [np.array([*of.values()]) for of in (labels, groups)]
    return any(len(pairs) == len(one) and _chance(one, other) < BY_CHANCE for one, other in (sizes, sizes[::-1]))


def _chance(sizes: Labels, others: Labels) -> float:
    """That the rows of each of these are all of one of the others, if those are drawn at random."""
    share = others / others.sum()
    return float(np.prod([(share**size).sum() for size in sizes]))


def _against_rest(name: str, group: Tables, rest: Tables, by_label: bool) -> list[Finding]:
    """Tests that the group's accuracy, calibration and ranking are worse."""
    accuracies = metrics.accuracy(group), metrics.accuracy(rest)
    tests = [Finding(name, "accuracy", *accuracies, _less_accurate(group, rest))]
    if by_label:
        return tests
    if group.is_probability and min(group.ranking.n, rest.ranking.n) > 1:
        tests.append(_over_confident(name, group.once(_over_confidence), rest.once(_over_confidence)))
    if too_few_in(group) or too_few_in(rest):
        return tests
    if group.is_probability and group.summary is None:
        a, b = (calibration_estimate(calibration_part(t.outcomes, t.ranking, design=design(t))) for t in (group, rest))
        tests.append(Finding(name, "calibration_part", a.value, b.value, _worse(_difference(a, b))))
    x, y = _auroc(group), _auroc(rest)
    return [*tests, Finding(name, "auroc", x.value, y.value, _worse(_difference(y, x)))]


def _over_confident(name: str, a: Estimate, b: Estimate) -> Finding:
    # No farther from 0 than the signed difference from that, so the two-sided p-value is an upper bound.
    farther = replace(_difference(a, b), value=max(abs(a.value) - abs(b.value), 0.0))
    around = Interval(max(a.interval().low, -1.0), min(a.interval().high, 1.0))
    return Finding(name, "over_confidence", a.value, b.value, farther.p_value(), around)


def _over_confidence(t: Tables) -> Estimate:
    """Mean confidence minus accuracy, no surer than if the confidences were right."""
    d, r = design(t), t.ranking
    if d is not None:
        c = d.rows.confidence
        return _no_surer(d.mean(c - d.rows.correct), float(d.squares @ (c * (1 - c))) / d.n**2, t)
    c, n = r.score, r.n
    mean = float(r.claimed[-1] - r.right[-1]) / n
    squares = float((1 - c) ** 2 @ r.hits + c**2 @ r.misses)
    spread = max(squares - n * mean**2, 0.0) / (n - 1)
    return _no_surer(Estimate(mean, sqrt(spread / n), n - 1), float(c * (1 - c) @ r.size) / n**2, t)


def _no_surer(found: Estimate, variance: float, t: Tables) -> Estimate:
    """With at least this variance, and that of one answer unlike all others: none seen is not none."""
    return replace(found, error=sqrt(max(found.error**2, variance, _samples(t) ** -2)))


def _samples(t: Tables) -> float:
    """Independent samples of equal weight that these tell as much as."""
    d = design(t)
    return t.ranking.n if d is None else d.samples


def _less_accurate(group: Tables, rest: Tables) -> float:
    """One-sided p-value: Fisher's exact test, or Student's of weighted or clustered samples."""
    d, other, r, s = design(group), design(rest), group.ranking, rest.ranking
    if d is None or other is None:
        return fisher(r.n_wrong, r.n, s.n_wrong, s.n)
    a, b = (x.mean((~x.rows.correct).astype(np.float64)) for x in (d, other))
    spread = max(b.value * (1 - b.value), 0.0) / d.n  # sums round
    return _worse(_difference(_no_surer(a, spread, group), b))


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
