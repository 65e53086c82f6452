"""Two models on the same samples: which is better calibrated, which knows its own errors better?"""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import numpy as np
import torch
from torch import Tensor

from assay import metrics
from assay._core.arrays import InputError, Tags
from assay.auditing import INFLUENCES, too_few
from assay.metrics import CalibrationPart, Estimate, Interval, Survey
from assay.predictions import Outcomes, Predictions

Either = Predictions | Outcomes
POSITIVE = "calibration of class 1"  # of two; the top label cannot answer for it
# The metric that decides an axis, and the sign of a change for the better.
AXES = {
    "accuracy": ("accuracy", 1),
    "calibration": ("calibration_part", -1),
    POSITIVE: ("part_positive", -1),
    "refinement": ("auroc", 1),
}
LEVEL = 0.05  # chance of calling two equal models different on any axis


@dataclass(frozen=True)
class Difference:
    """One metric of both models. Where no test of known level exists the interval is absent and `note` says so."""

    a: float
    b: float
    interval: Interval | None = None  # of b - a
    p_value: float | None = None
    note: str = ""

    @property
    def value(self) -> float:
        return self.b - self.a


@dataclass(frozen=True)
class Verdict:
    """What is said of one axis, by one test."""

    axis: str
    metric: str
    word: str  # better, worse, no difference, cannot tell: of b against a
    p_value: float  # corrected for the number of axes (Holm)
    note: str = ""

    @property
    def reason(self) -> str:
        return self.note or f"{self.metric}, p = {self.p_value:.2g}"

    def __str__(self) -> str:
        return f"{self.axis}: {self.word} ({self.reason})"


@dataclass(frozen=True)
class Comparison:
    """What `compare` found; `print` it for the verdict in words, of the second model against the first."""

    n: int
    differences: dict[str, Difference]
    verdicts: tuple[Verdict, ...]
    by_ids: bool  # whether rows were matched by ids, else they were paired in order

    def __getitem__(self, key: str) -> Difference:
        return self.differences[key]

    def __str__(self) -> str:
        return ", ".join(f"{verdict.axis} {verdict.word}" for verdict in self.verdicts)


def compare(a: Either, b: Either, *, names: tuple[str, str] = ("the first", "the second")) -> Comparison:
    """Paired differences of `b` against `a`, and one verdict for accuracy, calibration and refinement.

    Rows are matched by ids; without ids they must be the same rows in the same order. Calibration is judged by the
    unbiased calibration part of the top-label Brier score, refinement by AUROC; the tests together call equal models
    different at most one time in twenty. Of two classes the probability of class 1 has a verdict on its calibration
    too. `names` are what errors call the two models.

    >>> import assay.examples
    >>> print(compare(assay.examples.load(), assay.examples.load()))
    accuracy no difference, calibration no difference, refinement no difference
    """
    a, b = _matched(a, b, names)
    x, y = metrics.survey(a), metrics.survey(b)
    estimates = _estimates(x, y)
    doubt = too_few(x.ranking) or too_few(y.ranking)
    notes = dict.fromkeys(INFLUENCES, doubt) | dict.fromkeys(("nll", "brier"), "a value is infinite")
    shared = [key for key in x.values if key in y.values]
    differences = {key: _difference(x.values[key], y.values[key], estimates.get(key), notes.get(key)) for key in shared}
    change = metrics.accuracy_change(x.outcomes.correct.cpu().numpy(), y.outcomes.correct.cpu().numpy())
    accuracies = x.values["accuracy"], y.values["accuracy"]
    differences["accuracy"] = Difference(*accuracies, change.interval, change.p_value)
    if x.outcomes.is_probability and y.outcomes.is_probability:
        first, second = (metrics.calibration_part(t.outcomes, t.ranking) for t in (x, y))
        differences["calibration_part"] = _calibration(first, second, doubt)
    if isinstance(a, Predictions) and isinstance(b, Predictions) and a.n_classes == b.n_classes == 2:
        p, q = metrics.positive_class(a), metrics.positive_class(b)
        r, s = metrics.ranking(p), metrics.ranking(q)
        first, second = metrics.calibration_part(p, r), metrics.calibration_part(q, s)
        differences["part_positive"] = _calibration(first, second, too_few(r, "negative", "positive"))
    return Comparison(x.ranking.n, differences, _verdicts(differences), by_ids=a.ids is not None)


