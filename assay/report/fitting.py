"""Tables for the terminal that leave out their last columns rather than break a number."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace

from rich.console import Console, ConsoleOptions
from rich.measure import Measurement
from rich.table import Table as Grid

WIDE = 10_000  # more than any table


@dataclass(frozen=True)
class Fitting:
    """A table without those of its `optional` columns, the first of them first, for which the terminal has no room."""

    table: Grid
    optional: tuple[int, ...]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Grid]:
        left_out: set[int] = set()
        for column in self.optional:
            wanted = Measurement.get(console, options.update(max_width=WIDE), _without(self.table, left_out)).maximum
            if wanted <= options.max_width:
                break
            left_out.add(column)
        yield _without(self.table, left_out)


def _without(table: Grid, left_out: set[int]) -> Grid:
    shown = copy(table)
    kept = [column for i, column in enumerate(table.columns) if i not in left_out]
    shown.columns = [replace(column, _index=i) for i, column in enumerate(kept)]
    return shown
