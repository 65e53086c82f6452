"""`assay calibrate` on more rows than fit into memory."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from rich.text import Text

from assay import maps
from assay._core.arrays import InputError
from assay._core.writing import not_over
from assay.calibrators import (
    apply_to_files,
    calibrated_chunks,
    streamed_temperature,
    summary_histogram,
    summary_isotonic,
)
from assay.cli.output import console, show, working
from assay.comparing import compare
from assay.files import Columns, write_chunks
from assay.maps import Map
from assay.report.corrections import calibrators_view
from assay.scale import chunks_of, is_sharded, shards, tally, tally_files

METHODS = ("temperature", "isotonic", "histogram")


def calibrate_files(
    held_out: Path,
    method: str,
    test: Path | None,
    out: Path | None,
    save: Path | None,
    columns: Columns,
    json: Path | None = None,
) -> None:
    """Fit in passes over the held-out files, and judge and apply the map on the test files."""
    if method not in METHODS:
        raise InputError(f"of a folder or a pattern {', '.join(METHODS)} can be fitted; {method} needs a single file")
    if (out is not None or json is not None) and test is None:
        flag, what = ("--out", "calibrate") if out is not None else ("--json", "judge the map on")
        raise InputError(f"{flag} needs --apply, the predictions to {what}")
    if test is not None and _resolved(held_out) & _resolved(test):
        raise InputError(f"{held_out} and {test} share a file; judge on rows that were not fitted on")
    not_over(save, json, reading=[held_out, test])
    with working(f"fitting {method}"):
        mapping = _fitted(held_out, method, columns)
    if save is not None:
        maps.save(mapping, save)
    if test is None:
        show(Text(f"map: {mapping}\nfit: {mapping.fit}"))
        return
    with working("applying"):
        before = tally_files(test, columns)
        after = tally(chunk for file in shards(test) for chunk in calibrated_chunks(mapping, file, columns))
        if out is not None and is_sharded(test):
            apply_to_files(mapping, test, out, columns)
        elif out is not None:
            write_chunks(calibrated_chunks(mapping, test, columns), out)
    comparison = compare(before, after)
    judged_on = f"{len(before):,} rows, of the test set"
    show(calibrators_view({method: (mapping, comparison)}, judged_on, {}, in_folds=False, width=console().width))
    if json is not None:
        from assay.report.jsons import write_json

        write_json({method: comparison}, json)


def _fitted(held_out: Path, method: str, columns: Columns) -> Map:
    if method == "temperature":
        return streamed_temperature(partial(chunks_of, held_out, columns))
    counted = tally_files(held_out, columns)
    return summary_isotonic(counted) if method == "isotonic" else summary_histogram(counted)


def _resolved(source: Path) -> set[str]:
    """The files of a source, however they are named."""
    return {file if isinstance(file, str) else str(file.resolve()) for file in shards(source)}
