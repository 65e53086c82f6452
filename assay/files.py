"""Predictions on disk: npz, Parquet and csv, read and written whole or not at all."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile
from zlib import error as ZlibError

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from assay.arrays import InputError
from assay.predictions import Outcomes, Predictions

Array = NDArray[Any]


KINDS = ("logits", "probabilities", "positive", "confidence", "score")  # what a file may hold, exactly one of them
TAGS = ("ids", "group")
SCORES = ("nll", "brier", "entropy")  # what outcomes may have besides


class LazyTable(Mapping[str, Array]):
    """Columns that are converted when asked for, so that those nobody needs may hold anything."""

    def __init__(self, names: list[str], load: Callable[[str], Array]):
        repeated = [name for name in names if names.count(name) > 1]
        if repeated:
            raise InputError(f"two columns are called '{repeated[0]}'")
        self.names, self.load = names, load

    def __getitem__(self, name: str) -> Array:
        return self.load(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self.names


@dataclass(frozen=True)
class Columns:
    """Which columns of a file are what; what is not said goes by its standard name, the one that `write` uses.

    `logits` and `probabilities` name one column of vectors, or by a pattern one column a class (`p_*`): where the star
    stands for numbers these are the classes, else the classes are in the order of the file.

    Parameters
    ----------
    label
        Column of the true classes, counted from 0.
    logits
        Column of logits, or a pattern for one column a class ('z_*').
    probabilities
        Column of probabilities, or a pattern for one column a class ('p_*').
    positive
        Of two classes: column of the probability of class 1.
    confidence
        Column of the confidence in [0, 1] of the answer given.
    score
        Column of a score that is no probability and only ranks.
    correct
        Column that says whether the answer was right, 0 or 1.
    ids
        Column that tells one row from another.
    group
        Column to break the audit down by.
    """

    label: str = "labels"
    logits: str | None = None
    probabilities: str | None = None
    positive: str | None = None
    confidence: str | None = None
    score: str | None = None
    correct: str = "correct"
    ids: str | None = None
    group: str | None = None


def read(file: str | Path, columns: Columns = Columns()) -> Predictions | Outcomes:  # noqa: B008 (frozen)
    """Read predictions, or outcomes where the file has only a confidence and whether it was right.

    Error messages count rows from 0.
    """
    path = Path(file)
    load = READERS.get(path.suffix)
    if load is None:
        raise InputError(f"{path}: unknown kind of file '{path.suffix}'; use {', '.join(READERS)}")
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    try:
        return _assemble(load(path, columns), columns)
    except InputError as problem:
        raise InputError(f"{path}: {problem}") from problem
    except (OSError, EOFError, ValueError, TypeError, KeyError, RuntimeError, BadZipFile, ZlibError) as problem:
        reason = str(problem).splitlines()[0] if str(problem) else type(problem).__name__
        raise InputError(f"{path}: cannot be read as {path.suffix[1:]}: {reason}") from problem


def write(predictions: Predictions | Outcomes, file: str | Path) -> None:
    """Write to npz, Parquet or csv by the ending of the name; the file appears whole or not at all."""
    path = Path(file)
    save = WRITERS.get(path.suffix)
    if save is None:
        raise InputError(f"{path}: unknown kind of file '{path.suffix}'; use {', '.join(WRITERS)}")
    with replacing(path) as stream:
        save(_table(predictions), stream)


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A stream to a temporary file that takes the name `path` once all is written, or vanishes."""
    if not path.name:
        raise InputError(f"'{path}' names no file to write to")
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as stream:
            yield stream
        temporary.replace(path)
    except OSError as problem:
        raise InputError(f"{path}: cannot be written: {problem.strerror or problem}") from problem
    finally:
        temporary.unlink(missing_ok=True)


def _assemble(table: Mapping[str, Array], columns: Columns) -> Predictions | Outcomes:
    said = {kind: name for kind in KINDS if (name := getattr(columns, kind)) is not None}
    kinds = said or {kind: name for kind in KINDS if (name := _standard(table, kind))}
    if len(kinds) != 1:
        found = f"{' and '.join(kinds)} together" if kinds else f"only {', '.join(table)}"
        raise InputError(f"needs one of {', '.join(KINDS)}, has {found}; say which column is what")
    kind, name = kinds.popitem()
    named = {tag: getattr(columns, tag) or (tag if tag in table else None) for tag in TAGS}
    tags = {tag: _tags(table, column) for tag, column in named.items() if column is not None}
    if kind in ("confidence", "score"):
        correct = _column(table, columns.correct)
        outcomes = Outcomes.from_scores(_column(table, name), correct, is_probability=kind == "confidence", **tags)
        scores: dict[str, Any] = {x: torch.as_tensor(table[x]).double() for x in SCORES if x in table and not said}
        return replace(outcomes, **scores)
    labels = _column(table, columns.label)
    if kind == "positive":
        return Predictions.from_binary_probabilities(_column(table, name), labels, **tags)
    activations = _standard(table, "features")
    features = {"features": _matrix(table, activations)} if activations else {}
    make = Predictions.from_logits if kind == "logits" else Predictions.from_probabilities
    return make(_matrix(table, name), labels, **tags, **features)


