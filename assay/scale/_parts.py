"""The parts of files that are read at once: whole files, or row groups of Parquet files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from glob import glob, has_magic
from itertools import takewhile
from pathlib import Path

from assay._core.arrays import InputError
from assay.files import Columns, Needed, file_system, holds_predictions, needed_of, open_parquet

ROWS = 2**22  # of two numbers each in a part, unless one row group has more; of large files four times as many
PARTS = 8  # of a large file: enough for as many threads, and fewer cost less
ADDRESS = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+):/{1,2}(?=[^/])|^(file):/{1,3}(?=[^/])")


@dataclass(frozen=True)
class Part:
    """Some row groups of a Parquet file, or a whole file of another kind."""

    file: Path | str  # a path, or an address such as s3://
    groups: tuple[int, ...] | None = None
    start: int = 0  # rows of the file before it
    rows: int = 0  # 0 if nobody knows before it is read
    used: Needed | None = None  # columns
    name: str = ""  # what tells it from other parts, in a state that is kept

    def each_group(self) -> Iterator[Part]:
        """The parts of one row group each that it is made of."""
        if self.groups is None:
            yield self
            return
        start = self.start
        with open_parquet(self.file) as opened:
            sizes = [opened.metadata.row_group(i).num_rows for i in self.groups]
        for group, rows in zip(self.groups, sizes, strict=True):
            yield replace(self, groups=(group,), start=start, rows=rows)
            start += rows


def address(source: str | Path) -> str | None:
    """The address (s3://bucket/name) that a source is, if it is no path; a Path has lost one of the slashes."""
    found = ADDRESS.match(str(source))
    if found is None or Path(source).exists():
        return None
    scheme = found[1] or found[2]
    return f"{scheme}://{'/' if scheme == 'file' else ''}{str(source)[found.end() :]}"


def is_sharded(source: str | Path) -> bool:
    """Whether a source is a folder, a pattern of files, or an address."""
    path = Path(source)
    return path.is_dir() or address(source) is not None or (has_magic(str(source)) and not path.exists())


def shards(source: str | Path) -> list[Path | str]:
    """The files that a path, a folder, a pattern or an address stands for, in order of their names.

    A folder stands for all files of predictions in it and in its subfolders, except where a name begins with . or _
    as those of what other programs keep beside their data do.
    """
    place, path = address(source), Path(source)
    if place is not None:
        found: list[Path | str] = list(_at_address(place))
    elif not is_sharded(path):
        return [path]
    elif path.is_dir():
        found = [*_in_folder(path)]
    else:
        found = [*_of_pattern(str(source))]
    if not found:
        raise InputError(f"{source}: no files of predictions there")
    return found


def _in_folder(folder: Path) -> list[Path]:
    """Files of predictions at any depth; a folder that links lead to twice is read once."""
    found: list[Path] = []
    seen: set[str] = set()
    for place, folders, names in os.walk(folder, followlinks=True, onerror=_refuse_unread):
        is_new = os.path.realpath(place) not in seen
        seen.add(os.path.realpath(place))
        folders[:] = [name for name in folders if is_new and _is_data(name)]
        inside = (Path(place, name) for name in names if is_new and _is_data(name))
        found += [file for file in inside if holds_predictions(file)]
    return sorted(found)


def _refuse_unread(problem: OSError) -> None:
    raise InputError(f"{problem.filename}: cannot be read: {problem.strerror}") from problem


def _of_pattern(pattern: str) -> list[Path]:
    """Files of that pattern, and those in folders of that pattern."""
    matches = map(Path, glob(pattern, recursive=True))
    return sorted({file for x in matches for file in (_in_folder(x) if x.is_dir() else [x])})


def _is_data(name: str) -> bool:
    return not name.startswith((".", "_"))


def _at_address(place: str) -> list[str]:
    from pyarrow import fs

    system, path = file_system(place)
    before = list(takewhile(lambda part: not has_magic(part), path.rstrip("/").split("/")))
    folder = "/".join(before)
    prefix = place.removesuffix(path)
    try:
        if not has_magic(path) and system.get_file_info(path).type == fs.FileType.File:
            return [place]
        inside = system.get_file_info(fs.FileSelector(folder, recursive=True))
    except OSError as problem:
        raise InputError(f"{place}: {str(problem).splitlines()[0]}") from problem
    files = [x.path for x in inside if x.type == fs.FileType.File and Path(x.path).suffix == ".parquet"]
    if has_magic(path):
        found = [file for file in files if _matches(file.split("/"), path.split("/"))]
    else:
        found = [file for file in files if all(map(_is_data, file.split("/")[len(before) :]))]
    return [prefix + file for file in sorted(found)]


def _matches(parts: list[str], pattern: list[str]) -> bool:
    """Whether a path matches a pattern, in which ** stands for any number of folders."""
    if not (parts and pattern):
        return not (parts or pattern)
    if pattern[0] == "**":
        return _matches(parts, pattern[1:]) or _matches(parts[1:], pattern)
    return fnmatch(parts[0], pattern[0]) and _matches(parts[1:], pattern[1:])


def parts_of(file: Path | str, columns: Columns) -> list[Part]:
    """The parts of a file."""
    if Path(file).suffix != ".parquet":
        return [Part(file, name=str(file))]
    try:
        with open_parquet(file) as opened:
            sizes = [opened.metadata.row_group(i).num_rows for i in range(opened.metadata.num_row_groups)]
    except InputError as problem:
        raise InputError(f"{file}: {problem}") from problem
    except Exception as problem:  # whatever arrow raises of a damaged or missing file
        missing = isinstance(problem, FileNotFoundError)
        reason = (
            "no such file" if missing else "cannot be read as parquet: it is damaged, incomplete or of another kind"
        )
        raise InputError(f"{file}: {reason}") from problem
    return _grouped(file, sizes, needed_of(file, columns)) if sum(sizes) else []


def _grouped(file: Path | str, sizes: list[int], used: Needed) -> list[Part]:
    """Row groups side by side until they have enough rows."""
    parts: list[Part] = []
    groups: list[int] = []
    start = rows = 0
    wide = max(used.width // 2, 1)
    most = min(max(sum(sizes) * wide // PARTS, ROWS), 4 * ROWS) // wide
    for i, size in enumerate(sizes):
        groups, rows = [*groups, i], rows + size
        if rows >= most or i == len(sizes) - 1:
            parts.append(Part(file, tuple(groups), start, rows, used, f"{file}#{groups[0]}-{i}"))
            groups, start, rows = [], start + rows, 0
    return parts
