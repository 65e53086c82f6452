"""Files as tables of named columns, one reader and one writer a format.

A reader takes the names of the columns that hold tags: these are read as text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import numpy as np

from assay._core.arrays import Array, InputError, Mask


class LazyTable(Mapping[str, Array]):
    """Columns that are converted on access, so that unused columns may hold anything."""

    def __init__(
        self,
        names: list[str],
        load: Callable[[str], Array],
        missing: Callable[[str], Mask] | None = None,
        picked: Callable[[Mask], LazyTable] | None = None,
    ):
        repeated = [name for name in names if names.count(name) > 1]
        if repeated:
            raise InputError(f"two columns are called '{repeated[0]}'")
        self.names, self.load = names, load
        self._missing, self._picked = missing, picked

    def missing(self, name: str) -> Mask:
        """Which rows have no value in a column."""
        return np.zeros(len(self[name]), dtype=bool) if self._missing is None else self._missing(name)

    def picked(self, rows: Mask) -> LazyTable:
        """The table of the chosen rows."""
        if self._picked is not None:
            return self._picked(rows)
        return LazyTable(self.names, lambda name: self.load(name)[rows])

    def replacing(self, **columns: Array) -> LazyTable:
        """The table with some columns replaced or added; it has lost what was missing."""
        names = [*self.names, *(name for name in columns if name not in self.names)]
        return LazyTable(names, lambda name: columns[name] if name in columns else self.load(name))

    def __getitem__(self, name: str) -> Array:
        return self.load(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self.names


def _read_npz(path: Path, tags: Sequence[str]) -> Mapping[str, Array]:
    def load(name: str) -> Array:
        # np.load leaves a stream that it opens itself open if the archive is damaged.
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            try:
                return np.asarray(archive[name])
            except ValueError as problem:
                store = "store text as an array of str, and rows of equal length as one array of numbers"
                raise InputError(f"column '{name}' holds Python objects or is damaged; {store}") from problem

    with path.open("rb") as stream:
        try:
            archive = np.load(stream, allow_pickle=False)
        except ValueError as problem:  # neither an archive nor an array: numpy takes it for a pickle
            raise InputError("cannot be read as npz: it is no archive of arrays, as np.savez writes them") from problem
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise InputError("is a single array, not an npz archive of named ones")
        return LazyTable(archive.files, load)


def _write_npz(table: Mapping[str, Array], stream: IO[bytes]) -> None:
    arrays: dict[str, Any] = dict(table)
    np.savez_compressed(stream, **arrays)


def _read_parquet(path: Path, tags: Sequence[str]) -> Mapping[str, Array]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return _from_arrow(pq.read_table(path))
    except (pa.ArrowException, OSError) as problem:
        if getattr(problem, "errno", None):  # an error of the system, not of the file
            raise
        raise InputError("cannot be read as parquet: it is damaged, incomplete or of another kind") from problem


def parquet_batches(path: Path, columns: list[str] | None, rows: int) -> Iterator[LazyTable]:
    """The file in batches of at most so many rows, by columns or all of them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, pre_buffer=False) as file:
            for batch in file.iter_batches(batch_size=rows, columns=columns):
                yield _from_arrow(pa.Table.from_batches([batch]))
    except pa.ArrowException as problem:
        raise InputError("cannot be read as parquet: it is damaged, incomplete or of another kind") from problem


def _write_parquet(table: Mapping[str, Array], stream: IO[bytes]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {name: _arrow_column(pa, array) for name, array in table.items()}
    vectors = [f"{name}.list.element" for name, array in table.items() if array.ndim == 2]
    dictionary = [name for name, array in table.items() if array.dtype.kind == "U"]
    pq.write_table(
        pa.table(columns), stream, compression="zstd", use_dictionary=dictionary, use_byte_stream_split=vectors
    )


def _arrow_column(pa: Any, array: Array) -> Any:
    if array.dtype == np.float16:
        array = array.astype(np.float32)
    if array.ndim == 1:
        return pa.array(array)
    return pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(array).reshape(-1)), array.shape[1])


