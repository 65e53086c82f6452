"""The commands `assay study ...`."""

from __future__ import annotations

import time
from pathlib import Path
from shutil import rmtree
from typing import Annotated, Literal

import pyarrow.csv
import pyarrow.parquet
from cyclopts import App, Parameter
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from assay.arrays import InputError
from assay.files import replacing
from assay.report import tables as shown
from assay.study import (
    FAILED,
    Progress,
    Run,
    Study,
    Table,
    check,
    expand,
    paired,
    read_rows,
    read_study,
    run_local,
    tables,
    welch,
)
from assay.training import Hardware

study_app = App(
    name="study", help="Run a study of many trainings, and tabulate what it found.", help_format="plaintext"
)
RUNS = Path("runs")
TESTS = {"welch": welch, "paired": paired}


@study_app.command(name="run")
def run_command(
    file: Path,
    *,
    out: Path = RUNS,
    workers: int = 1,
    threads: int | None = None,
    only: str = "",
    retry: Annotated[bool, Parameter(negative="")] = False,
    device: str = "auto",
) -> None:
    """Train every run of a study that is not done yet, and show the table; stopped with Ctrl-C, it can be gone on with.

    Parameters
    ----------
    file
        The study, a TOML file.
    out
        Folder of all runs.
    workers
        Runs at a time, each in a process of its own.
    threads
        Threads of each run; by default the machine's are shared out. A run is the same again only with as many.
    only
        Only runs whose folder fits this pattern, as digits/*/sam*.
    retry
        Run again what failed before.
    device
        cpu, cuda, mps or auto.
    """
    if workers < 1:
        raise InputError(f"--workers must be at least 1, got {workers}")
    study = read_study(file)
    console = Console()
    with Console(stderr=True).status("checking the study"):
        check(study)
    runs = expand(study, only=only or "*")
    failed = [run for run in runs if (out / run.folder / FAILED).is_file() and not retry]
    todo = [run for run in runs if run not in failed]
    if failed:
        console.print(f"{len(failed)} runs failed before and are left out; --retry runs them again", style="yellow")
    start = time.monotonic()
    try:
        with Live(console=Console(stderr=True), refresh_per_second=2, transient=True) as live:

            def show(progress: Progress) -> None:
                live.update(_progress(study, progress, workers, start))

            done = run_local(study, todo, out, workers=workers, threads=threads, hardware=Hardware(device), show=show)
    except KeyboardInterrupt:
        console.print("stopped; the same command goes on from here", style="yellow")
        return
    console.print(f"{done.done} runs done, {len(done.failed)} failed, in {time.monotonic() - start:.0f} s")
    for run in done.failed:
        console.print(f"failed: {out / run.folder / FAILED} says why", style="red")
    console.print(_tables(study, runs, out, "welch"))


@study_app.command(name="status")
def status_command(file: Path, *, out: Path = RUNS) -> None:
    """Count the runs that are done, failed and waiting.

    Parameters
    ----------
    file
        The study.
    out
        Folder of all runs.
    """
    runs = expand(read_study(file))
    states = [_state(out / run.folder) for run in runs]
    for state in ("done", "failed", "begun", "waiting"):
        Console().print(f"{states.count(state):6d} {state}")


@study_app.command(name="rows")
def rows_command(file: Path, *, to: Path, out: Path = RUNS) -> None:
    """Write all numbers of a study as one table in long form.

    Parameters
    ----------
    file
        The study.
    to
        The file to write, .parquet or .csv.
    out
        Folder of all runs.
    """
    rows = read_rows([out / run.folder for run in expand(read_study(file))])
    with replacing(to) as stream:
        if to.suffix == ".parquet":
            pyarrow.parquet.write_table(rows, stream)
        elif to.suffix == ".csv":
            pyarrow.csv.write_csv(rows, stream)
        else:
            raise InputError(f"{to}: rows are written as .parquet or .csv")


@study_app.command(name="report")
def report_command(
    file: Path,
    *,
    out: Path = RUNS,
    to: Path | None = None,
    test: Literal["welch", "paired"] = "welch",
) -> None:
    """Show the tables of a study, or write them.

    Parameters
    ----------
    file
        The study.
    out
        Folder of all runs.
    to
        A file to write: .md, .tex or .csv.
    test
        How a method is compared with the baseline: Welch's t-test, or paired by seed.
    """
    study = read_study(file)
    runs = expand(study)
    if to is None:
        Console().print(_tables(study, runs, out, test))
        return
    found = _found(study, runs, out, test)
    forms = {
        ".md": lambda: "\n".join(map(shown.markdown, found)),
        ".tex": lambda: "\n".join(map(shown.latex, found)),
        ".csv": lambda: shown.as_csv(found),
    }
    if to.suffix not in forms:
        raise InputError(f"{to}: tables are written as {', '.join(forms)}")
    with replacing(to) as stream:
        stream.write(forms[to.suffix]().encode())


@study_app.command(name="check")
def check_command(file: Path) -> None:
    """Say whether a study can run: its data are there, its networks fit them, its recipes exist.

    Parameters
    ----------
    file
        The study.
    """
    study = read_study(file)
    runs = check(study)
    Console().print(f"{file}: {len(runs)} runs, all can be built")
    for value in study.assumed:
        Console().print(f"  assumed: {value}", style="dim")


@study_app.command(name="clean")
def clean_command(
    file: Path, *, out: Path = RUNS, failed_only: Annotated[bool, Parameter(negative="")] = False
) -> None:
    """Delete the runs of a study.

    Parameters
    ----------
    file
        The study.
    out
        Folder of all runs.
    failed_only
        Only those that failed.
    """
    for run in expand(read_study(file)):
        folder = out / run.folder
        if folder.is_dir() and (not failed_only or _state(folder) == "failed"):
            rmtree(folder)


def _state(folder: Path) -> str:
    if (folder / FAILED).is_file():
        return "failed"
    if (folder / "rows.parquet").is_file():
        return "done"
    return "begun" if folder.is_dir() else "waiting"


def _found(study: Study, runs: list[Run], out: Path, test: str) -> list[Table]:
    baseline = study.baseline or runs[0].method
    rows = read_rows([out / run.folder for run in runs])
    return tables(rows, baseline=baseline, metrics=study.metrics, test=TESTS[test])


def _tables(study: Study, runs: list[Run], out: Path, test: str) -> RenderableType:
    found = _found(study, runs, out, test)
    legend = (
        f"mean ± sd over seeds; against {study.baseline or runs[0].method}: ▲ significantly better, ▼ worse; best bold"
    )
    return Group(*map(shown.grid, found), Text(legend, "dim"))


def _progress(study: Study, progress: Progress, workers: int, start: float) -> RenderableType:
    taken = sum(progress.seconds) / len(progress.seconds) if progress.seconds else None
    left = progress.waiting + len(progress.running)
    eta = "" if taken is None else f", about {taken * left / workers / 60:.1f} min left"
    head = f"{study.name}: {progress.done} done, {len(progress.failed)} failed, {left} to go{eta}"
    lines = [f"  {run.folder}  {time.monotonic() - since:.0f} s" for run, since in progress.running.items()]
    return Text("\n".join([f"{head}  ({time.monotonic() - start:.0f} s)", *lines]))
