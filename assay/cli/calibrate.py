"""The command `assay calibrate`."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from assay import files, maps
from assay._core import loops
from assay._core.arrays import InputError
from assay._core.variants import parse_variant
from assay._core.writing import not_over
from assay._matching import in_order
from assay.calibrators import (
    CALIBRATORS,
    TOP_LABEL,
    auto,
    calibrator,
    cross_applied,
    cross_validated,
    rows_digest,
    shared_rows,
)
from assay.cli.advice import advise, command
from assay.cli.calibrate_files import calibrate_files
from assay.cli.inputs import STANDARD, ColumnNames, Threads, classes_of, refuse_among, refuse_group
from assay.cli.output import console, show, working
from assay.comparing import Comparison, compare
from assay.maps import Map
from assay.predictions import Outcomes, Predictions
from assay.report.corrections import calibrators_view
from assay.scale import is_sharded

Rows = Predictions | Outcomes
Calibrator = Callable[[Any], Map]


def calibrate_command(
    held_out: Path,
    *,
    method: str = "temperature",
    apply: Path | None = None,
    out: Path | None = None,
    save: Path | None = None,
    columns: ColumnNames = STANDARD,
    json: Path | None = None,
    html: Path | None = None,
    in_sample: Annotated[bool, Parameter(negative="")] = False,
    threads: Threads = None,
) -> None:
    """Fit a calibrator on held-out predictions, and say what it does to calibration and to ranking.

    It is judged on the test set, or without one by cross-validation.

    Parameters
    ----------
    held_out
        Predictions to fit on. A folder or a pattern in quotes is read in passes, in memory that does not grow: for
        temperature, isotonic and histogram, judged on --apply, a folder or a pattern too.
    method
        A calibrator (`assay list calibrators`), possibly with values, as in temperature_ece,step=0.1; or `all` for a
        table of them all.
    apply
        Predictions of a test set, to apply the map to and to judge it on.
    out
        Write the calibrated test predictions to this file; those of a folder or a pattern to this folder.
    save
        Write the map to this file, as JSON.
    json
        Write all numbers before and after to this file.
    html
        Write a page that shows before and after to this file.
    in_sample
        Judge the map even on rows that it was fitted on.
    """
    refuse_group(columns)
    into_folder = (
        out is not None and apply is not None and is_sharded(apply) and out.is_dir() and not any(out.iterdir())
    )
    not_over(None if into_folder else out, save, json, html, reading=[held_out, apply])
    refuse_among(save, json, html, reading=[held_out] if apply is None else [held_out, apply])
    if is_sharded(held_out) or (apply is not None and is_sharded(apply)):
        if html is not None:
            raise InputError("--html needs the rows; give files instead of folders")
        with loops.threads(threads):
            calibrate_files(held_out, method, apply, out, save, columns, json)
        return
    fit_on = files.read(held_out, columns)
    test = None if apply is None else in_order(files.read(apply, columns), classes_of(fit_on))
    chosen = _calibrators(method, fit_on)
    _refuse_outputs(chosen, test, {"--out": out, "--save": save, "--html": html})
    if test is not None and not in_sample:
        _refuse_shared(fit_on, test)
    with loops.threads(threads):
        judged, refused, after = _judged(chosen, fit_on, test)
    if save is not None:
        [(mapping, _)] = judged.values()
        fit = replace(mapping.fit, rows=rows_digest(fit_on), classes=classes_of(fit_on))
        maps.save(replace(mapping, fit=fit), save)
    if out is not None:
        files.write(after, out)
    judged_on = f"{len(fit_on):,} rows, by cross-validation" if test is None else f"{len(test):,} rows, of the test set"
    show(calibrators_view(judged, judged_on, refused, in_folds=test is None, width=console().width))
    if json is not None:
        from assay.report.jsons import write_json

        write_json({name: comparison for name, (_, comparison) in judged.items()}, json)
    if html is not None:
        from assay.report.page import correction_page

        [(name, (_, comparison))] = judged.items()
        following = command(*_next(judged, held_out, save), columns=columns)
        before = fit_on if test is None else test
        correction_page(before, (name, after), comparison, html, next_command=following)
    advise(*_next(judged, held_out, save), columns=columns)


def _judged(
    chosen: dict[str, Calibrator], fit_on: Rows, test: Rows | None
) -> tuple[dict[str, tuple[Map, Comparison]], dict[str, str], Rows]:
    """What each calibrator does, why others are refused, and the rows after the last: all of them would fill memory."""
    judged: dict[str, tuple[Map, Comparison]] = {}
    refused: dict[str, str] = {}
    with working() as say:
        for name, calibrator in chosen.items():
            say(f"fitting {name}")
            if calibrator is auto:
                calibrator = partial(auto, progress=lambda doing: say(f"fitting auto, {doing}"))
            try:
                mapping, after = _fitted(calibrator, fit_on, test)
            except InputError as problem:
                if len(chosen) == 1:
                    raise
                refused[name] = str(problem)
                continue
            judged[name] = mapping, _compared(fit_on if test is None else test, after)
    if not judged:
        raise InputError(f"these rows allow none of the calibrators; {', '.join(map(': '.join, refused.items()))}")
    return judged, refused, after


def _next(judged: Collection[str], held_out: Path, save: Path | None) -> tuple[str | Path, ...]:
    """Save the map; with a saved one, choose a threshold."""
    if save is not None:
        return "threshold", "OTHER_ROWS", "--map", save, "--risk", "0.01", "--json", "threshold.json"
    method = "auto" if len(judged) > 1 else next(iter(judged))
    return "calibrate", held_out, "--method", method, "--save", "map.json"


def _calibrators(method: str, held_out: Rows) -> dict[str, Calibrator]:
    """The calibrators of that name, or all that the rows allow."""
    allowed = CALIBRATORS if isinstance(held_out, Predictions) else TOP_LABEL
    if method == "all":
        return dict(allowed)
    variant = parse_variant(method)
    found = calibrator(method)
    if variant.name in CALIBRATORS and variant.name not in allowed:
        raise InputError(f"{variant.name} needs the logits of all classes; confidences allow {', '.join(allowed)}")
    return {str(variant): found}


def _refuse_outputs(chosen: dict[str, Calibrator], test: Rows | None, outputs: dict[str, Path | None]) -> None:
    if outputs["--out"] is not None and test is None:
        raise InputError("--out needs --apply, the predictions to calibrate")
    if len(chosen) > 1 and any(file is not None for file in outputs.values()):
        raise InputError(f"{', '.join(outputs)} need one method, not all")


def _refuse_shared(fit_on: Rows, test: Rows) -> None:
    shared = shared_rows(fit_on, test)
    if shared > len(test) / 100:
        raise InputError(f"{shared} of {len(test)} test rows were fitted on; judge on others, or say --in-sample")


def _fitted(calibrator: Calibrator, fit_on: Rows, test: Rows | None) -> tuple[Map, Rows]:
    """The map, and the calibrated test set, or by cross-validation the calibrated held-out set."""
    mapping = calibrator(fit_on)
    if test is not None:
        return mapping, maps.apply(mapping, test)
    if isinstance(fit_on, Predictions) and fit_on.n_classes == 2:  # class 1 is judged too
        return mapping, cross_applied(fit_on, calibrator)
    return mapping, cross_validated(fit_on, calibrator)


def _compared(before: Rows, after: Rows) -> Comparison:
    """Predictions are compared whole, so that two classes have a verdict on class 1."""
    whole = isinstance(before, Predictions) and isinstance(after, Predictions)
    return compare(before, after) if whole else compare(before.outcomes(), after.outcomes())
