"""The content of a study's page: a view of each table, a verdict in words, and the runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from assay.metrics import known_metric
from assay.report.page import _epochs, _runs
from assay.report.page._content import Content, short
from assay.report.page._runs import TRAINING_AXES, FoundRun
from assay.report.page._verdict import TITLES, Best, as_trained, best, by_axis, overall, same, words
from assay.report.quantities import heading, quantity
from assay.report.tables import cell_text, legend, table_title
from assay.study import Run, Study, StudyCell, StudyLine, StudyTable, better

LINES_SHOWN = 40  # lines of a table that are shown at once
ON_MAP = ("calibration", "refinement")
TONES = {"better": "good", "worse": "bad", "": ""}


def study_content(study: Study, runs: Sequence[Run], root: Path, tables: list[StudyTable], page: Path) -> Content:
    """The data that `study.js` shows."""
    found = _runs.find_runs(study, runs, root)
    filled = [table for table in tables if table.lines]
    points = list(dict.fromkeys(_point(table) for table in filled))
    by_method = [_by_method(found, point) for point in points]
    cells = sum(len(line.cells) for table in filled for line in table.lines)
    room = _epochs.room(cells, sum(map(len, by_method)), [each.folder for each in found])
    return {
        "name": study.name,
        "question": study.question,
        "progress": _runs.progress(found),
        "verdict": overall(filled) if len(filled) > 1 else [sentence for table in filled for sentence in words(table)],
        "assumed": study.assumed,
        "methods": list(dict.fromkeys(run.shown for run in runs)),
        "metrics": [_metric(metric) for metric in study.metrics],
        "views": [_view(table, study.metrics, points.index(_point(table))) for table in filled],
        "overview": _overview(filled) if len(filled) > 1 else None,
        "figures": [{"key": figure, "title": _epochs.title(figure)} for figure in room.figures],
        "left_out": room.left_out,
        "curves": [_epochs.epoch_curves(folders, room) for folders in by_method],
        "runs": _runs.table(found, page),
        "failures": _runs.failures(found, page),
    }


def _point(table: StudyTable) -> tuple[tuple[str, object], ...]:
    """The point of a table on the axes of training, without split and score."""
    return tuple((name, value) for name, value in table.point.items() if name in TRAINING_AXES)


def _by_method(found: Sequence[FoundRun], point: tuple[tuple[str, object], ...]) -> dict[str, list[Path]]:
    """The folders of the runs at a point, one a seed."""
    folders: dict[str, list[Path]] = {}
    for each in found:
        if all(getattr(each.run, name) == value for name, value in point):
            folders.setdefault(each.run.shown, []).append(each.folder)
    return folders


def _view(table: StudyTable, metrics: Sequence[str], curves: int) -> Content:
    return {
        "title": table_title(table),
        "verdict": words(table),
        "tiles": _tiles(table),
        "legend": legend(table) + _sources(table),
        "confidences": table.confidences,
        "lines": [_line(line, metrics) for line in table.lines],
        "first": LINES_SHOWN,
        "curves": curves,
    }


def _line(line: StudyLine, metrics: Sequence[str]) -> Content:
    """A cell for each metric of the study: the scripts find a cell by the index of its metric."""
    cells = [_cell(metric, line.cells[metric]) if metric in line.cells else {"text": "–"} for metric in metrics]
    return {"method": line.method, "calibrator": line.confidence, "cells": cells}


def _cell(metric: str, cell: StudyCell) -> Content:
    """A cell as in the other tables, with the seeds that the map shows. Empty fields are left out to save space."""
    text = cell_text(metric, cell)
    values = quantity(metric).unit.factor * np.array([cell.summary.mean, *cell.summary.values])
    [mean] = short(values[:1], 6)
    record = known_metric(metric)
    on_map = record is not None and record.axis in ON_MAP and np.isfinite(values).all()
    shown: Content = {
        "text": f"{text.number} {text.mark}".strip(),
        "value": mean,
        "under": text.paper,
        "tone": f"{TONES[cell.word]}{' best' if cell.best else ''}".strip(),
        "seeds": short(values[1:], 4) if on_map else None,
    }
    return {name: value for name, value in shown.items() if value not in ("", None)}


def _sources(table: StudyTable) -> str:
    """The papers whose figures are beside ours."""
    there = [cell.published for line in table.lines for cell in line.cells.values() if cell.published]
    found = ", ".join(dict.fromkeys(f"{figure.paper} table {figure.table}" for figure in there))
    return f" ({found})" if found else ""


def _metric(metric: str) -> Content:
    record = known_metric(metric)
    axis = "" if record is None else record.axis
    return {"key": metric, "title": heading(metric), "axis": axis, "better": better(metric)}


def _tiles(table: StudyTable) -> list[Content]:
    trained, several = as_trained(table), len(as_trained(table)) < len(table.lines)
    found = {"most accurate": best(table, trained, "accuracy")}
    found |= {TITLES[axis]: one for axis, one in by_axis(table, trained).items()}
    if several and "calibration" in by_axis(table, table.lines):
        found["best calibrated, with any calibrator"] = by_axis(table, table.lines)["calibration"]
    return [_tile(name, one) for name, one in found.items() if one is not None]


def _tile(name: str, one: Best) -> Content:
    return {
        "title": name,
        "text": one.name,
        "under": " · ".join(part for part in (one.figure, one.lead_in_full) if part),
    }


def _overview(tables: Sequence[StudyTable]) -> Content:
    """One row a table: the best method on each axis, as trained."""

    def cell(one: Best | None) -> Content:
        return {"text": "–"} if one is None else {"text": one.name, "value": one.name, "under": one.figure}

    def row(table: StudyTable) -> list[Content]:
        found = by_axis(table, as_trained(table))
        both = "–" if len(found) < len(TITLES) else "yes" if same(found) else "no"
        return [
            {"text": table_title(table), "value": table_title(table)},
            *(cell(found.get(axis)) for axis in TITLES),
            {"text": both},
        ]

    return {"columns": ["setting", *TITLES.values(), "the same"], "rows": list(map(row, tables)), "first": 10}
