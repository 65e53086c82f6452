"""Standard output that outlives its reader: after `| head -1` a command still writes its files and ends as usual."""

from __future__ import annotations

import os
import sys
from io import BufferedWriter, RawIOBase, TextIOWrapper
from typing import Any


class _Patient(RawIOBase):
    """A descriptor whose bytes go nowhere once nobody reads them."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def write(self, content: Any) -> int:
        try:
            return os.write(self.descriptor, content)
        except BrokenPipeError:
            return len(content)

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self.descriptor

    def isatty(self) -> bool:
        return os.isatty(self.descriptor)


def make_patient() -> None:
    """Make standard output and standard error outlive their readers, and write ? for signs that they do not have.

    A stream that was closed before the command began (`>&-`) goes nowhere.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        if isinstance(stream, TextIOWrapper) and stream is getattr(sys, f"__{name}__"):
            raw = BufferedWriter(_Patient(stream.fileno()))
            setattr(sys, name, TextIOWrapper(raw, stream.encoding, errors="replace", line_buffering=True))


def drop_output() -> None:
    """Forget what standard output could not take, so that Python does not try again when it ends."""
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    if isinstance(raw, _Patient):
        raw.descriptor = os.open(os.devnull, os.O_WRONLY)
