"""What the engines share: how far a study has come, what one run is, and what is remembered of a failure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from assay.files import replacing
from assay.study._rows import has_rows
from assay.study._run import Run
from assay.study._study import Study

FAILED = "failed.json"
LOG = "log.txt"
TAIL = 20  # lines of a log that a failure is remembered by


@dataclass
class Progress:
    """How far a study has come."""

    waiting: int
    done: int = 0
    failed: list[Run] = field(default_factory=list)
    running: dict[Run, float] = field(default_factory=dict)  # since when
    seconds: list[float] = field(default_factory=list)  # that finished runs took


def state(study: Study, folder: Path) -> str:
    """Of a run: done, failed, begun or waiting."""
    if (folder / FAILED).is_file():
        return "failed"
    if has_rows(study, folder):
        return "done"
    return "begun" if folder.is_dir() else "waiting"


def not_done(study: Study, runs: Sequence[Run], root: Path) -> list[Run]:
    """The runs whose numbers are not there yet, or not just those that the study asks for."""
    return [run for run in runs if not has_rows(study, root / run.folder)]


def remember(folder: Path, how: str) -> None:
    """Write down why a run failed: how it ended and the tail of its log."""
    log = folder / LOG
    tail = log.read_text(errors="replace").splitlines()[-TAIL:] if log.is_file() else []
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / FAILED) as stream:
        stream.write(json.dumps({"ended": how, "log": tail}, indent=1).encode())
