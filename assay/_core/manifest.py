"""The folder of a run: its manifest lists every file that assay writes there, with the digest of what is finished.

Only what a manifest lists is ever deleted, and a listed digest tells a damaged file from a whole one.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import file_digest
from pathlib import Path
from weakref import WeakValueDictionary

from assay._core.arrays import InputError
from assay._core.writing import TEMPORARY, replacing

try:
    import fcntl
except ImportError:  # on Windows, where two processes are not kept apart
    fcntl = None  # type: ignore[assignment]

MANIFEST, LOCK = "manifest.json", "lock"
CHECKPOINT, FAILED, LOG, PAGE = "checkpoint.pt", "failed.json", "log.txt", "audit.html"
ANY_TIME = (LOCK, CHECKPOINT, FAILED, LOG, PAGE)  # written again and again: listed from the start, without a digest
SAFE = re.compile(r"[][A-Za-z0-9_,=@+~-][][A-Za-z0-9_.,=@+~-]*")  # a part of a listed name


class _Lock:
    """An open file that no other process can lock while this object lives."""

    def __init__(self, file: Path) -> None:
        self.descriptor = opened(file)
        if fcntl is not None:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX)  # released when it is closed, also if the process is killed

    def __del__(self) -> None:
        os.close(self.descriptor)


_HELD: WeakValueDictionary[Path, _Lock] = WeakValueDictionary()  # of this process, which must not wait for itself


def begin(folder: Path) -> _Lock:
    """Make the folder of a run, or take one up, after waiting for other processes; none can until the lock is gone."""
    refuse_foreign(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        place = (folder / LOCK).absolute()
        lock = _HELD[place] = _HELD.get(place) or _Lock(place)
    except OSError as problem:
        raise InputError(f"{folder}: cannot be written: {problem.strerror or problem}") from problem
    if not (folder / MANIFEST).is_file():
        _write(folder, dict.fromkeys(ANY_TIME))
    return lock


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Inside the block, no other process works on the run in that folder."""
    lock = begin(folder)
    yield
    del lock


def refuse_foreign(folder: Path, *, root: Path | None = None) -> None:
    """Refuse a folder with files that are not of a run, and one that a link leads out of `root`."""
    if root is not None and not folder.resolve().is_relative_to(root.resolve()):
        raise InputError(f"{folder} is a link that leads out of {root}")
    try:
        names = [entry.name for entry in os.scandir(folder)]
    except FileNotFoundError:
        return
    except OSError as problem:
        raise InputError(f"{folder}: is no folder to write to: {problem.strerror or problem}") from problem
    foreign = [name for name in names if name not in ANY_TIME and not TEMPORARY.fullmatch(name)]
    if foreign and MANIFEST not in names:
        other = f"it has '{foreign[0]}' and no {MANIFEST}"
        raise InputError(f"{folder} is not the folder of a run: {other}; name another folder")


def listed(folder: Path) -> dict[str, str | None]:
    """The files that assay has written there, with digests; None is a file that is written again and again."""
    file = folder / MANIFEST
    try:
        found = json.loads(file.read_text(encoding="utf-8"))["files"]
        names = {str(name): None if digest is None else str(digest) for name, digest in found.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
        raise InputError(f"{file}: cannot be read: {problem}; delete that folder") from problem
    for name in names:
        if not all(SAFE.fullmatch(part) for part in name.split("/")):
            raise InputError(f"{file}: lists {name!r}, which assay never writes")
    return names


@contextmanager
def recording(folder: Path, *names: str) -> Iterator[None]:
    """Write files of these names inside the block; their digests are listed after it, and none of theirs meanwhile."""
    before = listed(folder) if (folder / MANIFEST).is_file() else dict.fromkeys(ANY_TIME)
    forgotten = before | dict.fromkeys(names)
    if forgotten != before or not (folder / MANIFEST).is_file():
        _write(folder, forgotten)
    yield
    _write(folder, forgotten | {name: _digest(folder / name) for name in names if (folder / name).is_file()})


def intact(folder: Path, name: str) -> bool:
    """Whether a finished file is there as it was written."""
    try:
        digest = listed(folder).get(name)
        return digest is not None and digest == _digest(folder / name)
    except (InputError, OSError):
        return False


def damaged(folder: Path) -> Iterator[str]:
    """What is wrong with the finished files of a run, a line each."""
    for name, digest in listed(folder).items():
        if digest is not None:
            try:
                if _digest(folder / name) != digest:
                    yield f"{folder / name}: has changed since it was written"
            except OSError as problem:
                yield f"{folder / name}: {problem.strerror or problem}"


def delete(folder: Path) -> bool:
    """Delete the files that the manifest of a run lists; whether the folder is gone, as nothing else was in it."""
    inside = folder.resolve()
    files = [folder / name for name in listed(folder)]
    files = [file for file in files if file.parent.resolve().is_relative_to(inside)]  # no link leads elsewhere
    folders = sorted({file.parent for file in files} | {folder}, key=lambda path: -len(path.parts))
    for part in folders:
        discard_temporaries(part)
    for file in [*files, folder / MANIFEST]:
        with suppress(FileNotFoundError, IsADirectoryError, PermissionError):
            file.unlink()
    for part in folders:
        with suppress(OSError):
            part.rmdir()
    return not folder.exists()


def discard_temporaries(folder: Path) -> None:
    """Delete what the writer left of a process that was killed; call it while no other process writes there."""
    for entry in folder.glob(".*.tmp"):
        if TEMPORARY.fullmatch(entry.name):
            entry.unlink(missing_ok=True)


def opened(file: Path) -> int:
    """A descriptor of a file that is written in place, such as the log of a run; a link is not followed."""
    return os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0), 0o666)


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest()


def _write(folder: Path, names: dict[str, str | None]) -> None:
    with replacing(folder / MANIFEST) as stream:
        stream.write(json.dumps({"files": names}, indent=1).encode())
