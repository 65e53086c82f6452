"""Files as tables of named columns, one reader and one writer a format.

A reader takes the names of the columns that hold tags: these are read as text.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from hashlib import sha256
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any
from warnings import catch_warnings, warn
from weakref import finalize
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np

from assay._core.arrays import Array, InputError, Mask, NoRows
from assay._core.reading import ending, refuse_bomb, source, unpacking
from assay._core.text import csv_cell, from_csv_cell

KINDS = ("logits", "probabilities", "positive", "confidence", "score")  # a file holds exactly one of these
LAYOUT = b"assay_layout"  # key of a Parquet file's metadata
LISTS = 2**10  # rows of lists of any length that are read together
ARROW_FLOATS = {"halffloat": "float16", "float": "float32", "double": "float64"}  # other numbers are called as in numpy
PIECE = 2**20  # bytes of a column of a Parquet file that are read together
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
        with catch_warnings(action="ignore"):  # of Python, which parses what describes the array
            found = np.asarray(archive[name])
        _refuse_no_text(found)
        return found
    except ValueError as problem:
        store = "store text as an array of str, and rows of equal length as one array of numbers"
        raise InputError(f"column '{name}' holds Python objects or is damaged; {store}") from problem


def _refuse_no_text(found: Array) -> None:
    """Refuse numbers that stand for no character: numpy makes texts of them that Python cannot handle."""
    codes = found.reshape(-1).view(f"{found.dtype.byteorder}u4") if found.dtype.kind == "U" and found.nbytes else ()
    if len(codes) and int(np.max(codes)) > sys.maxunicode:
        raise ValueError("no text")


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
        kinds = [field.type for field in about.schema.to_arrow_schema()]
        refuse_bomb(path, 8 * about.num_rows * sum(map(_least_width, kinds)))
        _check_layout(about)
        if any(map(_is_list, kinds)):
            return from_arrow(_read_counting(path))
        return from_arrow(pq.read_table(path, page_checksum_verification=True))
    except (pa.ArrowException, OSError) as problem:
        if isinstance(problem, MemoryError) or getattr(problem, "errno", None):  # of the system, not of the file
            raise
        raise InputError("cannot be read as parquet: it is damaged, incomplete or of another kind") from problem


def _least_width(kind: Any) -> int:
    """How many values a row of a column of arrow has, if the type says it."""
    import pyarrow as pa

    return int(kind.list_size) if pa.types.is_fixed_size_list(kind) else 1


def _is_list(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _read_counting(path: Path) -> Any:
    """A file with lists of any length, read until it takes too much memory.

    How many values a column has stands in the file, but arrow ends the process where a damaged one does not say it.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    found, size = [pq.read_schema(path).empty_table()], 0
    for batch in parquet_batches(path, None, LISTS):
        size += batch.nbytes
        refuse_bomb(path, size)
        found.append(batch)
    return pa.concat_tables(found)


def parquet_batches(
    file: Path | str, columns: list[str] | None, rows: int, groups: Sequence[int] | None = None
) -> Iterator[Any]:
    """The file, or some of its row groups, in arrow tables of at most so many rows, by columns or all of them."""
    import pyarrow as pa

    try:
        with open_parquet(file) as opened:
            # One row group at a time: over several, lists take three times as long.
            for group in range(opened.num_row_groups) if groups is None else groups:
                found = 0
                for batch in opened.iter_batches(rows, row_groups=[group], columns=columns, use_threads=False):
                    found += batch.num_rows
                    if batch.num_rows:
                        yield pa.Table.from_batches([batch])
                _refuse_lost(found, opened.metadata.row_group(group).num_rows)
    except (pa.ArrowException, OSError) as problem:
        if isinstance(problem, MemoryError) or getattr(problem, "errno", None):  # of the system, not of the file
            raise
        raise InputError("cannot be read as parquet: it is damaged, incomplete or of another kind") from problem


def _refuse_lost(found: int, said: int) -> None:
    """Refuse a file of which fewer rows are read than it says: arrow skips pages of a kind that it does not know."""
    if found != said:
        raise InputError(f"is damaged: {said:,} rows were written, and {found:,} can be read")


