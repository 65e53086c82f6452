"""The command `assay verify`."""

from __future__ import annotations

from pathlib import Path

from assay._core.arrays import InputError
from assay._core.manifest import MANIFEST, damaged, listed
from assay.cli.output import show


def verify_command(folder: Path) -> int:
    """Say whether the files of a run, or of all runs of a study, are as they were written.

    Parameters
    ----------
    folder
        The folder of a run, or of all runs.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder")
    runs = sorted(manifest.parent for manifest in folder.rglob(MANIFEST))
    if not runs:
        raise InputError(f"{folder}: no run is in it; a run has a {MANIFEST}")
    files, problems = 0, list[str]()
    for run in runs:
        try:
            files += sum(digest is not None for digest in listed(run).values())
            problems += damaged(run)
        except InputError as problem:
            problems.append(str(problem))
    for line in problems:
        show(line, "red", soft_wrap=True)
    verdict = f"{len(problems)} damaged" if problems else "all as they were written"
    show(f"{len(runs)} runs, {files} finished files: {verdict}")
    return 2 if problems else 0
