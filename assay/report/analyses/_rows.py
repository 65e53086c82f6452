"""Queries of a study's rows: names parsed into columns, and the values of one cell by seed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from assay.nn.names import CORRUPTIONS
from assay.study import better

Key = tuple[Any, ...]


def recipe_and_values(method: str) -> tuple[str, dict[str, float]]:
    """The recipe and its numeric hyper-parameters; other values stay part of the recipe's name.

    >>> recipe_and_values("focal@wang2021,gamma=3.0")
    ('focal@wang2021', {'gamma': 3.0})
    """
    name, *given = method.split(",")
    values = {}
    for text in given:
        key, _, value = text.partition("=")
        try:
            values[key] = float(value)
        except ValueError:
            name = f"{name},{text}"
    return name, values


def corruption_and_severity(split: str) -> tuple[str | None, int | None]:
    """Kind and severity of fog_3 or cifar10_c/fog_3; test has no kind and severity 0, other shifts have neither.

    A kind that is read from a data set keeps the data set's name, as it differs from the same kind made here.

    >>> corruption_and_severity("cifar10_c/fog_3"), corruption_and_severity("cifar10_1")
    (('cifar10_c/fog', 3), (None, None))
    """
    if split == "test":
        return None, 0
    kind, _, severity = split.rpartition("_")
    read = split.rpartition("/")[0].endswith("_c")
    return (kind, int(severity)) if kind in CORRUPTIONS or read else (None, None)


def unfolded(rows: pa.Table) -> pa.Table:
    """The rows with more columns: recipe, each of its numeric values, corruption and severity."""
    named = _each(rows["method"], recipe_and_values)
    shifted = _each(rows["split"], corruption_and_severity)
    columns: dict[str, pa.Array] = {
        "recipe": pa.array([recipe for recipe, _ in named], pa.string()),
        "corruption": pa.array([kind for kind, _ in shifted], pa.string()),
        "severity": pa.array([severity for _, severity in shifted], pa.int64()),
    }
    for key in sorted({key for _, values in named for key in values}):
        columns[key] = pa.array([values.get(key) for _, values in named], pa.float64())
    for key, column in columns.items():
        rows = rows.append_column(key, column)
    return rows


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


def by_seed(rows: pa.Table, by: Sequence[str]) -> dict[Key, dict[int, float]]:
    """The values of each combination of these columns, by seed; rows must not differ in other columns."""
    found: dict[Key, dict[int, float]] = defaultdict(dict)
    keys = zip(*(rows[column].to_pylist() for column in by), strict=True)
    for key, seed, value in zip(keys, rows["seed"].to_pylist(), rows["value"].to_pylist(), strict=True):
        if seed in found[key]:
            raise ValueError(f"several values of seed {seed} at {', '.join(map(str, key))}: {_varying(rows, by)}")
        found[key][seed] = value
    return dict(found)


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


def _each(column: pa.ChunkedArray, parse: Callable[[str], tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    parsed = {name: parse(name) for name in column.unique().to_pylist()}
    return [parsed[name] for name in column.to_pylist()]


def _varying(rows: pa.Table, by: Sequence[str]) -> str:
    rest = [name for name in rows.column_names if name not in (*by, "seed", "value")]
    varying = [name for name in rest if len(rows[name].unique()) > 1]
    return f"the rows differ also by {', '.join(varying)}" if varying else "the rows hold it twice"
