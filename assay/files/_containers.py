"""Files of JSON: JSON Lines, one document, and the zip archive of documents that Inspect writes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO
from warnings import warn
from zipfile import ZipFile, ZipInfo

from assay._core.arrays import Array, InputError
from assay._core.lookup import lookup
from assay._core.reading import ending, refuse_bomb, unpacking
from assay.files import _helm, _hle, _inspect, _lm_eval
from assay.files._formats import LazyTable
from assay.files._records import Record, table_of

ZSTD = 93  # the method of compression that zipfile learns only in Python 3.14


def _plain(content: object) -> list[Record]:
    if not isinstance(content, list) or not all(isinstance(row, Mapping) for row in content):
        raise InputError("must be a list of objects, one a row")
    return content


FORMATS: dict[str, Callable[[object], Sequence[Record]]] = {
    "lm-eval": _lm_eval.records,
    "inspect": _inspect.records,
    "helm": _helm.records,
    "hle": _hle.records,
    "json": _plain,
}
"""How the rows of a format are found in its JSON."""
RECOGNIZED: dict[str, Callable[[object], bool]] = {
    "lm-eval": _lm_eval.recognized,
    "inspect": _inspect.recognized,
    "helm": _helm.recognized,
    "hle": _hle.recognized,
}


def read_json(path: Path, tags: Sequence[str], given: str | None = None) -> Mapping[str, Array]:
    """The rows of a file by its format: the given one, or the one whose structure it has, which is then said."""
    content = CONTENTS[ending(path)](path)
    name = given or next((name for name, fits in RECOGNIZED.items() if fits(content)), "json")
    find = lookup("format", name, FORMATS)
    if given is None and name != "json":
        warn(f"{path}: read as {name}", stacklevel=4)
    table = table_of(find(content))
    return LazyTable(list(table), lambda column: _tag(table, column, tags), table.missing, table.picked)


def _tag(table: LazyTable, column: str, tags: Sequence[str]) -> Array:
    return table[column].astype(str) if column in tags and table[column].dtype.kind == "f" else table[column]


def _lines(path: Path) -> object:
    rows = []
    for number, line in enumerate(_text(path).splitlines()):
        if line.strip():
            rows.append(_parsed(line, f"line {number + 1}"))
    return rows


def _text(path: Path) -> str:
    with unpacking(path) as stream:
        return stream.read().decode()


def _document(path: Path) -> object:
    return _parsed(_text(path), "the file")


def _archive(path: Path) -> object:
    """The header of an Inspect log with its samples, as the .json form of the log has them."""
    with path.open("rb") as stream, ZipFile(stream) as archive:
        inside = {info.filename: info for info in archive.infolist()}
        samples = [info for name, info in inside.items() if name.startswith("samples/")]
        if "header.json" not in inside:
            raise InputError("is no finished Inspect log: the archive has no header.json")
        members = [inside["header.json"], *samples]
        refuse_bomb(path, sum(info.file_size for info in members))
        header, *rows = (_parsed(_member(archive, stream, info).decode(), info.filename) for info in members)
    return {**header, "samples": rows} if isinstance(header, dict) else header


def _member(archive: ZipFile, stream: IO[bytes], info: ZipInfo) -> bytes:
    if info.compress_type != ZSTD:
        return archive.read(info)
    import pyarrow as pa

    # Before the bytes of a member stand 30 bytes, whose last four tell the lengths of its name and of what is extra.
    stream.seek(info.header_offset + 26)
    name, extra = (int.from_bytes(stream.read(2), "little") for _ in range(2))
    stream.seek(name + extra, 1)
    return bytes(pa.Codec("zstd").decompress(stream.read(info.compress_size), info.file_size, asbytes=True))


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object whose names differ: of equal ones JSON would silently keep the last."""
    found = dict(pairs)
    if len(found) < len(pairs):
        (twice, _), *_ = Counter(name for name, _ in pairs).most_common(1)
        raise InputError(f"'{twice}' is there twice in one object")
    return found


def _parsed(text: str, where: str) -> object:
    try:
        return json.loads(text, object_pairs_hook=_unique)
    except json.JSONDecodeError as problem:
        raise InputError(f"{where} is no JSON, or is cut off: {problem}") from problem


CONTENTS: dict[str, Callable[[Path], object]] = {".jsonl": _lines, ".json": _document, ".eval": _archive}
