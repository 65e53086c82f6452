"""Queries of a study's rows: some of them by column, and the values of one cell by seed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from assay.study import better

RowKey = tuple[Any, ...]


def where(rows: pa.Table, fixed: Mapping[str, Any]) -> pa.Table:
    """The rows with these values in these columns; None matches a missing value."""
    for column, value in fixed.items():
        rows = rows.filter(pc.is_null(rows[column]) if value is None else pc.equal(rows[column], value))
    return rows


def apart(rows: pa.Table, by: Sequence[str]) -> Iterator[tuple[dict[str, Any], pa.Table]]:
    """The rows of each combination of values in these columns, in order of appearance."""
    for key in dict.fromkeys(zip(*(rows[column].to_pylist() for column in by), strict=True)):
        point = dict(zip(by, key, strict=True))
        yield point, where(rows, point)


def by_seed(rows: pa.Table, by: Sequence[str]) -> dict[RowKey, dict[int, float]]:
    """The values of each combination of these columns, by seed; rows must not differ in other columns."""
    cells: dict[RowKey, dict[int, float]] = defaultdict(dict)
    keys = zip(*(rows[column].to_pylist() for column in by), strict=True)
    for key, seed, value in zip(keys, rows["seed"].to_pylist(), rows["value"].to_pylist(), strict=True):
        if seed in cells[key]:
            raise ValueError(f"several values of seed {seed} at {', '.join(map(str, key))}: {_varying(rows, by)}")
        cells[key][seed] = value
    return dict(cells)


def only(rows: pa.Table, column: str) -> str:
    """The one value of a column."""
    values: list[str] = rows[column].unique().to_pylist()
    if len(values) != 1:
        raise ValueError(f"rows must have one {column}, but there are {', '.join(map(str, values)) or 'none'}")
    return values[0]


def higher_is_better(metric: str) -> bool:
    """Whether higher is better; a metric without a better direction cannot be ranked."""
    if better(metric) == "-":
        raise ValueError(f"{metric} is better neither higher nor lower")
    return better(metric) == "higher"


def _varying(rows: pa.Table, by: Sequence[str]) -> str:
    rest = [name for name in rows.column_names if name not in (*by, "seed", "value")]
    varying = [name for name in rest if len(rows[name].unique()) > 1]
    return f"the rows differ also by {', '.join(varying)}" if varying else "the rows hold it twice"
