"""What may be read: regular files only, and none that unpacks to far more than its size."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import IO, Any

from assay._core.arrays import InputError

LARGE = 2**30  # bytes below which a file may unpack to anything
PACKED = (".gz", ".zst")  # endings of a text file that is unpacked while it is read
PIECE = 2**24  # bytes unpacked at a time
MOST = 100  # times the size of a file that it may unpack to beyond that


def require_file(path: Path, hint: str = "") -> None:
    """Refuse what is not there, with a hint at how to get it, a folder, a pipe or a device."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError) as problem:
        raise InputError(f"{path}: no such file{hint}") from problem
    except (OSError, ValueError) as problem:
        raise InputError(f"{path}: cannot be read: {getattr(problem, 'strerror', None) or problem}") from problem
    if not S_ISREG(mode):
        raise InputError(f"{path}: is a {'folder' if S_ISDIR(mode) else 'pipe or a device'}, not a file")


def refuse_bomb(path: Path, size: int) -> None:
    """Refuse a file that says it unpacks to so many bytes, if they are far more than it has."""
    packed = path.stat().st_size
    if size > max(LARGE, MOST * packed):
        raise InputError(f"unpacks to {size / 1e9:,.1f} GB from {packed / 1e6:,.3f} MB; refused as made to fill memory")


def ending(path: Path) -> str:
    """What kind of file it is, by its ending or, if it is packed, by the one before.

    >>> ending(Path("x.csv.gz")), ending(Path("x.npz"))
    ('.csv', '.npz')
    """
    return Path(path.stem).suffix if path.suffix in PACKED else path.suffix


def unpacking(path: Path) -> IO[bytes]:
    """The bytes of a file as it is read; a packed one is unpacked, and refused if it has far more than its size."""
    if path.suffix not in PACKED:
        return path.open("rb")
    import pyarrow as pa

    whole = BytesIO()
    with pa.input_stream(str(path), compression="detect") as packed:
        while piece := packed.read(PIECE):
            whole.write(piece)
            refuse_bomb(path, whole.tell())
    whole.seek(0)
    return whole


def source(path: Path) -> Any:
    """A file for pyarrow: its path, or if it is packed what is in it."""
    return str(path) if path.suffix not in PACKED else unpacking(path)
