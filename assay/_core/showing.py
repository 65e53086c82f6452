"""Results as data frames, and as small tables in notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib import import_module
from typing import Any, Literal

from assay._core.arrays import InputError

Library = Literal["pandas", "polars"]

# No colors but those of the page, so that light and dark notebooks both show it.
TABLE = "border-collapse:collapse;font-size:90%"
CELL = "padding:.15em .8em;text-align:right;border-bottom:1px solid color-mix(in srgb,currentColor 25%,transparent)"


def data_frame(table: Sequence[dict[str, Any]] | dict[str, Any], library: Library = "pandas") -> Any:
    """Rows, or columns by name, as a data frame of pandas or polars."""
    try:
        made = import_module(library)
    except ImportError as problem:
        raise InputError(f"a data frame needs {library}: pip install {library}") from problem
    return made.DataFrame(table)


def html_table(caption: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table to show in a notebook.

    >>> html_table("x < y", ["a"], [[1]])[:60]
    '<div>x &lt; y</div><table style="border-collapse:collapse;fo'
    """
    head = "".join(f'<th style="{CELL}">{escape(name)}</th>' for name in header)
    body = ("".join(f'<td style="{CELL}">{escape(shown(cell))}</td>' for cell in row) for row in rows)
    lines = "".join(f"<tr>{row}</tr>" for row in body)
    return f'<div>{escape(caption)}</div><table style="{TABLE}"><tr>{head}</tr>{lines}</table>'


def shown(cell: object) -> str:
    """A cell to read: numbers with four digits, nothing for None."""
    return "" if cell is None else f"{cell:.4g}" if isinstance(cell, float) else str(cell)
