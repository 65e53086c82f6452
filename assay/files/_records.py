"""Rows of named values, as JSON has them, as a table of columns; `a.b` is the value b inside a."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from assay._core.arrays import Array, InputError, Mask, NoRows
from assay.files._formats import LazyTable

Record = Mapping[str, object]


def table_of(records: Sequence[Record]) -> LazyTable:
    """The columns of the rows; a value that a row lacks, or has as null, is missing."""
    if not records:
        raise NoRows("no rows")
    flat = [dict(_flat(record)) for record in records]
    names = list(dict.fromkeys(name for row in flat for name in row))

    def missing(name: str) -> Mask:
        return np.array([row.get(name) is None for row in flat])

    def load(name: str) -> Array:
        empty = missing(name)
        if empty.any():
            raise InputError(f"column '{name}', row {int(empty.argmax())}: no value")
        return _array(name, [row[name] for row in flat])

    return LazyTable(
        names,
        load,
        missing,
        lambda rows: table_of([record for record, there in zip(records, rows, strict=True) if there]),
    )


def _flat(record: Record, before: str = "") -> Iterator[tuple[str, object]]:
    """The values under their whole names."""
    for name, value in record.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def _array(name: str, values: list[object]) -> Array:
    if all(isinstance(value, int | float) for value in values):
        return np.asarray(values)
    if all(isinstance(value, list) for value in values):
        try:
            return np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError) as problem:
            raise InputError(f"column '{name}' holds lists that are no rows of equally many numbers") from problem
    return np.array([value if isinstance(value, str) else repr(value) for value in values])
