"""Figures from a study's rows: methods compared, and metrics against varied quantities."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from assay.report import analyses, figures
from assay.report.analyses import apart, where
from assay.report.drawing._results import (
    TRAINING,
    Drawn,
    Results,
    by_metric,
    entitle,
    numbers,
    one_legend,
    panels,
    point_title,
    same_looks,
    spread_out,
)
from assay.report.statistics import Effect
from assay.study import TEMPERATURE, UNCHANGED, USUAL_SCORE, SeedSummary, Variant

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OF_RIGHT_AND_WRONG = ("ece_correct", "ece_wrong", "confidence_gap")
NUMBERS = ("n_train", "learning_rate", "weight_decay")
MOST_BARS = 60


def maps(results: Results) -> Drawn:
    """Calibration against refinement."""
    x, y = results.first("calibration"), results.first("refinement")
    for point, rows in apart(results.at({"split": "test", "calibrator": UNCHANGED}), TRAINING):
        if methods := analyses.both_axes(rows, calibration=x, refinement=y):
            figure, [ax] = panels(1, point_title(point))
            figures.calibration_refinement(methods, ax, calibration=x, refinement=y)
            yield f"map {point_title(point)}", figure


def bars(results: Results) -> Drawn:
    """Every metric of every method, with calibrators and scores, as bars (zhu2022, figs 2 to 4 and 13 to 15)."""
    test = where(results.rows, {"split": "test"})
    for point, rows in apart(results.of_most_held_out(test), TRAINING):
        there = by_metric(rows, results.study.metrics)
        found = {metric: analyses.by_variant(some) for metric, some in there.items()}
        most = max(map(len, found.values()), default=0)
        if 1 < most <= MOST_BARS:
            figure, axes = panels(len(found), f"{point_title(point)}: mean ± SEM", height=0.8 + 0.22 * most)
            for ax, (metric, values) in zip(axes, found.items(), strict=True):
                figures.bars(values, ax, metric=metric)
            yield f"bars {point_title(point)}", figure


def uncertainties(results: Results) -> Drawn:
    """ECE against average uncertainty."""
    y = results.first("calibration")
    for point, rows in apart(results.at({"split": "test", "calibrator": UNCHANGED}), TRAINING):
        if methods := analyses.uncertainties(rows, calibration=y):
            figure, [ax] = panels(1, point_title(point))
            figures.uncertainty(methods, ax, calibration=y)
            yield f"uncertainty {point_title(point)}", figure


def right_and_wrong(results: Results) -> Drawn:
    """Calibration of right and of wrong answers, and the gap between their confidences."""
    for point, rows in apart(results.at({"split": "test", "calibrator": UNCHANGED}), TRAINING):
        if by_metric(rows, OF_RIGHT_AND_WRONG):
            there = by_metric(rows, [results.first("calibration"), *OF_RIGHT_AND_WRONG])
            figure, axes = panels(len(there), point_title(point), height=0.8 + 0.28 * len(rows["method"].unique()))
            for ax, (metric, some) in zip(axes, there.items(), strict=True):
                figures.dots(analyses.by_method(some), ax, metric=metric)
            yield f"right and wrong {point_title(point)}", figure


def effects(results: Results) -> Drawn:
    """Effect of every method against its primary loss, or the baseline, one panel a calibrator."""
    test = results.at({"split": "test"})
    against = _against(results, set(test["method"].unique().to_pylist()))
    for metric in results.shown:
        for point, rows in apart(where(test, {"metric": metric}), TRAINING):
            found = {each["calibrator"]: analyses.effects(some, against) for each, some in apart(rows, ["calibrator"])}
            heading = (
                f"{point_title(point)}: effect on {metric} against {results.baseline} or the primary, by calibrator"
            )
            yield from _effects(f"effects on {metric} {point_title(point)}", heading, found)


def pooled_effects(results: Results) -> Drawn:
    """Effect of every secondary loss over all data sets, networks and primary losses."""
    metric = results.first("calibration")
    test = results.at({"split": "test", "metric": metric})
    found = {each["calibrator"]: _pooled(results, rows, metric) for each, rows in apart(test, ["calibrator"])}
    heading = f"effect on {metric}, mean over data sets, networks and primary losses, by calibrator"
    yield from _effects(f"effects of secondary losses on {metric}", heading, found)


def coefficients(results: Results) -> Drawn:
    """Metrics and the temperature against each coefficient that varies, one line a calibrator."""
    for recipe, coefficient, rows in _varied(results, results.at({"split": "test"})):
        others = [other for _, other, _ in _varied(results, rows) if other != coefficient]
        for point, some in apart(rows, TRAINING):
            if len(numbers(some, coefficient)) > 1 and by_metric(some, results.shown):
                figure = _sweeps(results, some, coefficient, ["calibrator", *others], f"{recipe}: {point_title(point)}")
                yield f"{coefficient} of {recipe} {point_title(point)}", figure


def best_coefficients(results: Results) -> Drawn:
    """The best value of each coefficient that varies alone in its recipe, against the size of the training set."""
    metric = results.first("calibration")
    test = results.at({"split": "test", "calibrator": UNCHANGED, "metric": metric})
    for point, rows in apart(test, [name for name in TRAINING if name != "n_train"]):
        varied = [(r, c, some) for r, c, some in _varied(results, rows) if len(_varied(results, some)) == 1]
        if len(numbers(rows, "n_train")) > 1 and varied:
            figure, axes = panels(len(varied), f"{point_title(point)}: by {metric}")
            for ax, (recipe, coefficient, some) in zip(axes, varied, strict=True):
                lines = analyses.best_coefficients(some, coefficient)
                figures.sweep(lines, ax, varied="n_train", metric=f"best {coefficient}").legend().remove()
                tried = numbers(some, coefficient)
                pad = 0.08 * (tried[-1] - tried[0])
                ax.set(yticks=tried, ylim=(tried[0] - pad, tried[-1] + pad))
                entitle(spread_out(ax, numbers(rows, "n_train")), recipe)
            yield f"best coefficients {point_title(point)}", figure


def axes_that_vary(results: Results) -> Drawn:
    """Metrics against the size of the training set, the learning rate and the weight decay."""
    test = results.at({"split": "test", "calibrator": UNCHANGED})
    for over in NUMBERS:
        for point, rows in apart(test, [name for name in TRAINING if name != over]):
            if len(numbers(rows, over)) > 1 and by_metric(rows, results.shown):
                yield f"{over} {point_title(point)}", _sweeps(results, rows, over, ["method"], point_title(point))


def held_out_sizes(results: Results) -> Drawn:
    """Calibration against the number of samples that a calibrator is fitted on, one panel a calibrator."""
    metric = results.first("calibration")
    of_metric = where(results.rows, {"split": "test", "score": USUAL_SCORE, "metric": metric})
    for point, rows in apart(of_metric, TRAINING):
        sizes = numbers(rows, "held_out")
        fitted = {
            each["calibrator"]: some for each, some in apart(rows, ["calibrator"]) if each["calibrator"] != UNCHANGED
        }
        if len(sizes) > 1 and fitted:
            figure, axes = panels(len(fitted), point_title(point))
            found = same_looks([analyses.lines(some, over="held_out", by=["method"]) for some in fitted.values()])
            for ax, calibrator, lines in zip(axes, fitted, found, strict=True):
                figures.sweep(lines, ax, varied="held-out samples", metric=metric)
                entitle(spread_out(ax, sizes), calibrator)
            yield f"held out sizes {point_title(point)}", one_legend(figure, axes)


def severities(results: Results) -> Drawn:
    """Metrics against the severity of corruptions: methods as trained, the baseline also with calibrators.

    karandikar2021, figs 7 and 8.
    """
    as_trained = results.at({"calibrator": UNCHANGED})
    calibrated = results.at({"method": str(results.baseline)})
    drawn = [as_trained, calibrated.filter(pc.not_equal(calibrated["calibrator"], UNCHANGED))]
    for heading, rows in _corrupted(analyses.with_variants(pa.concat_tables(drawn))):
        there = by_metric(rows, results.shown)
        if there:
            figure, axes = panels(len(there), heading)
            found = same_looks([analyses.severities(some, by=["variant"]) for some in there.values()])
            for ax, metric, lines in zip(axes, there, found, strict=True):
                figures.sweep(lines, ax, varied="severity", metric=metric)
            yield f"severities {heading}", one_legend(figure, axes)


def calibrators_under_shift(results: Results) -> Drawn:
    """Calibration against the severity of corruptions, one panel a method, one line a calibrator."""
    metric = results.first("calibration")
    for heading, rows in _corrupted(results.at({"metric": metric})):
        if len(rows["calibrator"].unique()) > 1:
            methods = {each["method"]: some for each, some in apart(rows, ["method"])}
            figure, axes = panels(len(methods), f"{heading}: SEM within kinds of corruption")
            found = same_looks([analyses.severities_within(some, by=["calibrator"]) for some in methods.values()])
            for ax, method, lines in zip(axes, methods, found, strict=True):
                entitle(figures.sweep(lines, ax, varied="severity", metric=metric), method)
            yield f"calibrators under shift {heading}", one_legend(figure, axes)


def _corrupted(rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """The corruptions made here at each point, and separately those read from each data set.

    Both include the rows without a shift.
    """
    for point, some in apart(rows, TRAINING):
        places: dict[str, list[str]] = {}
        for kind in filter(None, some["corruption"].unique().to_pylist()):
            places.setdefault(kind.rpartition("/")[0], []).append(kind)
        for place, kinds in places.items():
            own = pc.is_in(some["corruption"], pa.array(kinds))
            heading = f"{point_title(point)}, {place}" if place else point_title(point)
            yield heading, some.filter(pc.or_kleene(own, pc.equal(some["severity"], 0)))


def _sweeps(results: Results, rows: pa.Table, over: str, by: list[str], heading: str) -> Figure:
    """The study's metrics, and its temperature if there is one, against a column."""
    there = by_metric(rows, [*results.shown, TEMPERATURE])
    figure, axes = panels(len(there), heading)
    found = same_looks([analyses.lines(some, over=over, by=by) for some in there.values()])
    for ax, metric, lines in zip(axes, there, found, strict=True):
        spread_out(figures.sweep(lines, ax, varied=over, metric=metric), numbers(rows, over))
    return one_legend(figure, axes)


