"""What both engines share: the progress of a study, the state of a run, and why it failed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay._core.manifest import FAILED, LOG, refuse_foreign
from assay._core.writing import replacing
from assay.study._rows import has_rows, rows_file
from assay.study._run import Run
from assay.study._study import Study

DONE = "done"  # file of a run that is trained
TAIL = 20  # last lines of a log that a failure records


@dataclass
class Progress:
    """The progress of a study."""

    waiting: int
    done: int = 0
    failed: list[Run] = field(default_factory=list)
    running: dict[Run, float] = field(default_factory=dict)  # and their start
    seconds: list[float] = field(default_factory=list)  # of each finished run


def state(study: Study, folder: Path) -> str:
    """The state of a run: done, failed, begun or waiting."""
    if has_rows(study, folder):
        return "done"
    if (said := failure(folder)) is not None and said.get("asked") in (None, rows_file(study)):
        return "failed"
    return "begun" if folder.is_dir() else "waiting"


def not_done(study: Study, runs: Sequence[Run], root: Path) -> list[Run]:
    """The runs without the numbers that the study asks for; folders that are not of runs are refused."""
    waiting = [run for run in runs if not has_rows(study, root / run.folder)]
    for run in waiting:
        refuse_foreign(root / run.folder, root=root)
    return waiting


def remember(study: Study, folder: Path, how: str) -> None:
    """Write why a run failed: how it ended, the tail of its log, and, if it was trained, which rows were asked for."""
    log = folder / LOG
    tail = log.read_text(errors="replace").splitlines()[-TAIL:] if log.is_file() else []
    folder.mkdir(parents=True, exist_ok=True)
    asked = rows_file(study) if (folder / DONE).is_file() else None
    with replacing(folder / FAILED) as stream:
        stream.write(json.dumps({"ended": how, "log": tail, "asked": asked}, indent=1).encode())


def failure(folder: Path) -> dict[str, Any] | None:
    """The record of a run's failure; None if there is none, or if it is damaged."""
    try:
        said = json.loads((folder / FAILED).read_text())
    except (OSError, ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) else None


def why(folder: Path) -> str:
    """A failure in a line: how the run ended, and the last line of its log."""
    said = failure(folder) or {}
    log = said.get("log")
    lines = [str(line).strip() for line in log] if isinstance(log, list) else []
    last = next((line for line in reversed(lines) if line), "")
    return ": ".join(part for part in (str(said.get("ended") or ""), last) if part)