def bits_of(column: Any) -> tuple[Array, int]:
    """A column of booleans as arrow keeps it: bytes of eight each, and which bit is the first."""
    return np.frombuffer(column.chunk(0).buffers()[1], dtype=np.uint8), column.chunk(0).offset


def numbers_of(values: Any) -> Array:
    """An array of arrow in numpy; numbers as they lie in memory, since arrow's own way imports pandas."""
    import pyarrow as pa

    if values.null_count or not (pa.types.is_floating(values.type) or pa.types.is_integer(values.type)):
        return np.asarray(values.to_numpy(zero_copy_only=False))
    name = str(values.type)
    kind = np.dtype(ARROW_FLOATS.get(name, name))
    return np.frombuffer(values.buffers()[1], kind, len(values), values.offset * kind.itemsize)


def open_parquet(file: Path | str) -> Any:
    """A Parquet file on a disk, or by its address (s3://, gs://, file://) on whatever pyarrow reaches.

    Row groups are read piece by piece: these stay in the cache, and large ones take little memory.
    """
    import pyarrow.parquet as pq

    if isinstance(file, Path):
        found = pq.ParquetFile(file, buffer_size=PIECE, pre_buffer=False, page_checksum_verification=True)
    else:
        system, path = file_system(file)
        found = pq.ParquetFile(system.open_input_file(path), page_checksum_verification=True)
    _check_layout(found.metadata)
    return found


def file_system(address: str) -> tuple[Any, str]:
    """The file system of an address, by pyarrow or what is registered with fsspec, and the path on it."""
    from pyarrow import fs

    try:
        found: tuple[Any, str] = fs.FileSystem.from_uri(address)
    except (ValueError, ImportError, OSError) as problem:
        reason = str(problem).splitlines()[0]
        raise InputError(f"{address}: pyarrow has no way to this address: {reason}") from problem
    return found


def _check_layout(about: Any) -> None:
    """Compare names, types and rows with those that `_layout` wrote: pages have checksums, what describes them not."""
    written = (about.metadata or {}).get(LAYOUT)
    rows = sum(about.row_group(i).num_rows for i in range(about.num_row_groups))  # as many are read
    if rows != about.num_rows or written not in (None, _layout(about.schema.to_arrow_schema(), rows)):
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