def _against(results: Results, there: set[str]) -> dict[str, str]:
    """The method that each method is compared with, of those that have rows."""
    methods = {name: method for name, method in results.methods.items() if name in there}
    others = {name: _primary(method, methods) or str(results.baseline) for name, method in methods.items()}
    return {name: other for name, other in others.items() if other != name and other in methods}


def _primary(method: Variant, methods: Mapping[str, Variant]) -> str | None:
    """The method of the primary loss, in the same set-up and with any values; None if there are several or none."""
    composite = analyses.secondary_and_primary(method.name)
    if composite is None:
        return None
    wanted = (composite[1], method.setup)
    same = [name for name, other in methods.items() if (other.name, other.setup) == wanted]
    return same[0] if len(same) == 1 else None


def _pooled(results: Results, rows: pa.Table, metric: str) -> list[Effect]:
    pairs: dict[str, list[tuple[SeedSummary, SeedSummary]]] = {}
    for _, some in apart(rows, TRAINING):
        values = analyses.by_method(some)
        methods = {name: results.methods[name] for name in values}
        for name, method in methods.items():
            primary = _primary(method, methods)
            if primary and analyses.comparable(values[name], values[primary]):
                pairs.setdefault(_secondary(method), []).append((values[name], values[primary]))
    return [analyses.pooled_effect(name, some, metric=metric) for name, some in pairs.items() if len(some) > 1]


