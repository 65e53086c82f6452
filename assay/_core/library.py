"""Where the library of compiled loops lies; the build reads this file alone, so it imports nothing of the package."""

from __future__ import annotations

import platform
import sys
from hashlib import sha256
from pathlib import Path

SOURCES = ("loops.c", "rows.h", "tally.h")


def library(folder: Path) -> Path:
    """Named after the digest of its sources and the machine, so that a library of other sources is never loaded."""
    digest = sha256(b"".join((folder / name).read_bytes() for name in SOURCES)).hexdigest()[:12]
    return folder / f"loops-{digest}-{platform.machine()}{'.dll' if sys.platform == 'win32' else '.so'}"