def write_parquet_chunks(tables: Iterable[Mapping[str, Array]], stream: IO[bytes]) -> int:
    """Tables of the same columns as one file, a row group each; how many rows there were."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows, writer = 0, None
    try:
        for table in tables:
            written = pa.table({name: _arrow_column(pa, array) for name, array in table.items()})
            if writer is None:
                options = {"compression": "zstd", "use_dictionary": False, "write_page_checksum": True}
                vectors = [f"{name}.list.element" for name, array in table.items() if array.ndim == 2]
                writer = pq.ParquetWriter(stream, written.schema, use_byte_stream_split=vectors, **options)
            writer.write_table(written)
            rows += written.num_rows
        if writer is not None:
            writer.add_key_value_metadata({LAYOUT: _layout(writer.schema, rows)})
    finally:
        if writer is not None:
            writer.close()
    return rows


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
        parsing = csv.ParseOptions(delimiter=mark)
        read = csv.read_csv(source(path), convert_options=options, parse_options=parsing)
        table = from_arrow(read.rename_columns([from_csv_cell(name) for name in read.column_names]), from_csv_cell)
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

    no_csv = f"cannot be read as csv: it must be text in UTF-8, separated by {SEPARATORS[mark]}"
    if not _is_utf8(path):
        return no_csv
    with suppress(pa.ArrowInvalid):
        one = csv.ReadOptions(use_threads=False)
        parsing = csv.ParseOptions(delimiter=mark, invalid_row_handler=note)
        csv.read_csv(source(path), read_options=one, parse_options=parsing)
    if not broken:
        return no_csv
    row = broken[0]
    return f"row {row.number - 2} (from 0): {row.actual_columns} values, but {row.expected_columns} columns are named"


def _is_utf8(path: Path) -> bool:
    try:
        with TextIOWrapper(unpacking(path), encoding="utf-8") as lines:
            return all(True for _ in lines)
    except UnicodeDecodeError:
        return False


def _read_arrow(path: Path, tags: Sequence[str]) -> Mapping[str, Array]:
    """Feather, which is an Arrow file, or a stream of Arrow."""
    import pyarrow as pa
    from pyarrow import ipc

    for opened in (ipc.open_file, ipc.open_stream):
        with suppress(pa.ArrowInvalid), pa.OSFile(str(path)) as file:
            reader = opened(file)
            return from_arrow(pa.Table.from_batches(_unpacked_batches(path, reader), reader.schema))
    raise InputError("cannot be read as arrow: it is damaged, incomplete or of another kind")


def _unpacked_batches(path: Path, reader: Any) -> Iterator[Any]:
    """The parts of an Arrow file, which says nothing of their size, until they are far more than it has."""
    size = 0
    for batch in map(reader.get_batch, range(reader.num_record_batches)) if hasattr(reader, "get_batch") else reader:
        size += batch.nbytes
        refuse_bomb(path, size)
        yield batch


def _read_npy(path: Path, tags: Sequence[str]) -> Mapping[str, Array]:
    """One array; it and the others in the folder are columns by the names of their files."""
    beside = {other.stem: other for other in sorted(path.parent.glob("*.npy"))}
    names = [path.stem, *(stem for stem in beside if stem != path.stem and stem not in KINDS)]

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
    csv.write_csv(pa.table({csv_cell(name): _cells(array) for name, array in flat.items()}), stream)


def _cells(array: Array) -> Array:
    return np.array(list(map(csv_cell, array.tolist()))) if array.dtype.kind == "U" else array


def from_arrow(table: Any, cell: Callable[[str], str] | None = None) -> LazyTable:
    """The columns of a table; `cell` gives the text that a cell stands for, where it is not itself."""
    if table.num_rows == 0:
        raise NoRows("no rows")

    def load(name: str) -> Array:
        found = _from_arrow_column(name, table[name])
        return found if cell is None or found.dtype.kind != "U" else np.array(list(map(cell, found.tolist())))

    return LazyTable(
        table.column_names,
        load,
        lambda name: np.asarray(table[name].is_null()),
        lambda rows: from_arrow(table.filter(rows), cell),
    )


def _from_arrow_column(name: str, column: Any) -> Array:
    import pyarrow as pa

    if column.null_count:
        missing = np.asarray(column.is_null())
        raise InputError(f"column '{name}', row {np.flatnonzero(missing)[0]}: no value")
    if pa.types.is_fixed_size_list(column.type) and column.num_chunks == 1:
        vectors, width = column.chunk(0), column.type.list_size
        flat = vectors.values.slice(vectors.offset * width, len(vectors) * width)  # flatten() would copy
        return numbers_of(flat).reshape(len(column), width)
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type) or pa.types.is_fixed_size_list(column.type):
        vectors = column.combine_chunks()
        flat = vectors.flatten().to_numpy(zero_copy_only=False)
        lengths = np.asarray(vectors.value_lengths())
        other = np.flatnonzero(lengths != lengths[0])
        if len(other):
            raise InputError(f"column '{name}', row {other[0]}: {lengths[other[0]]} values, row 0 has {lengths[0]}")
        return np.asarray(flat).reshape(len(column), lengths[0])
    if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        return np.array([_decoded(name, row, cell) for row, cell in enumerate(column.to_pylist())])
    if pa.types.is_boolean(column.type):
        flags = [_unpacked(chunk) for chunk in column.chunks]
        return flags[0] if len(flags) == 1 else np.concatenate(flags)
    array = numbers_of(column.chunk(0)) if column.num_chunks == 1 else column.to_numpy()
    return array.astype(str) if array.dtype == object else np.asarray(array)


def _decoded(name: str, row: int, cell: bytes) -> str:
    try:
        return cell.decode()
    except UnicodeDecodeError as problem:
        raise InputError(f"column '{name}', row {row}: {cell!r:.40} is no text in UTF-8") from problem


def _unpacked(bits: Any) -> Array:
    """Booleans, which arrow keeps as bits; its own way to numpy takes ten times as long."""
    packed = np.frombuffer(bits.buffers()[1], dtype=np.uint8)
    first, rest = divmod(bits.offset, 8)
    flags = np.unpackbits(packed[first:], count=rest + len(bits), bitorder="little")
    return flags[rest:].view(np.bool_)


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
