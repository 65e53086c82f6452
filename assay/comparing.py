"""Two models on the same samples: which is better calibrated, which knows its own errors better?"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import nan
from typing import Any

import numpy as np

from assay._core.arrays import InputError, Labels, Tags
from assay._core.showing import Library, data_frame, html_table
from assay.metrics import COMPARED, Metric, Tables
from assay.metrics.inference import Interval, Withheld, holm
from assay.predictions import Outcomes, Predictions, refuse_weights

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
    """The verdict on one axis, by one test."""

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
    tables: tuple[Tables, Tables] | None = field(default=None, repr=False, compare=False)  # what it was read from

    def __getitem__(self, key: str) -> Difference:
        return self.differences[key]

    def keys(self) -> list[str]:
        """The metrics that were compared."""
        return list(self.differences)

    def to_dict(self) -> dict[str, float]:
        """The differences, second minus first, by metric."""
        return {key: difference.value for key, difference in self.differences.items()}

    def to_frame(self, library: Library = "pandas") -> Any:
        """A data frame with one row a metric: both values, their difference, its interval and p-value."""
        return data_frame(self._rows(), library)

    def _rows(self) -> list[dict[str, Any]]:
        return [
            {
                "metric": key,
                "first": d.a,
                "second": d.b,
                "difference": d.value,
                "low": d.interval.low if d.interval else None,
                "high": d.interval.high if d.interval else None,
                "p_value": d.p_value,
            }
            for key, d in self.differences.items()
        ]

    def _repr_html_(self) -> str:
        rows = self._rows()
        return html_table(str(self), list(rows[0]), [list(row.values()) for row in rows])

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
    refuse_weights(a, b)
    a, b = _matched(a, b, names)
    x, y = Tables(a), Tables(b)
    differences = {key: _difference(m, x, y) for key, m in COMPARED.items() if m.needs(x) and m.needs(y)}
    return Comparison(x.ranking.n, differences, _verdicts(differences), by_ids=a.ids is not None, tables=(x, y))


def _difference(metric: Metric, x: Tables, y: Tables) -> Difference:
    tested = metric.paired(x, y) if metric.paired else Withheld("no paired test of known level")
    if isinstance(tested, Withheld):
        return Difference(x.once(metric.of), y.once(metric.of), note=tested.reason)
    return Difference(x.once(metric.of), y.once(metric.of), tested.interval, tested.p_value)


def _verdicts(differences: dict[str, Difference]) -> tuple[Verdict, ...]:
    there = [axis for axis, (metric, _) in AXES.items() if axis != POSITIVE or metric in differences]
    tested = {axis: differences.get(AXES[axis][0]) for axis in there}
    p_values = {axis: d.p_value for axis, d in tested.items() if d is not None and d.p_value is not None}
    corrected = dict(zip(p_values, holm(list(p_values.values())), strict=True))

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
        other = a.labels != b.labels
        if other.any():
            row = int(other.argmax())
            labels = f"label {a.labels[row]} in {names[0]}, {b.labels[row]} in {names[1]}"
            hint = "" if a.ids is not None else "; without ids rows are paired in order, ids would match them"
            raise InputError(f"not the same samples: row {row} has {labels}{hint}")
    return a, b


def _order(ids: Tags, other: Tags, names: tuple[str, str]) -> Labels:
    """Rows of `other` in the order of `ids`."""
    if ids.dtype.kind != other.dtype.kind and "U" in ids.dtype.kind + other.dtype.kind:
        ids, other = ids.astype(str), other.astype(str)
    sorting = np.argsort(other)
    place = np.searchsorted(other, ids, sorter=sorting).clip(max=len(other) - 1)
    missing = other[sorting[place]] != ids
    if missing.any():
        raise InputError(f"not the same samples: id {ids[missing.argmax()]} is in {names[0]} only")
    return np.asarray(sorting[place])
