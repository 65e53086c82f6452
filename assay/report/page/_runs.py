"""The runs of a study: their states, their folders, and why they failed."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from assay.report.page._content import Content
from assay.study import Run, Study, failure, state, why

STATES = ("done", "failed", "begun", "waiting")
TRAINING_AXES = ("data", "network", "method", "n_train", "learning_rate", "weight_decay")
MAIN_AXES = ("data", "network", "method")  # shown even if they do not vary
AUDIT = "audit.html"
LOGS = 50  # failures whose log is on the page
LONGEST = 400  # characters of a line of a log


@dataclass(frozen=True)
class FoundRun:
    """A run, its folder and its state."""

    run: Run
    folder: Path
    state: str


def find_runs(study: Study, runs: Sequence[Run], root: Path) -> list[FoundRun]:
    """Each run with its state on disk."""
    return [FoundRun(run, root / run.folder, state(study, root / run.folder)) for run in runs]


def progress(found: Sequence[FoundRun]) -> str:
    """How many runs are done, failed, begun and waiting."""
    count = Counter(each.state for each in found)
    rest = [f"{count[state]} {state}" for state in STATES[1:] if count[state]]
    return ", ".join([f"{count['done']} of {len(found)} runs done", *rest])


def table(found: Sequence[FoundRun], page: Path) -> Content:
    """One row for each method at each point, its seeds as links."""
    axes = [
        name for name in TRAINING_AXES if name in MAIN_AXES or len({_on_axis(each.run, name) for each in found}) > 1
    ]
    groups: dict[tuple[object, ...], list[FoundRun]] = {}
    for each in found:
        groups.setdefault(tuple(_on_axis(each.run, name) for name in axes), []).append(each)
    audited = any((each.folder / AUDIT).is_file() for each in found)

    def row(point: tuple[object, ...], seeds: list[FoundRun]) -> list[Content]:
        cells: list[Content] = [{"text": "" if value is None else str(value), "value": value} for value in point]
        count = Counter(each.state for each in seeds)
        states = ", ".join(f"{count[state]} {state}" for state in STATES if count[state])
        tone = "bad" if count["failed"] else ""
        cells.append({"text": states, "value": count["done"] / len(seeds), "tone": tone})
        ends = ("", AUDIT) if audited else ("",)
        return [*cells, *(_links([each.folder for each in seeds], end, page) for end in ends)]

    columns = [*axes, "state", "folder of seed", *(["audit of seed"] if audited else [])]
    return {"columns": columns, "rows": [row(*group) for group in groups.items()], "first": 20}


def _on_axis(run: Run, axis: str) -> object:
    value = getattr(run, axis)
    return str(value) if axis == "method" else value


def failures(found: Sequence[FoundRun], page: Path) -> list[Content]:
    """The folder of each failed run, how it ended, and the tail of its log."""
    failed = [each for each in found if each.state == "failed"]
    return [_failure(each, page, with_log=i < LOGS) for i, each in enumerate(failed)]


def _failure(each: FoundRun, page: Path, *, with_log: bool) -> Content:
    lines = [str(line)[:LONGEST] for line in (failure(each.folder) or {}).get("log", [])]
    log = "\n".join(lines) if with_log else ""
    way = _way(each.folder, page)
    return {"text": str(each.run.folder), "href": way, "why": why(each.folder)[:LONGEST], "log": log}


def _links(folders: Sequence[Path], end: str, page: Path) -> Content:
    """Links to folders, or to a file in each, if it exists; they share all but their last part."""
    names = [folder.name for folder in folders if (folder / end).exists()]
    return {"text": "", "links": {"before": _way(folders[0].parent, page), "names": names, "after": f"/{end}"}}


def _way(folder: Path, page: Path) -> str:
    """The path relative to the page, so that both can be moved together; quoted, so that a name is never a scheme."""
    try:
        way = os.path.relpath(folder.resolve(), page.parent.resolve())
    except ValueError:  # on another drive
        return folder.resolve().as_uri() + "/"
    return quote(Path(way).as_posix(), safe="/,=@") + "/"
