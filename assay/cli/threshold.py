"""The command `assay threshold`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from assay import files, maps
from assay._core import loops
from assay._core.arrays import InputError
from assay._core.writing import not_over
from assay.cli.inputs import STANDARD, ColumnNames, Threads, in_order
from assay.cli.output import show
from assay.maps import ConfidenceMap, Map
from assay.predictions import Outcomes, Predictions
from assay.report import terminal
from assay.scale import Tally, is_sharded, tally_files
from assay.thresholds import By, choose_threshold, predicted_class

Rows = Predictions | Outcomes


def threshold_command(
    held_out: Path,
    *,
    risk: float | None = None,
    coverage: float | None = None,
    error_cost: float | None = None,
    by: By | None = None,
    level: float = 0.95,
    mapping: Annotated[Path | None, Parameter(name="--map")] = None,
    columns: ColumnNames = STANDARD,
    in_sample: Annotated[bool, Parameter(negative="")] = False,
    json: Path | None = None,
    threads: Threads = None,
) -> None:
    """Choose the confidence above which answers are accepted, with a guarantee on the errors among them.

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
    """
    not_over(json, reading=[held_out, mapping])
    if is_sharded(held_out):
        if by is not None or mapping is not None:
            flag = "--by" if by is not None else "--map"
            raise InputError(f"{held_out}: is summarized, and {flag} needs the rows; give a file instead of a folder")
        with loops.threads(threads):
            _chosen(tally_files(held_out, columns), None, risk, coverage, error_cost, level, json)
        return
    rows = files.read(held_out, columns)
    with loops.threads(threads):
        if mapping is not None:
            from assay.calibrators import rows_digest

            loaded = maps.load(mapping)
            rows = in_order(rows, loaded.fit.classes)
            if loaded.fit.rows == rows_digest(rows) and not in_sample:
                raise InputError(f"{mapping} was fitted on these very rows; the bound needs others, or say --in-sample")
            rows, by = _applied(loaded, rows, by)
        _chosen(rows, by, risk, coverage, error_cost, level, json)


def _chosen(
    rows: Rows | Tally,
    by: By | None,
    risk: float | None,
    coverage: float | None,
    error_cost: float | None,
    level: float,
    json: Path | None,
) -> None:
    chosen = choose_threshold(rows, by=by, risk=risk, coverage=coverage, error_cost=error_cost, confidence=level)
    show(terminal.threshold_view(chosen))
    if json is not None:
        from assay.report.jsons import write_json

        write_json(chosen, json)


def _applied(mapping: Map, rows: Rows, by: By | None) -> tuple[Rows, By | None]:
    """The rows with the map's confidence; a map of the confidence leaves no classes, so they become the groups."""
    for part in maps.parts(mapping):
        if by == "class" and isinstance(part, ConfidenceMap) and isinstance(rows, Predictions):
            rows, by = replace(rows, group=predicted_class(rows)), "group"
        rows = maps.apply(part, rows)
    return rows, by
