"""What a tally has read so far, kept in a file, so that a run that was killed goes on where it was."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from assay._core.arrays import InputError
from assay._core.writing import replacing
from assay.files import Columns, file_system
from assay.scale._parts import Part
from assay.scale._tally import Tally

VERSION = 2


@dataclass
class State:
    """The tally of the parts that have been read, and which these are: both change together or not at all."""

    tally: Tally | None = None
    parts: dict[str, str] = field(default_factory=dict)  # by name, the file of each
    files: dict[str, str] = field(default_factory=dict)  # by name, what tells its content from another's
    left_out: dict[str, list[str]] = field(default_factory=dict)  # by part, what was bad in it

    def add(self, part: Part, found: Tally | None, left_out: dict[str, list[str]]) -> None:
        """Count a part that has been read; one that is bad as a whole is not, and is read again next time."""
        if found is None and part.name in left_out:
            return
        if found is not None:
            try:
                self.tally = found if self.tally is None else self.tally + found
            except InputError as problem:
                raise InputError(f"{part.file}: {problem}") from problem
        self.parts[part.name] = str(part.file)
        if part.name in left_out:
            self.left_out[part.name] = left_out[part.name]

    def save(self, file: Path, columns: Columns) -> None:
        """Write it; the file changes as a whole."""
        kept = {"version": VERSION, "columns": asdict(columns), "parts": self.parts}
        kept |= {"files": self.files, "left_out": self.left_out}
        content = json.dumps(kept).encode()
        stored = b"" if self.tally is None else self.tally.to_bytes()
        with replacing(file) as stream:
            digest = np.frombuffer(sha256(content + stored).digest(), np.uint8)
            np.savez(
                stream, read=np.frombuffer(content, np.uint8), tally=np.frombuffer(stored, np.uint8), digest=digest
            )

    @staticmethod
    def load(file: Path, columns: Columns) -> State:
        """What was written; an empty state if there is no file yet."""
        if not file.exists():
            return State()
        try:
            with np.load(BytesIO(file.read_bytes()), allow_pickle=False) as archive:
                content, stored, digest = (archive[name].tobytes() for name in ("read", "tally", "digest"))
            if sha256(content + stored).digest() != digest:
                raise ValueError
            kept = json.loads(content)
        except (BadZipFile, KeyError, OSError, ValueError, EOFError) as problem:
            raise InputError(
                f"{file}: is no state of an audit, or is damaged; name another file to begin anew"
            ) from problem
        if kept["version"] != VERSION or kept["columns"] != asdict(columns):
            raise InputError(f"{file}: was begun with other columns or another release; delete it to begin anew")
        tally = Tally.from_bytes(stored) if stored else None
        return State(tally, kept["parts"], kept["files"], kept["left_out"])

    def check(self, files: list[Path | str], kept_in: Path) -> None:
        """Note what the files are like, or refuse them if those that were counted are not there as they were."""
        anew = f"delete {kept_in} to begin anew"
        counted = set(self.parts.values())
        gone = counted - set(map(str, files))
        if gone:
            raise InputError(f"{min(gone)}: has been counted and is not there any more; {anew}")
        for file in files:
            now = _likeness(file)
            if str(file) in counted and self.files[str(file)] != now:
                raise InputError(f"{file}: has changed since it was read; {anew}")
            self.files[str(file)] = now


def _likeness(file: Path | str) -> str:
    """Size and time of the last change."""
    if isinstance(file, Path):
        found = file.stat()
        return f"{found.st_size} {found.st_mtime_ns}"
    system, path = file_system(file)
    info = system.get_file_info(path)
    return f"{info.size} {info.mtime_ns}"
