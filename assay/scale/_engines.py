"""Tallies of data that other engines hold: Ray, Spark, DuckDB, polars, pyarrow, or any iterator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from assay._core.arrays import InputError
from assay.files import FEW, Columns, assemble, from_arrow, from_frame, needed, refuse_in_parts
from assay.predictions import Outcomes, Predictions
from assay.scale._filling import Filling
from assay.scale._ray import TALLY, tally_of_dataset
from assay.scale._streaming import refuse_if_shares, tally_files
from assay.scale._tally import Tally

STANDARD = Columns()
ROWS = 2**17  # of a batch
KINDS = (
    "rows are predictions, outcomes, a file, a folder, a pattern or an address; a Dataset of Ray or pyarrow; a table, "
    "a frame or a relation of pyarrow, polars, pandas or DuckDB; or an iterator of such chunks or of tallies"
)
Chunk = Predictions | Outcomes


def tally(source: Any, columns: Columns = STANDARD) -> Tally:
    """The tally of rows, wherever they are.

    `source` is a file, a folder, a pattern or an address (see `tally_files`); a Dataset of Ray; a Dataset, Table or
    RecordBatchReader of pyarrow; a LazyFrame or DataFrame of polars; a relation of DuckDB; or an iterator of chunks:
    predictions, outcomes, arrow tables, data frames, tallies. A DataFrame of Spark goes through `tallies_in_arrow`.

    >>> from assay import evaluate, examples
    >>> rows = examples.load()
    >>> whole = tally(rows[start : start + 1000] for start in range(0, len(rows), 1000))
    >>> evaluate(whole)["ece"] == evaluate(Tally.of(rows))["ece"]
    True
    """
    if isinstance(source, str | Path):
        return tally_files(source, columns)
    refuse_in_parts(columns)
    if isinstance(source, Predictions | Outcomes):
        return Tally.of(source)
    kind = f"{type(source).__module__.partition('.')[0].lstrip('_')}.{type(source).__name__}"
    batches = READERS.get(kind)
    if isinstance(source, Tally) or not (batches or kind in RAY or isinstance(source, Iterable)):
        raise InputError(f"{KINDS}, not {type(source).__name__}")
    found = (
        tally_of_dataset(source, columns, _counted)
        if kind in RAY
        else _counted(batches(source, columns) if batches else source, columns)
    )
    refuse_if_shares(found, columns)
    return found


def tallies_in_arrow(columns: Columns = STANDARD) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """A function for `DataFrame.mapInArrow` of Spark, with the schema "tally binary": one tally a partition.

    `added(row.tally for row in frame.mapInArrow(tallies_in_arrow(), "tally binary").collect())` is the tally of all.
    """
    refuse_in_parts(columns)

    def count(batches: Iterable[Any]) -> Iterator[Any]:
        rows = (batch for batch in batches if batch.num_rows)
        for first in rows:  # if there is any
            yield _as_batch(_counted(chain([first], rows), columns))

    return count


def added(tallies: Iterable[bytes | Tally]) -> Tally:
    """The sum of tallies, also of stored ones."""
    total: Tally | None = None
    for each in tallies:
        part = each if isinstance(each, Tally) else Tally.from_bytes(bytes(each))
        total = part if total is None else total + part
    if total is None:
        raise InputError("no rows")
    return total


def _counted(chunks: Iterable[Any], columns: Columns) -> Tally:
    filling = Filling()
    done: list[Tally] = []
    for chunk in chunks:
        if isinstance(chunk, Tally):
            done.append(chunk)
        elif len(chunk):
            filling.add(_rows(chunk, columns))
    return added([*done, *([filling.tally()] if filling.some else [])])


def _rows(chunk: Any, columns: Columns) -> Chunk:
    """A chunk of whatever kind as predictions or outcomes."""
    import pyarrow as pa

    if isinstance(chunk, Predictions | Outcomes):
        return chunk
    if isinstance(chunk, pa.RecordBatch):
        chunk = pa.Table.from_batches([chunk])
    if isinstance(chunk, pa.Table):
        return assemble(from_arrow(chunk), columns)
    if hasattr(chunk, "columns"):
        return assemble(from_frame(chunk), columns)
    raise InputError(f"a chunk of rows is predictions, outcomes, an arrow table or a data frame, not {type(chunk)}")


def _of_dataset(source: Any, columns: Columns) -> Iterator[Any]:
    names = list(needed(source.head(FEW), columns).names)
    yield from source.to_batches(columns=names, batch_size=ROWS)


def _of_table(source: Any, columns: Columns) -> Iterator[Any]:
    yield from source.to_batches(max_chunksize=ROWS)


def _of_reader(source: Any, columns: Columns) -> Iterator[Any]:
    yield from source


def _of_lazy_frame(source: Any, columns: Columns) -> Iterator[Any]:
    names = list(needed(source.head(FEW).collect().to_arrow(), columns).names)
    for batch in source.select(names).collect_batches(chunk_size=ROWS):
        yield batch.to_arrow()


def _of_frame(source: Any, columns: Columns) -> Iterator[Any]:
    yield source.to_arrow()


def _of_relation(source: Any, columns: Columns) -> Iterator[Any]:
    names = list(needed(source.limit(FEW).to_arrow_table(), columns).names)
    quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
    yield from source.project(quoted).to_arrow_reader(ROWS)


def _of_pandas(source: Any, columns: Columns) -> Iterator[Any]:
    yield source


def _as_batch(found: Tally) -> Any:
    import pyarrow as pa

    return pa.record_batch({TALLY: pa.array([found.to_bytes()], pa.binary())})


RAY = ("ray.Dataset", "ray.MaterializedDataset")
READERS: dict[str, Callable[[Any, Columns], Iterator[Any]]] = {
    "pyarrow.FileSystemDataset": _of_dataset,
    "pyarrow.InMemoryDataset": _of_dataset,
    "pyarrow.UnionDataset": _of_dataset,
    "pyarrow.Table": _of_table,
    "pyarrow.RecordBatchReader": _of_reader,
    "polars.LazyFrame": _of_lazy_frame,
    "polars.DataFrame": _of_frame,
    "pandas.DataFrame": _of_pandas,
    "duckdb.DuckDBPyRelation": _of_relation,
}
"""How batches of arrow are read from what other libraries hold."""
