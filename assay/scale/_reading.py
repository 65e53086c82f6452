"""The tally of one part of the files, and what of it is bad."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Lock

import numpy as np

from assay._core.arrays import InputError
from assay.files import Columns, Needed, assemble, read_pairs, read_tables
from assay.files._formats import LazyTable as Table
from assay.predictions import Outcomes, Predictions
from assay.scale._filling import Filling
from assay.scale._parts import Part
from assay.scale._tally import Tally

Count = Callable[[int], None]
ROWS = 2**20  # of two numbers each, read at once


@dataclass
class Bad:
    """What may be left out: at most so many rows, row groups and files together."""

    most: int = 0
    left_out: dict[str, list[str]] = field(default_factory=dict)  # by part, the errors of what is bad in it
    _lock: Lock = field(default_factory=Lock, repr=False)

    def leave_out(self, part: str, problem: InputError) -> None:
        """Note a bad place, or raise its error if there are too many."""
        with self._lock:
            if not self.most:
                raise problem
            if sum(map(len, self.left_out.values())) >= self.most:
                raise InputError(f"more than {self.most} bad places (--skip-bad); the next: {problem}") from problem
            self.left_out.setdefault(part, []).append(str(problem))


def good_chunks(part: Part, columns: Columns, bad: Bad) -> Iterator[Predictions | Outcomes]:
    """The rows that `tally_of` counts."""
    if not bad.most:
        yield from _chunks(part, columns, bad)
        return
    for one in part.each_group():
        found: list[Predictions | Outcomes] = []
        with suppress(_Damaged):
            found = list(_chunks(one, columns, bad))
        yield from found


def tally_of(part: Part, columns: Columns, bad: Bad, *, on_grid: bool, count: Count) -> Tally | None:
    """The tally of a part; None if all of it is left out. `count` is told of rows as they are read.

    Where bad rows may be left out, a damaged row group counts for nothing: what was read of it is dropped.
    """
    total: Tally | None = None
    for one in part.each_group() if bad.most else [part]:
        try:
            found = _filled(one, columns, bad, on_grid, count)
        except _Damaged as problem:
            rows = f" ({one.rows:,} rows from {one.start} on)" if one.rows else ""
            bad.leave_out(part.name, InputError(f"{problem}{rows}"))
            continue
        if found is not None:
            total = found if total is None else total + found
    return total


class _Damaged(InputError):
    """A file or row group that cannot be read."""


def _filled(part: Part, columns: Columns, bad: Bad, on_grid: bool, count: Count) -> Tally | None:
    if part.used is not None and part.used.pair:
        with suppress(InputError):  # a bad row: it is found and named in the other way
            return _of_pairs(part, part.used, on_grid, count)
    filling = Filling(on_grid=on_grid)
    for chunk in _chunks(part, columns, bad):
        filling.add(chunk)
        count(len(chunk))
    return filling.tally() if filling.some else None


def _of_pairs(part: Part, used: Needed, on_grid: bool, count: Count) -> Tally:
    """The tally of plain confidences and booleans, without looking at each row twice."""
    filling = Filling(on_grid=on_grid)
    for confidence, correct, first in read_pairs(part.file, used, ROWS, part.groups):
        filling.add_pairs(confidence, correct, first)
    found = filling.tally()
    count(len(found))
    return found


def _chunks(part: Part, columns: Columns, bad: Bad) -> Iterator[Predictions | Outcomes]:
    for start, table in _tables(part, columns):
        yield from _good(table, columns, part, part.start + start, bad)


def _tables(part: Part, columns: Columns) -> Iterator[tuple[int, Table]]:
    try:
        yield from read_tables(part.file, columns, ROWS, part.groups, part.used)
    except InputError as problem:
        raise _Damaged(str(problem)) from problem


def _good(table: Table, columns: Columns, part: Part, start: int, bad: Bad) -> Iterator[Predictions | Outcomes]:
    """The rows that can be read: bad ones are found by halves, so few of them cost little."""
    try:
        chunk = assemble(table, columns)
    except InputError as problem:
        n = len(table.missing(next(iter(table)))) if bad.most else 1
        if n == 1:
            bad.leave_out(part.name, InputError(f"{part.file}: {_from(start, str(problem))}"))
            return
    else:
        yield chunk
        return
    first = np.arange(n) < n // 2
    yield from _good(table.picked(first), columns, part, start, bad)
    yield from _good(table.picked(~first), columns, part, start + n // 2, bad)


def _from(start: int, message: str) -> str:
    """The message with its row counted from the first of the file."""
    return re.sub(r"\brow (\d+)", lambda row: f"row {int(row[1]) + start}", message, count=1)
