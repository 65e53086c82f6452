"""The command `assay threshold`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil, floor, isnan
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from assay import files, maps
from assay._core import loops
from assay._core.arrays import InputError
from assay._core.writing import not_over
from assay._matching import in_order
from assay.cli.advice import advise, command
from assay.cli.audit import Counting
from assay.cli.inputs import STANDARD, ColumnNames, Threads, refuse_among
from assay.cli.output import show
from assay.files import Columns
from assay.maps import ConfidenceMap, Map
from assay.predictions import Outcomes, Predictions
from assay.report.promises import threshold_view
from assay.scale import Tally, is_sharded
from assay.thresholds import (
    By,
    GroupThresholds,
    PositiveThreshold,
    Threshold,
    choose_positive_threshold,
    choose_threshold,
    predicted_class,
)

Rows = Predictions | Outcomes


@Parameter(name="*")
@dataclass(frozen=True)
class OfClassOne:
    """The goals of two classes, for the answer 1.

    Parameters
    ----------
    precision
        Two classes: at least this share of the rows answered 1 are of class 1.
    recall
        Two classes: at least this share of the rows of class 1 are answered 1.
    costs
        Two classes: the least cost, by the costs of a true 0, a false 1, a false 0 and a true 1, as in 0,1,50,0.
    """

    precision: float | None = None
    recall: float | None = None
    costs: str | None = None

    def flags(self) -> dict[str, float | str | None]:
        return {"--precision": self.precision, "--recall": self.recall, "--costs": self.costs}

    def __bool__(self) -> bool:
        return any(goal is not None for goal in self.flags().values())

    def choose(self, rows: Rows | Tally, level: float) -> PositiveThreshold:
        if not isinstance(rows, Predictions):
            raise InputError(
                "--precision, --recall and --costs need the probability of class 1, by --positive for example"
            )
        costs = None if self.costs is None else _matrix(self.costs)
        return choose_positive_threshold(
            rows, precision=self.precision, recall=self.recall, costs=costs, confidence=level
        )


def threshold_command(
    held_out: Path,
    *,
    risk: float | None = None,
    coverage: float | None = None,
    error_cost: float | None = None,
    of_class_1: OfClassOne = OfClassOne(),
    by: By | None = None,
    level: float = 0.95,
    mapping: Annotated[Path | None, Parameter(name="--map")] = None,
    columns: ColumnNames = STANDARD,
    in_sample: Annotated[bool, Parameter(negative="")] = False,
    json: Path | None = None,
    html: Path | None = None,
    skip_bad: int = 0,
    threads: Threads = None,
) -> None:
    """Choose the confidence above which answers are accepted, with a guarantee on the errors among them.

    Of two classes, --precision, --recall or --costs choose the probability from which to answer class 1 instead.

    Parameters
    ----------
    held_out
        Predictions that neither the model nor the map were fitted on; a folder, a pattern in quotes or an address
        is counted in memory that does not grow.
    risk
        Accept at most this share of errors; .01 if no other goal is given.
    coverage
        Accept this share of inputs instead.
    error_cost
        Or minimize the cost: an accepted error costs as much as this many reviews.
    by
        One threshold for each `group` (a column named by --group) or predicted `class`, whose guarantees hold together.
    level
        Probability that the guarantee holds.
    mapping
        A map to apply first, as `assay calibrate --save` writes it.
    in_sample
        Continue even if the map was fitted on these very rows: the guarantee is then too good.
    json
        Write the threshold and its figures to this file.
    html
        Write a page with the threshold to this file.
    skip_bad
        Of many files: leave out and list up to so many bad rows, row groups and files; else the first is an error.
    """
    counting = Counting(skip_bad=skip_bad)
    counting.check([held_out])
    not_over(json, html, reading=[held_out, mapping])
    refuse_among(json, html, reading=[held_out])
    of_all = {"risk": risk, "coverage": coverage, "error_cost": error_cost}
    if of_class_1 and any(goal is not None for goal in (*of_all.values(), by)):
        raise InputError("--precision, --recall and --costs are goals for class 1; leave out those for all answers")
    if is_sharded(held_out):
        _refuse_what_needs_rows(
            held_out, {"--by": by, "--map": mapping, "--weight": columns.weight, **of_class_1.flags()}
        )
    with loops.threads(threads):
        rows, by = _rows(held_out, columns, counting, mapping, by, in_sample)
        chosen: Threshold | GroupThresholds | PositiveThreshold
        if of_class_1:
            chosen = of_class_1.choose(rows, level)
        else:
            chosen = choose_threshold(rows, by=by, confidence=level, **of_all)
    show(threshold_view(chosen))
    if json is not None:
        from assay.report.jsons import write_json

        write_json(chosen, json)
    if html is not None:
        mapped = () if mapping is None else ("--map", mapping)
        again = command("threshold", held_out, *mapped, columns=replace(columns, group=None))
        _write_page(held_out.stem, rows, chosen, html, again)
    asked = {"--coverage": coverage, "--error-cost": error_cost, "--costs": of_class_1.costs}
    asked_for = tuple(word for flag, goal in asked.items() if goal is not None for word in (flag, str(goal)))
    _advise(chosen, held_out, mapping, json, asked_for, columns)


def _write_page(
    name: str, rows: Rows | Tally, chosen: Threshold | GroupThresholds | PositiveThreshold, html: Path, again: str
) -> None:
    from assay.report.page import threshold_page

    if not isinstance(chosen, Threshold):
        raise InputError("--html shows one threshold on the confidence; --json has those of groups and of class 1")
    threshold_page(name, rows, chosen, html, command=again)


def _refuse_what_needs_rows(file: Path, given: Mapping[str, object]) -> None:
    for flag, value in given.items():
        if value is not None:
            raise InputError(f"{file}: is summarized, and {flag} needs the rows; give a file instead of a folder")


def _rows(
    held_out: Path, columns: Columns, counting: Counting, mapping: Path | None, by: By | None, in_sample: bool
) -> tuple[Rows | Tally, By | None]:
    """The rows under the map, or the summary of many files, and what the thresholds are by."""
    if is_sharded(held_out):
        return counting.tally(str(held_out), held_out, columns), by
    rows = files.read(held_out, columns)
    if mapping is None:
        return rows, by
    from assay.calibrators import rows_digest

    loaded = maps.load(mapping)
    rows = in_order(rows, loaded.fit.classes)
    if loaded.fit.rows == rows_digest(rows) and not in_sample:
        raise InputError(f"{mapping} was fitted on these very rows; the bound needs others, or say --in-sample")
    return _applied(loaded, rows, by)


def _advise(
    chosen: Threshold | GroupThresholds | PositiveThreshold,
    held_out: Path,
    mapping: Path | None,
    json: Path | None,
    asked: tuple[str, ...],
    columns: Columns,
) -> None:
    """Ship what can be promised; watch what is shipped. A goal that is no promise was `asked` for, and is so again.

    A risk that was read off these rows is promised on others: a second look at the same ones is not accounted for.
    """
    if isinstance(chosen, GroupThresholds):
        return
    mapped = () if mapping is None else ("--map", mapping)
    if chosen.reason:
        if chosen.instead is not None:
            advise("threshold", "OTHER_ROWS", *mapped, *_goal(chosen.instead), columns=columns)
    elif json is not None:
        if chosen.weighted is not None or isnan(chosen.guaranteed_risk):
            return  # nothing can be tested then
        advise("recheck", "NEW_ROWS", *mapped, "--threshold", json, columns=replace(columns, group=None))
    else:
        advise("threshold", held_out, *mapped, *(asked or _goal(chosen)), "--json", "threshold.json", columns=columns)


def _goal(chosen: Threshold | PositiveThreshold) -> tuple[str, str]:
    """The promise as a flag, rounded to the side that is easier to keep."""
    if isinstance(chosen, Threshold):
        return "--risk", f"{ceil(chosen.guaranteed_risk * 1e4 - 1e-6) / 1e4:.4g}"
    return f"--{chosen.goal}", f"{floor(chosen.promised * 1e4 + 1e-6) / 1e4:.4g}"


def _matrix(costs: str) -> list[list[float]]:
    try:
        true_0, false_1, false_0, true_1 = map(float, costs.split(","))
    except ValueError:
        hint = "four numbers with commas between, of a true 0, a false 1, a false 0 and a true 1"
        raise InputError(f"--costs must be {hint}, got {costs}") from None
    return [[true_0, false_1], [false_0, true_1]]


def _applied(mapping: Map, rows: Rows, by: By | None) -> tuple[Rows, By | None]:
    """The rows with the map's confidence; a map of the confidence leaves no classes, so they become the groups."""
    maps.refuse_twice(mapping, rows)
    for part in maps.parts(mapping):
        if by == "class" and isinstance(part, ConfidenceMap) and isinstance(rows, Predictions):
            rows, by = replace(rows, group=predicted_class(rows)), "group"
        rows = maps.apply(part, rows)
    return rows, by
