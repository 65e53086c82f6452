"""`assay calibrate` on more rows than fit into memory."""

from __future__ import annotations

from functools import partial
from hashlib import file_digest
from pathlib import Path
from typing import Any

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
from assay.files import ENDINGS, Columns, file_system, write_chunks
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
    not_over(save, json, reading=[held_out, test])
    if test is not None and out is not None:
        _refuse_no_place(out, test)
    if test is not None:
        _refuse_shared(held_out, test, columns)
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


def _refuse_no_place(out: Path, test: Path) -> None:
    """Refuse a name that is not one of what is written: a folder of files, or a Parquet file."""
    if is_sharded(test) and out.suffix in ENDINGS:
        raise InputError(f"{out}: is the name of a file, but the calibrated files of {test} go to a folder")
    if not is_sharded(test) and out.suffix != ".parquet":
        raise InputError(f"{out}: the calibrated rows are written as they come, to a .parquet file only")


def _refuse_shared(held_out: Path, test: Path, columns: Columns) -> None:
    """Refuse a test set with a file that was fitted on, also under another name."""
    why = f"{held_out} and {test} share a file; judge on rows that were not fitted on"
    if _resolved(held_out) & _resolved(test):
        raise InputError(why)
    fitted, judged = _by_size(held_out), _by_size(test)
    for size in fitted.keys() & judged.keys():
        known = set(map(_digest, fitted[size]))
        for file in judged[size]:
            if _digest(file) in known and any(chunks_of(file, columns)):  # files without rows are alike
                raise InputError(f"{file} is a copy: {why}")


def _resolved(source: Path) -> set[str]:
    """The files of a source, however they are named."""
    return {file if isinstance(file, str) else str(file.resolve()) for file in shards(source)}


def _by_size(source: Path) -> dict[int, list[Path | str]]:
    sizes: dict[int, list[Path | str]] = {}
    for file in shards(source):
        system, path = _reached(file)
        sizes.setdefault(system.get_file_info(path).size or 0, []).append(file)
    sizes.pop(0, None)  # also of files that are not there, which reading says
    return sizes


def _digest(file: Path | str) -> str:
    system, path = _reached(file)
    with system.open_input_stream(path, compression=None) as stream:
        return file_digest(stream, "sha256").hexdigest()


def _reached(file: Path | str) -> tuple[Any, str]:
    """The file system of a file, and its path there."""
    from pyarrow.fs import LocalFileSystem

    return file_system(file) if isinstance(file, str) else (LocalFileSystem(), str(file))
