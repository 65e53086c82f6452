"""How far can these confidences be trusted? Every metric with its error bar and its noise floor."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from importlib import import_module
from math import isfinite
from typing import Any

import numpy as np

from assay._core.arrays import InputError
from assay._core.showing import Library, data_frame, html_table
from assay.grouping import LEVEL, Finding, chosen_by_label, group_tests, pairs_of, summary_tests
from assay.metrics import METRICS, Metric, Ranking, Summary, Tables
from assay.metrics.inference import Interval, Withheld, holm
from assay.predictions import Outcomes, Predictions

BROAD = 0.25  # an ECE that may be as large as this has not been measured


@dataclass(frozen=True)
class Measurement:
    """A measured metric. If it has no interval, `note` says why."""

    value: float
    interval: Interval | None = None
    floor: float | None = None  # what a perfectly calibrated model would show on average
    note: str = ""
    bound: float | None = None  # of a summary: how far the value can be from that of the rows, 0 if it is exact


@dataclass(frozen=True)
class PositiveClass:
    """Of two classes, how the probability of class 1 stands to its noise floor.

    The top label cannot answer for it: too high a probability of class 1 makes the answers 1 over-confident and the
    answers 0 under-confident, and in bins of confidence the two cancel.
    """

    excess: float  # mean probability of class 1 minus its share
    p_value: float  # chance that a calibrated model shows such an `ece_positive`
    name: str = "class 1"  # with what the class is called, if it has a name


@dataclass(frozen=True)
class Audit:
    """What `audit` found; `print` it for the verdict in words."""

    n: int
    n_wrong: int
    measurements: dict[str, Measurement]
    calibrated_p: float | None  # chance that a calibrated model shows such an ECE; none for a mere score
    positive: PositiveClass | None = None  # where there are two classes
    groups: dict[str, Audit] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    worst_first: tuple[str, ...] = ()  # names of groups, by the least p-value of a group's tests against the rest
    detectable: dict[str, float] = field(default_factory=dict)  # of a group, what would have been seen; absent if none
    by_label: bool = False  # whether the groups are chosen by the true label: then only their accuracy is judged
    tables: Tables | None = field(default=None, repr=False, compare=False)  # what it was read from: pages read on

    def __getitem__(self, key: str) -> Measurement:
        return self.measurements[key]

    def keys(self) -> list[str]:
        """The metrics that were measured."""
        return list(self.measurements)

    def to_dict(self) -> dict[str, float]:
        """The values by metric."""
        return {key: measured.value for key, measured in self.measurements.items()}

    def to_frame(self, library: Library = "pandas") -> Any:
        """A data frame with one row a metric: value, interval, noise floor."""
        return data_frame(self._rows(), library)

    def plot(self) -> Any:
        """A figure: the reliability diagram, and errors against coverage."""
        if self.tables is None:
            raise InputError("this audit has no predictions any more; make it by assay.audit(predictions)")
        return import_module("assay.report.figures").audit_figure({"model": self.tables})

    def _rows(self) -> list[dict[str, Any]]:
        return [
            {
                "metric": key,
                "value": m.value,
                "low": m.interval.low if m.interval else None,
                "high": m.interval.high if m.interval else None,
                "floor": m.floor,
            }
            for key, m in self.measurements.items()
        ]

    def _repr_html_(self) -> str:
        rows = self._rows()
        return html_table(str(self), list(rows[0]), [list(row.values()) for row in rows])

    def __str__(self) -> str:
        return f"{_calibration_in_words(self)} {_refinement_in_words(self)}".strip()


def audit(predictions: Predictions | Outcomes | Summary, *, draws: int = 1000, seed: int = 0) -> Audit:
    """Every metric, with a 95 % interval where one is known to hold, and the noise floor of the binned errors.

    `draws` and `seed` are those of the noise floor. Where the predictions have groups, each is audited too and those
    significantly worse than the rest are named; `detectable` tells the over-confidence of each group, beyond that of
    the rest, which would have been seen 4 times of 5. Of groups that are chosen by the true label only the accuracy is
    judged. A summary (`assay.scale.Tally`) is audited without its rows; then each measurement says how far it can be
    from theirs.

    >>> import assay.examples
    >>> found = audit(assay.examples.load())
    >>> found["ece"].value > found["ece"].interval.low > found["ece"].floor
    True
    """
    whole = Tables(predictions, draws=draws, seed=seed)
    found = _audit(whole)
    if not isinstance(predictions, Predictions | Outcomes):
        return _with_groups(found, predictions, draws, seed)
    if predictions.group is None:
        return found
    names, member = np.unique(predictions.group, return_inverse=True)
    rows = {str(name): member == i for i, name in enumerate(names)}
    by_label = chosen_by_label(pairs_of(predictions))
    tested = group_tests(whole.outcomes, rows, by_label=by_label)
    groups = {name: _audit(Tables(predictions[mask], draws=draws, seed=seed)) for name, mask in rows.items()}
    return replace(
        found,
        groups={name: _accuracy_only(group) for name, group in groups.items()} if by_label else groups,
        findings=tested.findings,
        worst_first=tested.worst_first,
        detectable=tested.detectable,
        by_label=by_label,
    )


def _with_groups(found: Audit, summary: Summary, draws: int, seed: int) -> Audit:
    """The audit of a summary with those of its groups."""
    if not summary.groups:
        return found
    audits = {name: _audit(Tables(group, draws=draws, seed=seed)) for name, group in summary.groups.items()}
    others = {name: (group, summary.without(name)) for name, group in summary.groups.items()} if len(audits) > 1 else {}
    tested = summary_tests(others, by_label=summary.by_label)
    groups = {name: _accuracy_only(group) for name, group in audits.items()} if summary.by_label else audits
    order = tested.worst_first or tuple(groups)
    return replace(
        found,
        groups=groups,
        findings=tested.findings,
        worst_first=order,
        detectable=tested.detectable,
        by_label=summary.by_label,
    )


def _accuracy_only(group: Audit) -> Audit:
    """Of a group chosen by the true label: how confident its answers are says nothing about calibration."""
    return replace(group, measurements={"accuracy": group["accuracy"]}, calibrated_p=None, positive=None)


def _audit(t: Tables) -> Audit:
    measurements = {key: measured(metric, t) for key, metric in METRICS.items() if metric.needs(t)}
    return Audit(
        n=t.ranking.n,
        n_wrong=t.ranking.n_wrong,
        measurements=measurements,
        calibrated_p=_p_value("ece", t) if t.is_probability else None,
        positive=_positive(t) if t.n_classes == 2 else None,
        tables=t,
    )


def _positive(t: Tables) -> PositiveClass:
    classes = getattr(t.source, "classes", None)  # predictions and tallies may know them
    name = f"class 1 ({classes[1]})" if classes else "class 1"
    return PositiveClass(_excess(t.positive.ranking), _p_value("ece_positive", t), name)


def measured(metric: Metric, t: Tables) -> Measurement:
    """The value with its interval, noise floor and bound."""
    interval = metric.bar(t)
    floor = metric.floor(t).mean if metric.floor else None
    bound = None if t.summary is None else t.summary.bounds().get(metric.key)
    if isinstance(interval, Withheld):
        return Measurement(t.once(metric.of), None, floor, interval.reason, bound)
    return Measurement(t.once(metric.of), interval, floor, bound=bound)


def _p_value(key: str, t: Tables) -> float:
    """Chance that a calibrated model shows such an error."""
    metric = METRICS[key]
    assert metric.floor is not None
    return metric.floor(t).p_value(t.once(metric.of))


def calibrated(t: Tables) -> bool | None:
    """Whether no miscalibration is shown, in the confidence or in the probability of class 1.

    None of a mere score, and where too few samples cannot tell.
    """
    if not t.is_probability:
        return None
    keys = ("ece", "ece_positive") if t.n_classes == 2 else ("ece",)
    if min(holm([_p_value(key, t) for key in keys])) < LEVEL:
        return False
    return True if _most(measured(METRICS["ece"], t)) < BROAD else None


def calibration_in_words(t: Tables) -> str:
    """The verdict of an audit on calibration alone."""
    return _calibration_in_words(_audit(t))


def _excess(r: Ranking) -> float:
    """Mean confidence minus the share of successes."""
    return float(r.claimed[-1] - r.right[-1]) / r.n


def _calibration_in_words(found: Audit) -> str:
    if "auroc" not in found.measurements:
        return "The group is chosen by the true label, so only its accuracy can be judged."
    if found.calibrated_p is None:
        return "The score is no probability, so it can only rank: no statement on calibration."
    if found.positive is None:
        return f"{_top_in_words(found, found.calibrated_p)}."
    # Two tests of one model, so each has half a chance of a false alarm.
    top_p, positive_p = holm([found.calibrated_p, found.positive.p_value])
    top, positive = _top_in_words(found, top_p), _positive_in_words(found, found.positive, positive_p)
    if positive_p < LEVEL <= top_p:
        return f"{positive}. The confidence of the answers does not show it: {_against(found['ece'], top_p)}."
    return f"{top}. {positive}."


def _top_in_words(found: Audit, p_value: float) -> str:
    ece, over = found["ece"], found["mean_confidence"].value - found["accuracy"].value
    against = _against(ece, p_value)
    if p_value >= LEVEL:
        if _most(ece) >= BROAD:
            return f"Too few samples to tell whether the confidence is calibrated: ECE may be up to {_most(ece):.0%}"
        where = " in the confidence of the answers" if found.positive else ""
        return f"No sign of miscalibration{where}: {against}"
    if abs(over) < ece.value / 2:
        return f"Miscalibrated, too high here and too low there: {against}"
    return f"{'Over' if over > 0 else 'Under'}-confident by {100 * abs(over):.1f} points: {against}"


def _positive_in_words(found: Audit, positive: PositiveClass, p_value: float) -> str:
    ece, excess = found["ece_positive"], positive.excess
    against = _against(ece, p_value)
    if p_value >= LEVEL:
        if _most(ece) >= BROAD:
            return f"Nor whether the probability of {positive.name} is: its ECE may be up to {_most(ece):.0%}"
        return f"No sign of it in the probability of {positive.name}: {against}"
    by = f"too {'high' if excess > 0 else 'low'} by {100 * abs(excess):.1f} points"
    where = "too high here and too low there" if abs(excess) < ece.value / 2 else by
    return f"The probability of {positive.name} is {where}: {against}"


def _most(ece: Measurement) -> float:
    """How large a calibration error may be; without an interval nothing is excluded."""
    return 1.0 if ece.interval is None else ece.interval.high


def _against(ece: Measurement, p_value: float) -> str:
    return f"ECE {ece.value:.2%}, where noise alone shows {ece.floor:.2%} (p = {p_value:.2g})"


def _refinement_in_words(found: Audit) -> str:
    auroc = found.measurements.get("auroc")
    if auroc is None:
        return ""
    if not isfinite(auroc.value):
        return "Ranking cannot be judged: all answers are " + ("wrong." if found.n_wrong else "right.")
    said = f"A right answer is more confident than a wrong one {auroc.value:.1%} of the time ({_bar(auroc)})."
    area = found.measurements.get("roc_auc")
    if area is None or found.positive is None:
        return said
    return f"{said} The ROC AUC of {found.positive.name} is {area.value:.1%} ({_bar(area)})."


def _bar(m: Measurement) -> str:
    return f"{m.interval.low:.1%} to {m.interval.high:.1%}" if m.interval else m.note