def _read_csv(path: Path, tags: Sequence[str]) -> Mapping[str, Array]:
    import pyarrow as pa
    from pyarrow import csv

    # An empty cell is missing; "nan" is a value, which later checks refuse. Tags keep their text: 007 is not 7.
    options = csv.ConvertOptions(null_values=[""], column_types=dict.fromkeys(tags, pa.string()))
    _check_head(path)
    try:
        table = _from_arrow(csv.read_csv(path, convert_options=options))
    except (pa.ArrowInvalid, UnicodeDecodeError) as problem:
        raise InputError(_broken_row(path)) from problem
    return _with_tags(table, tags)


def _with_tags(table: LazyTable, tags: Sequence[str]) -> LazyTable:
    def load(name: str) -> Array:
        return _as_written(table[name]) if name in tags else table[name]

    return LazyTable(list(table), load, table.missing, lambda rows: _with_tags(table.picked(rows), tags))


def _check_head(path: Path) -> None:
    with path.open(encoding="utf-8", errors="replace") as lines:
        head = next((line for line in lines if line.strip()), "")
    if not head:
        raise InputError("is empty")
    for mark, name in {";": "';'", "\t": "tabs", "|": "'|'"}.items():
        if mark in head and "," not in head:
            raise InputError(f"seems to be separated by {name}; columns must be separated by ','")


def _broken_row(path: Path) -> str:
    """Find the first row of a wrong length, in a second read on one thread: only that one counts rows."""
    import pyarrow as pa
    from pyarrow import csv

    broken: list[Any] = []

    def note(row: Any) -> str:
        broken.append(row)
        return "error"

    with suppress(pa.ArrowInvalid):
        one = csv.ReadOptions(use_threads=False)
        csv.read_csv(path, read_options=one, parse_options=csv.ParseOptions(invalid_row_handler=note))
    if not broken:
        return "cannot be read as csv: it must be text in UTF-8, separated by ','"
    row = broken[0]
    return f"row {row.number - 2} (from 0): {row.actual_columns} values, but {row.expected_columns} columns are named"


def _as_written(tags: Array) -> Array:
    """Whole numbers if writing them gives the same text, else the text."""
    try:
        numbers = tags.astype(np.int64)
    except ValueError:
        return tags
    return numbers if (numbers.astype(str) == tags).all() else tags


def _write_csv(table: Mapping[str, Array], stream: IO[bytes]) -> None:
    import pyarrow as pa
    from pyarrow import csv

    flat: dict[str, Array] = {}
    for name, array in table.items():
        # Double precision, so that a number is read back as it was written.
        wide = array.astype(np.float64) if array.dtype.kind == "f" else array
        flat |= {f"{name}_{j}": wide[:, j] for j in range(wide.shape[1])} if wide.ndim == 2 else {name: wide}
    csv.write_csv(pa.table(flat), stream)


def _from_arrow(table: Any) -> LazyTable:
    if table.num_rows == 0:
        raise InputError("no rows")
    return LazyTable(
        table.column_names,
        lambda name: _from_arrow_column(name, table[name]),
        lambda name: np.asarray(table[name].is_null()),
        lambda rows: _from_arrow(table.filter(rows)),
    )


def _from_arrow_column(name: str, column: Any) -> Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.null_count:
        raise InputError(f"column '{name}', row {pc.index(pc.is_null(column), True).as_py()}: no value")
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type) or pa.types.is_fixed_size_list(column.type):
        vectors = column.combine_chunks()
        flat = vectors.flatten().to_numpy(zero_copy_only=False)
        lengths = pc.list_value_length(column).to_numpy()
        other = np.flatnonzero(lengths != lengths[0])
        if len(other):
            raise InputError(f"column '{name}', row {other[0]}: {lengths[other[0]]} values, row 0 has {lengths[0]}")
        return np.asarray(flat).reshape(len(column), lengths[0])
    array = column.to_numpy()
    return array.astype(str) if array.dtype == object else np.asarray(array)


READERS: dict[str, Callable[[Path, Sequence[str]], Mapping[str, Array]]] = {
    ".npz": _read_npz,
    ".parquet": _read_parquet,
    ".csv": _read_csv,
}
WRITERS: dict[str, Callable[[Mapping[str, Array], IO[bytes]], None]] = {
    ".npz": _write_npz,
    ".parquet": _write_parquet,
    ".csv": _write_csv,
}
