"""Parameters that several commands have: files of predictions, the names of their columns, threads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from assay._core.arrays import InputError
from assay.files import Columns
from assay.predictions import Outcomes, Predictions

ColumnNames = Annotated[Columns, Parameter(name="*")]
STANDARD = Columns()
Threads = Annotated[
    int | None, Parameter(help="Threads to compute on; by default OMP_NUM_THREADS, or else one a core.")
]
Everything = Annotated[
    bool, Parameter(name="--all", negative="", help="Print every metric, not only the most used ones.")
]


def short_names(paths: Sequence[Path]) -> dict[str, Path]:
    """The files by their stems, or by their whole paths if two stems are equal."""
    stems = [path.stem for path in paths]
    if len(set(paths)) < len(paths):
        raise InputError("the same file is given twice")
    return dict(zip(stems if len(set(stems)) == len(stems) else map(str, paths), paths, strict=True))


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
