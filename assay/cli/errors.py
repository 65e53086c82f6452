"""The one place where errors become lines: nobody who uses the command sees a traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from traceback import extract_tb

from cyclopts import CycloptsError

from assay._core.arrays import InputError
from assay._core.lookup import EXTRAS, missing
from assay.cli.output import fail
from assay.cli.streams import drop_output

INTERRUPTED = 130  # exit code after Ctrl-C, which cyclopts gives without a word
MISTAKE = 70  # exit code after an error that nobody foresaw: a mistake in assay, or in a user's own code


@contextmanager
def errors_as_lines() -> Iterator[None]:
    """End the process with one line on stderr if something goes wrong in the block.

    Exit code 2 means that the input, the usage or the machine is at fault; ASSAY_TRACEBACK=1 shows errors in full.
    """
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except (InputError, CycloptsError) as problem:
        fail(str(problem))
    except KeyboardInterrupt as problem:
        fail(str(problem) or "stopped", INTERRUPTED)
    except MemoryError as problem:
        fail(f"the memory is full{f': {problem}' if str(problem) else ''}")
    except OSError as problem:
        drop_output()
        fail(f"{problem.filename or 'output'}: {problem.strerror or problem}")
    except Exception as problem:
        if os.environ.get("ASSAY_TRACEBACK") == "1":
            raise
        fail(*_unforeseen(problem))


def _unforeseen(problem: Exception) -> tuple[str, int]:
    """A missing package by what installs it, anything else by its kind and place."""
    if isinstance(problem, ImportError) and (package := (problem.name or "").partition(".")[0]) in EXTRAS:
        return missing(package), 2
    place = extract_tb(problem.__traceback__)[-1]
    where = f"{Path(place.filename).name}, line {place.lineno}"
    return f"{type(problem).__name__} in {where}: {problem}; ASSAY_TRACEBACK=1 shows more to report", MISTAKE