def _secondary(method: Variant) -> str:
    """The secondary loss of a method, with the method's values."""
    name, _ = analyses.secondary_and_primary(method.name) or ("", "")
    return str(Variant(name, method.values))


def _effects(name: str, heading: str, found: dict[str, list[Effect]]) -> Drawn:
    """One panel a calibrator."""
    some = {calibrator: each for calibrator, each in found.items() if each}
    if some:
        figure, axes = panels(len(some), heading, height=1 + 0.28 * max(map(len, some.values())))
        for ax, (calibrator, each) in zip(axes, some.items(), strict=True):
            entitle(figures.effects(each, ax), calibrator).set_xlabel("Cohen's d, better →")
        yield name, figure


def _varied(results: Results, rows: pa.Table) -> list[tuple[str, str, pa.Table]]:
    """(recipe, coefficient, its rows) for each coefficient of a recipe that has several values."""
    coefficients = [name for name in results.value_columns if pa.types.is_floating(rows.schema.field(name).type)]
    texts = [name for name in results.value_columns if name not in coefficients]
    return [
        (_recipe(point, texts), coefficient, some)
        for point, some in apart(rows, ["recipe", "setup", *texts])
        for coefficient in coefficients
        if len(numbers(some, coefficient)) > 1
    ]


def _recipe(point: dict[str, Any], texts: list[str]) -> str:
    """The name of the methods that differ only by their coefficients."""
    values = {name: point[name] for name in texts if point[name] is not None}
    return str(Variant(point["recipe"], values, point["setup"]))
