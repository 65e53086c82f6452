"""The one atomic writer: a file appears whole under its name, or not at all."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from stat import S_IMODE, S_ISREG
from typing import IO

from assay._core.arrays import InputError

NEW_FILE = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0)  # O_BINARY: Windows only
TEMPORARY = re.compile(r"\..{1,32}\.[0-9a-f]{16}\.tmp", re.DOTALL)
"""Names of temporary files."""


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A stream to a temporary file that takes the name `path` once everything is written, or is removed.

    The temporary file is in the same folder, under a name that no other call uses. The new file has the permissions of
    the one it replaces. File and folder are synced, so that the new file survives a power cut.
    """
    try:
        mode = _mode(path)
        # What replaces a private file is private from its first byte.
        temporary, descriptor = _temporary(path, 0o666 if mode is None else 0o600)
        try:
            with _synced(descriptor) as stream:
                yield stream
            if mode is not None:
                temporary.chmod(mode)
            temporary.replace(path)
        finally:
            with suppress(OSError):
                temporary.unlink()
    except OSError as problem:
        raise InputError(f"{path}: cannot be written: {problem.strerror or problem}") from problem
    _sync_folder(path.parent)


def not_over(*written: Path | None, reading: Iterable[Path | None]) -> None:
    """Refuse, before the work, to write over a file that is read, two results to one file, or where nothing can be."""
    taken = {_resolved(path) for path in reading if path is not None}
    for path in written:
        if path is not None:
            place = _resolved(path)
            if place in taken:
                raise InputError(f"{path} is read or written already; give what is written a name of its own")
            taken.add(place)
            _mode(path)
            if not os.access(path.parent, os.W_OK):
                why = "its folder is not writable" if path.parent.is_dir() else "No such file or directory"
                raise InputError(f"{path}: cannot be written: {why}")


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError) as problem:  # links in a circle, or a name with a zero byte
        raise InputError(f"{path}: cannot be read or written: {problem}") from problem


def _mode(path: Path) -> int | None:
    """The permissions of the file to replace; None if there is none yet."""
    if not path.name:
        raise InputError(f"'{path}' names no file to write to")
    try:
        found = path.stat().st_mode
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise InputError(f"{path}: cannot be written: {problem.strerror or problem}") from problem
    if not S_ISREG(found):
        raise InputError(f"{path}: cannot be written: it exists and is not a regular file")
    return S_IMODE(found)


def _temporary(path: Path, mode: int) -> tuple[Path, int]:
    """A new file beside `path`, and its descriptor."""
    while True:
        # The start of the name is enough: a name of full length has no room for more.
        temporary = path.with_name(f".{path.name[:32]}.{token_hex(8)}.tmp")
        try:
            return temporary, os.open(temporary, NEW_FILE, mode)
        except FileExistsError:
            continue


@contextmanager
def _synced(descriptor: int) -> Iterator[IO[bytes]]:
    """A stream to an open file whose bytes are on the disk at its end."""
    try:
        # Some writers close the stream they are given: the descriptor stays open for the sync.
        with os.fdopen(descriptor, "wb", closefd=False) as stream:
            yield stream
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    # The file is in place by now; where folders cannot be synced (Windows, some network drives), nothing is lost.
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
