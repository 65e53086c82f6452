"""Two models on the same samples: which is better calibrated, which knows its own errors better?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from math import inf, nan
from typing import TYPE_CHECKING, Any

import numpy as np

from assay._core.arrays import InputError
from assay._core.showing import Library, data_frame, html_table
from assay._matching import NAMES, matched
from assay.metrics import COMPARED, METRICS, Metric, Ranking, Summary, Tables, is_summary
from assay.metrics.inference import (
    ROUNDING,
    Change,
    Estimate,
    Interval,
    Withheld,
    change,
    holm,
    mean_estimate,
    of_runs,
)
from assay.predictions import Outcomes, Predictions, unknown_source

if TYPE_CHECKING:
    from assay.scale import Joint

Either = Predictions | Outcomes
Read = Either | Summary
POSITIVE = "calibration of class 1"  # of two; the top label cannot answer for it
# The metric that decides an axis, and the sign of a change for the better.
AXES = {
    "accuracy": ("accuracy", 1),
    "calibration": ("calibration_part", -1),
    POSITIVE: ("part_positive", -1),
    "refinement": ("auroc", 1),
}
IN_POINTS = ("accuracy", "refinement")  # axes whose metric is a share, which one margin can be for
NEEDS_ROWS = "a paired test needs the rows, not their summary"
LEVEL = 0.05  # chance of calling two equal models different on any axis


@dataclass(frozen=True)
class Difference:
    """One metric of both models. Where no test of known level exists the interval is absent and `note` says so."""

    a: float
    b: float
    interval: Interval | None = None  # of b - a; of a metric that decides an axis corrected as its verdict is
    p_value: float | None = None
    note: str = ""
    estimate: Estimate | None = field(default=None, repr=False)
    pairs: float = field(default=inf, repr=False)  # independent ones, of a difference of shares

    @property
    def value(self) -> float:
        return self.b - self.a


@dataclass(frozen=True)
class Verdict:
    """The verdict on one axis, by one test."""

    axis: str
    metric: str
    word: str  # better, worse, none shown, equivalent, cannot tell: of b against a
    p_value: float  # corrected for the number of axes (Holm)
    note: str = ""
    detectable: float = nan  # a difference of this size would have been shown 4 times of 5

    @property
    def reason(self) -> str:
        tested = f"{self.metric}, p = {self.p_value:.2g}"
        if self.note or self.word != "none shown":
            return self.note or tested
        if self.detectable < ROUNDING:
            return f"{tested}; the two do not differ"
        if not self.detectable < 1:
            return f"{tested}; no difference could have been shown"
        return f"{tested}; {COMPARED[self.metric].unit(self.detectable)} would have been shown 4 times of 5"

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
    runs: int = 1  # trained models of each method

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

    def plot(self) -> Any:
        """A figure: the reliability diagram of each model, and errors against coverage of both."""
        if self.tables is None:
            raise InputError("this comparison has no predictions any more; make it by assay.compare(a, b)")
        models = dict(zip(("first", "second"), self.tables, strict=True))
        return import_module("assay.report.figures").audit_figure(models)

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


def compare(
    a: Read | Sequence[Either],
    b: Read | Sequence[Either],
    *,
    margin: float | Mapping[str, float] | None = None,
    names: tuple[str, str] = NAMES,
    joint: Joint | None = None,
    together: int = 1,
) -> Comparison:
    """Paired differences of `b` against `a`, and one verdict for accuracy, calibration and refinement.

    Rows are matched by ids; without ids they must be the same rows in the same order. Calibration is judged by the
    unbiased calibration part of the top-label Brier score, refinement by AUROC; the tests together call equal models
    different at most one time in twenty. Where no difference is shown, the verdict says which would have been, with a
    power of 80 %. Of two classes the probability of class 1 has a verdict on its calibration too. `names` are what
    errors call the two models; `together` says how many comparisons are made, all of which share the level.

    `margin` asks whether the two are equivalent: within it on accuracy and refinement (.005 is half a point), or on
    each axis that it names. Lists of predictions are several runs of two methods: a difference must then exceed what
    training another time would change. Summaries (`assay.scale.Tally`) do not tell which answers of the two models
    belong together: their metrics stand side by side. With `joint` (`assay.scale.Joint` of the same rows) accuracy, NLL
    and Brier are tested as from the rows; calibration and refinement need the rows.

    >>> import assay.examples
    >>> print(compare(assay.examples.load(), assay.examples.load()))
    accuracy none shown, calibration none shown, refinement none shown
    >>> print(compare(assay.examples.load(), assay.examples.load(), margin=0.01))
    accuracy equivalent, calibration none shown, refinement equivalent
    """
    if is_summary(a) or is_summary(b):
        return _of_summaries(a, b, joint, _margins(margin), together)
    if joint is not None:
        raise InputError("joint is for summaries; rows are compared in pairs without it")
    first, second = _runs(a), _runs(b)
    if len(first) != len(second) or not first:
        raise InputError(f"both methods need the same number of runs, got {len(first)} and {len(second)}")
    pairs = [matched(x, y, names) for x, y in zip(first, second, strict=True)]
    if len(pairs) > 1:
        _same_samples(pairs, names)
    tables = [(Tables(x), Tables(y)) for x, y in pairs]
    x, y = tables[0]
    every = [t for pair in tables for t in pair]
    differences = {key: _difference(m, tables) for key, m in COMPARED.items() if all(map(m.needs, every))}
    verdicts, shown = _verdicts(differences, _margins(margin), together)
    by_ids = pairs[0][0].ids is not None
    return Comparison(x.ranking.n, differences | shown, verdicts, by_ids, tables=(x, y), runs=len(pairs))


def _runs(given: Read | Sequence[Either]) -> list[Either]:
    if not isinstance(given, Predictions | Outcomes | list | tuple):
        raise unknown_source(given)
    return [given] if isinstance(given, Predictions | Outcomes) else list(given)


def _of_summaries(a: object, b: object, joint: Joint | None, margins: dict[str, float], together: int) -> Comparison:
    """Metrics side by side, with tests of the means where the rows were counted in pairs."""
    if not (is_summary(a) and is_summary(b)):
        raise InputError("a summary can be compared with another summary only; give the rows of both, or of neither")
    x, y = Tables(a), Tables(b)
    n = x.ranking.n
    if n != y.ranking.n:
        raise InputError(f"not the same samples: {n} rows against {y.ranking.n}")
    if joint is not None:
        _refuse_other_rows(joint, (x.ranking, y.ranking))
    there = [metric for metric in COMPARED.values() if metric.key in METRICS and metric.needs(x) and metric.needs(y)]
    found = {m.key: Difference(x.once(m.of), y.once(m.of), note=NEEDS_ROWS) for m in there}
    for key, tested in _of_pairs(joint).items() if joint is not None else ():
        if key in found:
            found[key] = replace(found[key], note="", **vars(tested))
    verdicts, shown = _verdicts(found, margins, together)
    told = tuple(replace(v, note=NEEDS_ROWS) if v.word == "cannot tell" else v for v in verdicts)
    return Comparison(n, found | shown, told, by_ids=False, tables=(x, y))


def _refuse_other_rows(joint: Joint, rankings: Sequence[Ranking]) -> None:
    """Refuse sums over pairs of other rows, other models, or the same two the other way round."""
    if any(ranking.weighing is not None for ranking in rankings):
        raise InputError("joint counts every row alike, and these summaries are of weighted rows; compare the rows")
    for which, ranking, wrong in zip(NAMES, rankings, joint.errors, strict=True):
        if (len(joint), wrong) != (ranking.n, ranking.n_wrong):
            raise InputError(
                f"joint has counted {len(joint)} rows with {wrong} errors of {which} model, its summary {ranking.n} "
                f"rows with {ranking.n_wrong}; give the sum of Joint.of(first, second) over the rows of these two"
            )


def _of_pairs(joint: Joint) -> dict[str, Change]:
    accuracy = joint.accuracy()
    means = {name: change(mean) for name in ("nll", "brier") if (mean := joint.mean(name)) is not None}
    of_pairs = Change(accuracy.estimate.interval(), accuracy.p_value, accuracy.estimate, len(joint))
    return {"accuracy": of_pairs, **means}


def compare_all(models: Mapping[str, Either], *, margin: float | None = None) -> dict[str, Comparison]:
    """Each model against the first one; all tests together call equal models different at most one time in twenty.

    >>> import assay.examples
    >>> models = {name: assay.examples.load(name) for name in assay.examples.MODELS}
    >>> print(*map(str, compare_all(models).values()))
    accuracy worse, calibration better, refinement none shown
    """
    (first, a), *others = models.items()
    return {name: compare(a, b, margin=margin, names=(first, name), together=len(others)) for name, b in others}


def common_rows(models: Mapping[str, Either]) -> dict[str, Either]:
    """The rows of each model whose ids all of them have."""
    for name, rows in models.items():
        if rows.ids is None:
            raise InputError(f"{name} has no ids, so nobody knows which rows are shared")
    shared = set.intersection(*(set(map(str, rows.ids.tolist())) for rows in models.values() if rows.ids is not None))
    if not shared:
        raise InputError(f"{' and '.join(models)} share no id")
    return {
        name: rows[np.array([str(each) in shared for each in rows.ids.tolist()])]
        for name, rows in models.items()
        if rows.ids is not None
    }


def _same_samples(pairs: list[tuple[Either, Either]], names: tuple[str, str]) -> None:
    """Runs of a method predict the same samples too."""
    for x, _ in pairs[1:]:
        matched(pairs[0][0], x, names)


def _margins(margin: float | Mapping[str, float] | None) -> dict[str, float]:
    given = margin if isinstance(margin, Mapping) else {} if margin is None else dict.fromkeys(IN_POINTS, margin)
    for axis, size in given.items():
        if axis not in AXES:
            raise InputError(f"margin names '{axis}'; the axes are {', '.join(AXES)}")
        if not size > 0:
            raise InputError(f"margin must be positive, got {size}")
        if size >= 1 and axis in IN_POINTS:
            raise InputError(f"margin must lie below 1, which is 100 points, got {size}")
    return dict(given)


def _difference(metric: Metric, tables: list[tuple[Tables, Tables]]) -> Difference:
    first, second = ([pair[side] for pair in tables] for side in (0, 1))
    a, b = (np.array([t.once(metric.of) for t in runs]) for runs in (first, second))
    mean_a, mean_b = float(a.mean()), float(b.mean())
    test = metric.change(first, second)
    if isinstance(test, Withheld):
        return Difference(mean_a, mean_b, note=test.reason)
    if len(tables) > 1:
        over_runs = of_runs(mean_b - mean_a, mean_estimate(a), mean_estimate(b), test.estimate)
        test = replace(change(over_runs), pairs=test.pairs)
    return Difference(mean_a, mean_b, **vars(test))


def _verdicts(
    differences: dict[str, Difference], margins: dict[str, float], together: int
) -> tuple[tuple[Verdict, ...], dict[str, Difference]]:
    """The verdict on each axis, and the differences that decide them with intervals that agree with them.

    Holm's procedure tests the least p-value at LEVEL / m, the next at LEVEL / (m - 1) and so on, until one is not
    significant; the intervals have these levels. Two one-sided tests at LEVEL / m each say that two models are
    equivalent; their interval lies within the margin then, and where they do not say it the one shown does not.
    """
    there = [axis for axis, (metric, _) in AXES.items() if axis != POSITIVE or metric in differences]
    tested = {axis: differences.get(AXES[axis][0]) for axis in there}
    p_values = {axis: d.p_value for axis, d in tested.items() if d is not None and d.p_value is not None}
    corrected = {axis: min(1.0, together * p) for axis, p in zip(p_values, holm(list(p_values.values())), strict=True)}
    left, verdicts, shown = len(p_values), {}, {}
    for axis in sorted(tested, key=lambda axis: p_values.get(axis, 2.0)):
        (metric, sign), difference = AXES[axis], tested[axis]
        if difference is None or difference.estimate is None:
            note = difference.note if difference else "a mere score only ranks"
            verdicts[axis] = Verdict(axis, metric, "cannot tell", nan, note)
            continue
        found, level, estimate = corrected[axis] < LEVEL, 1 - LEVEL / left / together / 2, difference.estimate
        one_sided, word, note = 1 - LEVEL / len(p_values) / together, "none shown", ""
        if found:
            word, left = "better" if sign * difference.value > 0 else "worse", left - 1
        elif axis in margins:
            level = max(level, one_sided)
        interval = _agreeing(estimate.interval(level), found)
        if axis in margins and abs(estimate.value) + estimate.half(one_sided) < margins[axis]:
            also = f"; {word} by less than that, p = {corrected[axis]:.2g}" if found else ""
            word, note = "equivalent", f"{metric}, within {COMPARED[metric].unit(margins[axis])}{also}"
            interval = estimate.interval(one_sided)
        shown[metric] = replace(difference, interval=interval)
        verdicts[axis] = Verdict(axis, metric, word, corrected[axis], note, _detectable(difference, level))
    return tuple(verdicts[axis] for axis in tested), shown


def _detectable(difference: Difference, level: float) -> float:
    """The difference that would have been shown with a power of 80 %.

    Accuracies that differ have more pairs of answers that do, and these vary more: with z the sum of both quantiles
    z^2 / 4 pairs are added, which two models that answered alike would need.
    """
    estimate = difference.estimate
    assert estimate is not None, "a difference without a test has no verdict"
    both = estimate.half(level) + estimate.half(0.8)
    return both + (both / estimate.error) ** 2 / (4 * difference.pairs) if both > 0 else both


def _agreeing(interval: Interval, found: bool) -> Interval:
    """An exact test and an interval may differ by a hair: the interval then ends at 0. Shares differ by 1 at most."""
    low, high = max(interval.low, -1.0), min(interval.high, 1.0)
    if not found:
        return Interval(min(low, 0.0), max(high, 0.0))
    return Interval(low, high) if not low < 0 < high else Interval(0.0, high) if high > -low else Interval(low, 0.0)
