"""The next sensible command, filled in, at the end of a command's output."""

from __future__ import annotations

import shlex
from dataclasses import fields
from pathlib import Path

from rich.text import Text

from assay.cli.inputs import STANDARD
from assay.cli.output import show
from assay.files import Columns


def advise(*words: str | Path, columns: Columns = STANDARD) -> None:
    """Print the next command, with the names of columns that this one was given."""
    show(Text(f"next: {command(*words, columns=columns)}", "dim"), soft_wrap=True)


def command(*words: str | Path, columns: Columns = STANDARD) -> str:
    """A command to copy into a shell.

    >>> command("audit", "my file.csv", columns=Columns(positive="p", label="y", percent=True))
    "assay audit 'my file.csv' --label y --positive p --percent"
    """
    return shlex.join(["assay", *map(str, words), *_flags(columns)])


def _flags(columns: Columns) -> list[str]:
    """The flags that name these columns."""
    flags: list[str] = []
    for field in fields(Columns):
        value = getattr(columns, field.name)
        if value != field.default:
            flags += [f"--{field.name.replace('_', '-')}"] + ([] if value is True else [str(value)])
    return flags
