"""Files as tables of named columns, one reader and one writer a format.

A reader takes the names of the columns that hold tags: these are read as text.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from hashlib import sha256
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any
from warnings import warn
from weakref import finalize
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np

from assay._core.arrays import Array, InputError, Mask
from assay._core.reading import ending, refuse_bomb, source, unpacking

LAYOUT = b"assay_layout"  # key of a Parquet file's metadata
SEPARATORS = {",": "','", ";": "';'", "\t": "tabs", "|": "'|'"}
MARK = b"assay "  # before the digest of the names at the end of an npz file


class LazyTable(Mapping[str, Array]):
    """Columns that are converted on access, so that unused columns may hold anything."""

    def __init__(
        self,
        names: list[str],
        load: Callable[[str], Array],
        missing: Callable[[str], Mask] | None = None,
        picked: Callable[[Mask], LazyTable] | None = None,
    ):
        self.names, self.load = dict.fromkeys(names), load
        if len(self.names) < len(names):
            raise InputError(f"two columns are called '{Counter(names).most_common(1)[0][0]}'")
        self._missing, self._picked = missing, picked

    def missing(self, name: str) -> Mask:
        """Which rows have no value in a column."""
        return np.zeros(len(self[name]), dtype=bool) if self._missing is None else self._missing(name)

    def picked(self, rows: Mask) -> LazyTable:
        """The table of the chosen rows."""
        if self._picked is not None:
            return self._picked(rows)
        return LazyTable(list(self.names), lambda name: self.load(name)[rows])

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
    with ExitStack() as opened:
        stream = opened.enter_context(path.open("rb"))
        try:
            archive = np.load(stream, allow_pickle=False)
        except ValueError as problem:  # neither an archive nor an array: numpy takes it for a pickle
            raise InputError("cannot be read as npz: it is no archive of arrays, as np.savez writes them") from problem
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise InputError("is a single array, not an npz archive of named ones")
        opened.enter_context(archive)
        _check_names(archive.zip.comment if archive.zip else b"", archive.files)
        table = LazyTable(archive.files, partial(_npz_column, path, archive))
        finalize(table, opened.pop_all().close)  # opened once: an archive of many columns is slow to open
        return table


def _check_names(comment: bytes, names: list[str]) -> None:
    """Compare the names with the digest that `_write_npz` wrote at the end of the file, if it did."""
    ours = bool(comment) and comment[: len(MARK)] == MARK[: len(comment)]
    if ours and comment != MARK + _digest(names):
        raise InputError("cannot be read as npz: it is damaged, its names are not those that were written")


def _npz_column(path: Path, archive: Any, name: str) -> Array:
    member = f"{name}.npy"
    refuse_bomb(path, archive.zip.getinfo(member if member in archive.zip.NameToInfo else name).file_size)
    try:
        return np.asarray(archive[name])
    except ValueError as problem:
        store = "store text as an array of str, and rows of equal length as one array of numbers"
        raise InputError(f"column '{name}' holds Python objects or is damaged; {store}") from problem


def _write_npz(table: Mapping[str, Array], stream: IO[bytes]) -> None:
    """As np.savez_compressed, and a digest of the names: zip has checksums of the contents alone."""
    with ZipFile(stream, "w", ZIP_DEFLATED) as archive:
        archive.comment = MARK + _digest(list(table))
        for name, array in table.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)


def _read_parquet(path: Path, tags: Sequence[str]) -> Mapping[str, Array]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        about = pq.read_metadata(path)
        refuse_bomb(path, 8 * about.num_rows * about.num_columns)
        _check_layout(about)
        return _from_arrow(pq.read_table(path, page_checksum_verification=True))
    except (pa.ArrowException, OSError) as problem:
        if isinstance(problem, MemoryError) or getattr(problem, "errno", None):  # of the system, not of the file
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


def _check_layout(about: Any) -> None:
    """Compare names, types and rows with those that `_layout` wrote: pages have checksums, what describes them not."""
    written = (about.metadata or {}).get(LAYOUT)
    if written is not None and written != _layout(about.schema.to_arrow_schema(), about.num_rows):
        raise InputError("is damaged: its columns or rows are not those that were written")


def _layout(schema: Any, rows: int) -> bytes:
    # Parquet calls the items of a list elements.
    columns = [[field.name, str(field.type).replace("<element:", "<item:")] for field in schema]
    return _digest([rows, columns])


def _digest(described: object) -> bytes:
    return sha256(json.dumps(described).encode()).hexdigest().encode()


def _write_parquet(table: Mapping[str, Array], stream: IO[bytes]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {name: _arrow_column(pa, array) for name, array in table.items()}
    vectors = [f"{name}.list.element" for name, array in table.items() if array.ndim == 2]
    dictionary = [name for name, array in table.items() if array.dtype.kind == "U"]
    written = pa.table(columns)
    options = {"use_dictionary": dictionary, "use_byte_stream_split": vectors, "write_page_checksum": True}
    described = written.replace_schema_metadata({LAYOUT: _layout(written.schema, written.num_rows)})
    pq.write_table(described, stream, compression="zstd", **options)


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
    mark = _separator(path)
    try:
        table = _from_arrow(
            csv.read_csv(source(path), convert_options=options, parse_options=csv.ParseOptions(delimiter=mark))
        )
    except (pa.ArrowInvalid, UnicodeDecodeError) as problem:
        raise InputError(_broken_row(path, mark)) from problem
    return _with_tags(table, tags)


def _with_tags(table: LazyTable, tags: Sequence[str]) -> LazyTable:
    def load(name: str) -> Array:
        return _as_written(table[name]) if name in tags else table[name]

    return LazyTable(list(table), load, table.missing, lambda rows: _with_tags(table.picked(rows), tags))


def _separator(path: Path) -> str:
    """What separates the columns, by the head of the file; said if it is not what the ending says."""
    with TextIOWrapper(unpacking(path), encoding="utf-8", errors="replace") as lines:
        head = next((line for line in lines if line.strip()), "")
    if not head:
        raise InputError("is empty")
    expected = "\t" if ending(path) == ".tsv" else ","
    found = max((expected, *SEPARATORS), key=head.count)
    if found != expected:
        warn(f"{path}: columns are separated by {SEPARATORS[found]}", stacklevel=5)
    return found


def _broken_row(path: Path, mark: str) -> str:
    """Find the first row of a wrong length, in a second read on one thread: only that one counts rows."""
    import pyarrow as pa
    from pyarrow import csv

    broken: list[Any] = []

    def note(row: Any) -> str:
        broken.append(row)
        return "error"

    with suppress(pa.ArrowInvalid):
        one = csv.ReadOptions(use_threads=False)
        parsing = csv.ParseOptions(delimiter=mark, invalid_row_handler=note)
        csv.read_csv(source(path), read_options=one, parse_options=parsing)
    if not broken:
        return f"cannot be read as csv: it must be text in UTF-8, separated by {SEPARATORS[mark]}"
    row = broken[0]
    return f"row {row.number - 2} (from 0): {row.actual_columns} values, but {row.expected_columns} columns are named"


def _read_arrow(path: Path, tags: Sequence[str]) -> Mapping[str, Array]:
    """Feather, which is an Arrow file, or a stream of Arrow."""
    import pyarrow as pa
    from pyarrow import ipc

    refuse_bomb(path, 0)
    for opened in (ipc.open_file, ipc.open_stream):
        with suppress(pa.ArrowInvalid), pa.OSFile(str(path)) as file:
            return _from_arrow(opened(file).read_all())
    raise InputError("cannot be read as arrow: it is damaged, incomplete or of another kind")


def _read_npy(path: Path, tags: Sequence[str]) -> Mapping[str, Array]:
    """One array; it and the others in the folder are columns by the names of their files."""
    beside = {other.stem: other for other in sorted(path.parent.glob("*.npy"))}
    kinds = ("logits", "probabilities", "positive", "confidence", "score")
    names = [path.stem, *(stem for stem in beside if stem != path.stem and stem not in kinds)]

    def load(name: str) -> Array:
        try:
            return np.asarray(np.load(beside[name], allow_pickle=False))
        except (ValueError, EOFError) as problem:
            raise InputError(
                f"{beside[name].name} cannot be read as npy: it is no array, as np.save writes it"
            ) from problem

    return LazyTable(names, load)


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
    ".tsv": _read_csv,
    ".feather": _read_arrow,
    ".arrow": _read_arrow,
    ".npy": _read_npy,
}
WRITERS: dict[str, Callable[[Mapping[str, Array], IO[bytes]], None]] = {
    ".npz": _write_npz,
    ".parquet": _write_parquet,
    ".csv": _write_csv,
}