def _calibration(a: CalibrationPart, b: CalibrationPart, doubt: str) -> Difference:
    before, after = (metrics.calibration_estimate(part).value for part in (a, b))
    return _difference(before, after, None if doubt else metrics.calibration_difference(a, b), doubt)


def _estimates(x: Survey, y: Survey) -> dict[str, Estimate]:
    """Paired estimates of the differences whose law is known."""
    columns = {"nll": (x.outcomes.nll, y.outcomes.nll), "brier": (x.outcomes.brier, y.outcomes.brier)}
    changes = {key: (b - a).cpu().numpy() for key, (a, b) in columns.items() if a is not None and b is not None}
    estimates = {key: metrics.mean_estimate(change) for key, change in changes.items() if np.isfinite(change).all()}
    if not too_few(x.ranking) and not too_few(y.ranking):
        degrees = min(count for r in (x.ranking, y.ranking) for count in (r.n_wrong, r.n - r.n_wrong)) - 1
        for key, influence in INFLUENCES.items():
            moved = influence(y.ranking).of(y.outcomes) - influence(x.ranking).of(x.outcomes)
            estimates[key] = Estimate(y.values[key] - x.values[key], metrics.mean_estimate(moved).error, degrees)
    return estimates


def _difference(a: float, b: float, estimate: Estimate | None, note: str | None = None) -> Difference:
    if estimate is None:
        return Difference(a, b, note=note or "no paired test of known level")
    return Difference(a, b, estimate.interval(), estimate.p_value())


def _verdicts(differences: dict[str, Difference]) -> tuple[Verdict, ...]:
    there = [axis for axis, (metric, _) in AXES.items() if axis != POSITIVE or metric in differences]
    tested = {axis: differences.get(AXES[axis][0]) for axis in there}
    p_values = {axis: d.p_value for axis, d in tested.items() if d is not None and d.p_value is not None}
    corrected = dict(zip(p_values, metrics.holm(list(p_values.values())), strict=True))

    def verdict(axis: str, difference: Difference | None) -> Verdict:
        metric, sign = AXES[axis]
        if difference is None or axis not in corrected:
            note = difference.note if difference else "a mere score only ranks"
            return Verdict(axis, metric, "cannot tell", nan, note)
        gain = "better" if sign * difference.value > 0 else "worse"
        return Verdict(axis, metric, gain if corrected[axis] < LEVEL else "no difference", corrected[axis])

    return tuple(verdict(axis, difference) for axis, difference in tested.items())


def _matched(a: Either, b: Either, names: tuple[str, str]) -> tuple[Either, Either]:
    """Both with their rows in the same order, or an error that says why they are not the same samples."""
    if (a.ids is None) != (b.ids is None):
        has, lacks = names if b.ids is None else names[::-1]
        raise InputError(f"{has} has ids and {lacks} has none; give them to both or to neither")
    if len(a) != len(b):
        raise InputError(f"not the same samples: {len(a)} rows against {len(b)}")
    if a.ids is not None and b.ids is not None:
        b = b[_order(a.ids, b.ids, names)]
    if isinstance(a, Predictions) and isinstance(b, Predictions):
        other = (a.labels != b.labels).nonzero()
        if len(other):
            row = int(other[0])
            labels = f"label {a.labels[row]} in {names[0]}, {b.labels[row]} in {names[1]}"
            hint = "" if a.ids is not None else "; without ids rows are paired in order, ids would match them"
            raise InputError(f"not the same samples: row {row} has {labels}{hint}")
    return a, b


def _order(ids: Tags, other: Tags, names: tuple[str, str]) -> Tensor:
    """Rows of `other` in the order of `ids`."""
    if ids.dtype.kind != other.dtype.kind and "U" in ids.dtype.kind + other.dtype.kind:
        ids, other = ids.astype(str), other.astype(str)
    sorting = np.argsort(other)
    place = np.searchsorted(other, ids, sorter=sorting).clip(max=len(other) - 1)
    missing = other[sorting[place]] != ids
    if missing.any():
        raise InputError(f"not the same samples: id {ids[missing.argmax()]} is in {names[0]} only")
    return torch.from_numpy(sorting[place])
