"""Parameters that several commands have: files of predictions, the names of their columns, threads."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from glob import escape, has_magic
from itertools import takewhile
from pathlib import Path, PurePath
from typing import Annotated

from cyclopts import Parameter

from assay._core.arrays import InputError
from assay.files import Columns, holds_predictions
from assay.predictions import Outcomes, Predictions
from assay.scale import is_sharded
from assay.scale._parts import _is_data, _matches, address

ColumnNames = Annotated[Columns, Parameter(name="*")]
STANDARD = Columns()
Threads = Annotated[
    int | None, Parameter(help="Threads to compute on; by default OMP_NUM_THREADS, or else one a core.")
]
Everything = Annotated[
    bool, Parameter(name="--all", negative="", help="Print every metric, not only the most used ones.")
]


def short_names(paths: Sequence[Path]) -> dict[str, Path]:
    """The files by their stems, patterns by their folders; or by their whole paths if two of these are equal."""
    stems = [_folder(path) if is_sharded(path) else path.stem for path in paths]
    if len(set(paths)) < len(paths):
        raise InputError("the same file is given twice")
    return dict(zip(stems if len(set(stems)) == len(stems) else map(str, paths), paths, strict=True))


def _folder(source: Path) -> str:
    """The name of a folder, or of the one in which a pattern looks."""
    plain = [*source.parts] if source.is_dir() else takewhile(lambda part: not has_magic(part), source.parts)
    return PurePath(*plain).stem or Path.cwd().stem


def refuse_many(*given: Path | None) -> None:
    """Refuse folders and patterns in a command that needs all rows at once."""
    for path in given:
        if path is not None and is_sharded(path):
            raise InputError(f"{path}: stands for many files, and this command needs the rows of one; give one file")


def refuse_among(*written: Path | None, reading: Iterable[Path]) -> None:
    """Refuse, before the work, an output that the same command would read as input the next time."""
    for source in reading:
        for path in written:
            if path is not None and _is_read(Path(os.path.realpath(path)), source):
                raise InputError(f"{path} would be read as predictions the next time; write it outside of {source}")


def _is_read(path: Path, source: Path) -> bool:
    """Whether a folder or a pattern stands for a file, now or once it exists."""
    if not is_sharded(source) or address(source):
        return False
    real = os.path.realpath(source)
    pattern = list(Path(escape(real) if source.is_dir() else real).parts)
    pattern += ["*"] if pattern[-1] == "**" else []  # at the end it stands for files too
    if _matches(list(path.parts), pattern):
        return True
    folders = [depth for depth in range(1, len(path.parts)) if _matches(list(path.parts[:depth]), pattern)]
    return bool(folders) and holds_predictions(path) and all(map(_is_data, path.parts[folders[-1] :]))


def refuse_columns(columns: Columns) -> None:
    """Refuse names of columns if no file is given."""
    if columns != STANDARD:
        raise InputError("columns are named but no file is given")


def refuse_group(columns: Columns) -> None:
    """Refuse --group in a command that has no groups."""
    if columns.group is not None:
        raise InputError("only `assay audit` is broken down by --group")


def classes_of(rows: Predictions | Outcomes) -> tuple[str, ...] | None:
    """The names of the classes, if the predictions have them."""
    return rows.classes if isinstance(rows, Predictions) else None