def _standard(table: Mapping[str, Array], name: str) -> str | None:
    """The column of that name, or the pattern of one column a class, if the file has it."""
    if name in table:
        return name
    return f"{name}_*" if f"{name}_0" in table else None


def _tags(table: Mapping[str, Array], name: str) -> Array:
    array = _column(table, name)
    if array.dtype.kind == "U" and (array == "").any():
        raise InputError(f"column '{name}', row {int((array == '').argmax())}: no value")
    return array


def _column(table: Mapping[str, Array], name: str) -> Array:
    if name not in table:
        close = get_close_matches(name, table, n=1)
        hint = f"; did you mean '{close[0]}'?" if close else f"; it has {', '.join(table)}"
        raise InputError(f"no column '{name}'{hint}")
    return table[name]


def _matrix(table: Mapping[str, Array], pattern: str) -> Array:
    """One column of vectors, or the columns that match, side by side."""
    if "*" not in pattern:
        return _column(table, pattern)
    names = [name for name in table if fnmatchcase(name, pattern)]
    if not names:
        raise InputError(f"no column matches '{pattern}'; it has {', '.join(table)}")
    star = re.compile(re.escape(pattern).replace(r"\*", "(.*)", 1).replace(r"\*", ".*"))
    stems = [match.group(1) for name in names if (match := star.fullmatch(name))]
    if all(stem.isdecimal() for stem in stems):
        names = [name for _, name in sorted(zip(map(int, stems), names, strict=True))]
        if sorted(map(int, stems)) != list(range(len(names))):
            raise InputError(f"columns '{pattern}' must be numbered 0 to {len(names) - 1}, got {', '.join(names)}")
    return np.stack([table[name] for name in names], 1)


def _table(predictions: Predictions | Outcomes) -> dict[str, Array]:
    """The columns of a file, by their standard names."""
    if isinstance(predictions, Predictions):
        kind = "probabilities" if predictions.normalized else "logits"
        tensors: dict[str, Tensor | None] = {kind: predictions.values, "labels": predictions.labels}
        tensors["features"] = predictions.features
    else:
        kind = "confidence" if predictions.is_probability else "score"
        tensors = {kind: predictions.confidence, "correct": predictions.correct}
        tensors |= {name: getattr(predictions, name) for name in SCORES}
    columns = {name: _numpy(x) for name, x in tensors.items() if x is not None}
    tags = {"ids": predictions.ids, "group": predictions.group}
    return columns | {name: x for name, x in tags.items() if x is not None}


def _numpy(x: Tensor) -> Array:
    return (x.float() if x.dtype is torch.bfloat16 else x).cpu().numpy()


def _read_npz(path: Path, columns: Columns) -> Mapping[str, Array]:
    def load(name: str) -> Array:
        # Opened here: on a damaged archive np.load would leave its own stream open.
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            try:
                return np.asarray(archive[name])
            except ValueError as problem:
                raise InputError(f"column '{name}': {problem}") from problem

    with path.open("rb") as stream:
        archive = np.load(stream, allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise InputError("is a single array, not an npz archive of named ones")
        return LazyTable(archive.files, load)


def _write_npz(table: Mapping[str, Array], stream: IO[bytes]) -> None:
    np.savez_compressed(stream, allow_pickle=False, **table)


def _read_parquet(path: Path, columns: Columns) -> Mapping[str, Array]:
    import pyarrow.parquet as pq

    return _from_arrow(pq.read_table(path))


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


def _read_csv(path: Path, columns: Columns) -> Mapping[str, Array]:
    import pyarrow as pa
    from pyarrow import csv

    tags = [getattr(columns, tag) or tag for tag in TAGS]
    # An empty cell has no value, but "nan" is one, and an error of its own further on. Tags are read as they are
    # written: 007 is not 7.
    options = csv.ConvertOptions(null_values=[""], column_types=dict.fromkeys(tags, pa.string()))
    table = _from_arrow(csv.read_csv(path, convert_options=options))
    return LazyTable(list(table), lambda name: _as_written(table[name]) if name in tags else table[name])


def _as_written(tags: Array) -> Array:
    """Whole numbers where writing them gives the same text, else the text."""
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
        # In double precision, so that a number read back is the number written.
        wide = array.astype(np.float64) if array.dtype.kind == "f" else array
        flat |= {f"{name}_{j}": wide[:, j] for j in range(wide.shape[1])} if wide.ndim == 2 else {name: wide}
    csv.write_csv(pa.table(flat), stream)


def _from_arrow(table: Any) -> LazyTable:
    if table.num_rows == 0:
        raise InputError("no rows")
    return LazyTable(table.column_names, lambda name: _from_arrow_column(name, table[name]))


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


READERS: dict[str, Callable[[Path, Columns], Mapping[str, Array]]] = {
    ".npz": _read_npz,
    ".parquet": _read_parquet,
    ".csv": _read_csv,
}
WRITERS: dict[str, Callable[[Mapping[str, Array], IO[bytes]], None]] = {
    ".npz": _write_npz,
    ".parquet": _write_parquet,
    ".csv": _write_csv,
}
