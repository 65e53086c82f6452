"""The tally of one part of the files, and what of it is bad."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

import numpy as np

from assay._core.arrays import InputError, NoRows
from assay.files import Columns, Needed, assemble, read_pairs, read_tables, refuse_in_parts
from assay.files._formats import LazyTable as Table
from assay.predictions import Outcomes, Predictions
from assay.scale._filling import Filling
from assay.scale._parts import Part, parts_of, shards
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


def chunks_of(source: str | Path, columns: Columns) -> Iterator[Predictions | Outcomes]:
    """The rows of a file, or of all files of a folder or a pattern, in chunks without ids."""
    refuse_in_parts(columns)
    for file in shards(source):
        for part in parts_of(file, columns):
            yield from _chunks(part, columns, Bad())


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


def tally_of(part: Part, columns: Columns, bad: Bad, into: Callable[[], Filling], count: Count) -> Tally | None:
    """The tally of a part, filled `into` new fillings; None if it has no rows, or all of them are left out.

    `count` is told of rows as they are read.

    Where bad rows may be left out, a damaged row group counts for nothing: what was read of it is dropped.
    """
    total: Tally | None = None
    for one in part.each_group() if bad.most else [part]:
        try:
            found = _filled(one, columns, bad, into, count)
        except _Damaged as problem:
            rows = f" ({one.rows:,} rows from {one.start} on)" if one.rows else ""
            bad.leave_out(part.name, InputError(f"{problem}{rows}"))
            continue
        if found is not None:
            total = found if total is None else total + found
    return total


class _Damaged(InputError):
    """A file or row group that cannot be read."""


def _filled(part: Part, columns: Columns, bad: Bad, into: Callable[[], Filling], count: Count) -> Tally | None:
    if part.used is not None and part.used.pair:
        with suppress(InputError):  # a bad row: it is found and named in the other way
            return _of_pairs(part, part.used, into(), count)
    filling = into()
    for chunk in _chunks(part, columns, bad):
        try:
            filling.add(chunk)
        except InputError as problem:
            raise InputError(f"{part.file}: {problem}") from problem
        count(len(chunk))
    return filling.tally() if filling.some else None


def _of_pairs(part: Part, used: Needed, filling: Filling, count: Count) -> Tally:
    """The tally of plain confidences and booleans, without looking at each row twice."""
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
    except NoRows:
        return
    except InputError as problem:
        raise _Damaged(str(problem)) from problem


def _good(table: Table, columns: Columns, part: Part, start: int, bad: Bad) -> Iterator[Predictions | Outcomes]:
    """The rows that can be read: bad ones are found by halves, so few of them cost little."""
    try:
        chunk = assemble(table, columns)
    except NoRows:
        return
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
