"""The commands `assay study ...`."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from shutil import rmtree
from typing import Annotated, Any, Literal

import pyarrow.csv
import pyarrow.parquet
from cyclopts import App, Parameter
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import track
from rich.table import Table as Grid
from rich.text import Text

from assay import audit, files
from assay.arrays import InputError
from assay.files import replacing
from assay.names import found
from assay.report import tables as shown
from assay.study import (
    FAILED,
    Progress,
    Run,
    Study,
    Table,
    Tuned,
    check,
    expand,
    has_rows,
    paired,
    published_beside,
    read_rows,
    read_study,
    run_local,
    run_ray,
    state,
    tables,
    try_out,
    tune,
    welch,
)
from assay.training import Hardware

study_app = App(
    name="study", help="Run a study of many trainings, and tabulate what it found.", help_format="plaintext"
)
RUNS = Path("runs")
TESTS = {"welch": welch, "paired": paired}
INTERRUPTED = 130  # the exit code of what Ctrl-C has stopped


@Parameter(name="*")
@dataclass(frozen=True)
class Where:
    """Where runs are kept, and how they are run.

    Parameters
    ----------
    out
        Folder of all runs.
    engine
        local: a process for each run; ray: a Ray task for each run (needs the extra ray).
    workers
        Runs at a time.
    threads
        Threads of each run; by default the machine's are shared out. A run is the same again only with as many.
    device
        cpu, cuda, mps or auto.
    gpus
        GPUs of each run, which may be a fraction; for Ray.
    address
        The Ray cluster to use, all of whose machines see the folder `out`; by default one of this machine.
    """

    out: Path = RUNS
    engine: Literal["local", "ray"] = "local"
    workers: int = 1
    threads: int | None = None
    device: str = "auto"
    gpus: float = 0
    address: str | None = None

    def run_all(self, study: Study, runs: Sequence[Run], show: Callable[[Progress], None]) -> Progress:
        """Run what is not done."""
        if self.workers < 1:
            raise InputError(f"--workers must be at least 1, got {self.workers}")
        common: dict[str, Any] = {"workers": self.workers, "threads": self.threads, "hardware": Hardware(self.device)}
        if self.engine == "local":
            if self.gpus or self.address:
                raise InputError("--gpus and --address are for --engine ray")
            return run_local(study, runs, self.out, **common, show=show)
        return run_ray(study, runs, self.out, **common, gpus=self.gpus, address=self.address, show=show)


HERE = Where()


@study_app.command(name="run")
def run_command(
    file: Path, *, where: Where = HERE, only: str = "", retry: Annotated[bool, Parameter(negative="")] = False
) -> int:
    """Train every run of a study that is not done yet, and show the table; stopped with Ctrl-C, it can be gone on with.

    Parameters
    ----------
    file
        The study, a TOML file.
    only
        Only runs whose folder fits this pattern, as digits/*/sam*.
    retry
        Run again what failed before.
    """
    study = read_study(file)
    console = Console()
    runs = expand(study, only=only or "*")
    if not runs:
        raise InputError(f"no run of {study.name} fits '{only}'; a folder is, for instance, {expand(study)[0].folder}")
    with Console(stderr=True).status("checking the study"):
        check(study, only=only or "*")
    failed = [run for run in runs if (where.out / run.folder / FAILED).is_file() and not retry]
    if failed:
        console.print(f"{len(failed)} runs failed before and are left out; --retry runs them again", style="yellow")
    start = time.monotonic()
    try:
        with _watched(study.name, where.workers) as show:
            done = where.run_all(study, [run for run in runs if run not in failed], show)
    except KeyboardInterrupt:
        console.print("stopped; the same command goes on from here", style="yellow")
        return INTERRUPTED
    console.print(f"{done.done} runs done, {len(done.failed)} failed, in {time.monotonic() - start:.0f} s")
    for run in done.failed:
        console.print(f"failed: {where.out / run.folder / FAILED} says why", style="red")
    console.print(_grids(_found(study, runs, where.out), "best"))
    return 1 if done.failed else 0


@study_app.command(name="tune")
def tune_command(
    file: Path,
    *,
    to: Path,
    where: Where = HERE,
    on: Literal["held_out", "test"] = "held_out",
    metric: str = "ece",
    give_up: float = 0.01,
) -> int:
    """Choose values of hyper-parameters one after the other, those under [tune], and write the study that has them.

    Parameters
    ----------
    file
        The study.
    to
        The file to write: a study that extends this one, of the recipes with the values chosen.
    on
        Samples to choose by. To choose on test, as seed 002 did, makes the figures on test look better than they are.
    metric
        What is to be low.
    give_up
        How much less than the highest accuracy is still good enough.
    """
    study = read_study(file)
    if len(study.data) > 1 or len(study.networks) > 1:
        raise InputError(f"{file}: values are chosen for one data set and one network; this study has several")
    with Console(stderr=True).status("checking the study"):
        check(study)
    try:
        with _watched(f"tuning {study.name}", where.workers) as show:

            def run_all(runs: Sequence[Run]) -> None:
                done = where.run_all(study, runs, show)
                if done.failed:
                    raise InputError(f"a run failed: {where.out / done.failed[0].folder / FAILED} says why")

            found = tune(study, where.out, run_all, on=on, metric=metric, give_up=give_up)
    except KeyboardInterrupt:
        Console().print("stopped; the same command goes on from here", style="yellow")
        return INTERRUPTED
    Console().print(_trials(found, on, metric))
    with replacing(to) as stream:
        stream.write(_tuned_study(study, file, found, on, metric, to).encode())
    return 0


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
    study = read_study(file)
    states = [state(study, out / run.folder) for run in expand(study)]
    for which in ("done", "failed", "begun", "waiting"):
        Console().print(f"{states.count(which):6d} {which}")


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
    study = read_study(file)
    rows = _rows(study, expand(study), out)
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
    html: Path | None = None,
    pages: Annotated[bool, Parameter(negative="")] = False,
    figures: Path | None = None,
    test: Literal["welch", "paired"] = "welch",
    holm: Annotated[bool, Parameter(negative="")] = False,
    bold: shown.Bold = "best",
    published: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Show the tables of a study, or write them, its page, its figures.

    Parameters
    ----------
    file
        The study.
    out
        Folder of all runs.
    to
        A file to write the tables to: .md, .tex or .csv.
    html
        A page to write, to explore everything in a browser.
    pages
        With --html, write the audit of each run as a page in its folder first, to which the study's page links.
    figures
        A folder to write figures to, as SVG.
    test
        How a method is compared with the baseline: Welch's t-test, or paired by seed.
    holm
        Correct the tests of each metric for their number.
    bold
        What to print bold: the best, or what is significantly worse than the baseline.
    published
        Put the figures of the papers that the study names beside ours, with the difference.
    """
    study = read_study(file)
    runs = expand(study)
    if published and not study.published:
        raise InputError(f'{file} names no published table; say for instance published = ["000/2"]')
    made = _found(study, runs, out, test, corrected=holm, beside=published)
    if to is not None:
        _write_tables(made, to, bold)
    if html is not None:
        from assay.report.page import study_page

        if pages:
            _write_pages(study, runs, out)
        study_page(study, runs, out, made, html)
    if figures is not None:
        from assay.report.drawing import draw_study

        draw_study(study, runs, out, _rows(study, runs, out), figures)
    if to is html is figures is None:
        Console().print(_grids(made, bold))


@study_app.command(name="check")
def check_command(file: Path) -> int:
    """Say whether a study can run: its data are there, its networks fit them, each recipe can make a step.

    Parameters
    ----------
    file
        The study.
    """
    study = read_study(file)
    with Console(stderr=True).status("a step of each recipe"):
        problems = list(try_out(study))
    for problem in problems:
        Console().print(problem, style="red", markup=False)
    verdict = "something is missing" if problems else "all can run"
    Console().print(f"{file}: {len(expand(study))} runs, {verdict}", markup=False)
    for value in study.assumed:
        Console().print(f"  assumed: {value}", style="dim", markup=False)
    return 2 if problems else 0


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
    study = read_study(file)
    folders = [out / run.folder for run in expand(study) if (out / run.folder).is_dir()]
    gone = [folder for folder in folders if not failed_only or state(study, folder) == "failed"]
    for folder in gone:
        rmtree(folder)
    Console().print(f"{len(gone)} runs deleted")


def _found(
    study: Study, runs: list[Run], out: Path, test: str = "welch", *, corrected: bool = False, beside: bool = False
) -> list[Table]:
    compared = partial(tables, beside=published_beside(study)) if beside else tables
    methods = [run.method for run in expand(study)]
    return compared(
        _rows(study, runs, out),
        baseline=found("baseline", study.baseline or methods[0], {method: method for method in methods}),
        metrics=study.metrics,
        test=TESTS[test],
        corrected=corrected,
    )


def _rows(study: Study, runs: Sequence[Run], out: Path) -> pyarrow.Table:
    rows = read_rows(study, [out / run.folder for run in runs])
    if not rows.num_rows:
        raise InputError(f"no run of {study.name} in {out} is done; assay study run makes them")
    undone = sum(not has_rows(study, out / run.folder) for run in runs)
    if undone:
        Console(stderr=True).print(f"{undone} of {len(runs)} runs are not done and left out", style="yellow")
    return rows


def _grids(found: list[Table], bold: shown.Bold) -> RenderableType:
    legends = dict.fromkeys(shown.legend(table, bold) for table in found)
    ranked = [shown.ranks(found)] if len(found) > 1 else []
    return Group(*(shown.grid(table, bold) for table in found), *ranked, *(Text(legend, "dim") for legend in legends))


def _write_pages(study: Study, runs: list[Run], out: Path) -> None:
    """The audit of each run's test predictions, as audit.html in its folder."""
    from assay.report.page import audit_page

    done = [run for run in runs if state(study, out / run.folder) == "done"]
    for run in track(done, "pages of runs", console=Console(stderr=True), transient=True):
        predictions = files.read(out / run.folder / "test.npz")
        audit_page({run.method: predictions}, {run.method: audit(predictions)}, out / run.folder / "audit.html")


def _write_tables(found: list[Table], to: Path, bold: shown.Bold) -> None:
    forms = {
        ".md": lambda: "\n".join(shown.markdown(table, bold) for table in found),
        ".tex": lambda: "\n".join(shown.latex(table, bold) for table in found),
        ".csv": lambda: shown.as_csv(found),
    }
    if to.suffix not in forms:
        raise InputError(f"{to}: tables are written as {', '.join(forms)}")
    with replacing(to) as stream:
        stream.write(forms[to.suffix]().encode())


@contextmanager
def _watched(name: str, workers: int) -> Iterator[Callable[[Progress], None]]:
    """A live table of the progress; a request to end (SIGTERM) stops as Ctrl-C does."""
    start = time.monotonic()
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with Live(console=Console(stderr=True), refresh_per_second=2, transient=True) as live:
            yield lambda progress: live.update(_progress(name, progress, workers, start))
    finally:
        signal.signal(signal.SIGTERM, before)


def _progress(name: str, progress: Progress, workers: int, start: float) -> RenderableType:
    left = progress.waiting + len(progress.running)
    taken = sum(progress.seconds) / len(progress.seconds) if progress.seconds else None
    eta = "?" if taken is None else _clock(taken * left / workers)
    counts = Grid(box=SIMPLE_HEAD, pad_edge=False, title=f"{name}, {_clock(time.monotonic() - start)}")
    for head in ("running", "waiting", "done", "failed", "left, about"):
        counts.add_column(head, justify="right")
    failed = Text(str(len(progress.failed)), "red" if progress.failed else "")
    counts.add_row(str(len(progress.running)), str(progress.waiting), str(progress.done), failed, eta)
    running = Grid.grid(padding=(0, 2))
    for run, since in progress.running.items():
        running.add_row(_clock(time.monotonic() - since), Text(str(run.folder), overflow="ellipsis", no_wrap=True))
    return Group(counts, running)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"


def _trials(found: Tuned, on: str, metric: str) -> RenderableType:
    grid = Grid(box=SIMPLE_HEAD, pad_edge=False, title=f"chosen on {on}", title_justify="left")
    for head in ("parameter", "method", shown.heading("accuracy"), shown.heading(metric), ""):
        grid.add_column(head)
    for trial in found.trials:
        numbers = (f"{shown.scale(m) * s.mean:.2f}" for m, s in (("accuracy", trial.accuracy), (metric, trial.error)))
        grid.add_row(trial.parameter, trial.method, *numbers, "chosen" if trial.chosen else "")
    return grid


def _tuned_study(study: Study, file: Path, found: Tuned, on: str, metric: str, to: Path) -> str:
    """TOML of a study that extends the tuned one."""
    (tuned,) = found.best.values()
    lines = []
    for recipe in tuned.values():
        values = "".join(f", {name} = {_toml(value)}" for name, value in recipe.values)
        lines.append(f"  {{ recipe = {_toml(recipe.name)}{values} }},")
    base = os.path.relpath(file.resolve(), to.resolve().parent)
    how = f"values of {', '.join(study.tune)} chosen on {on} by {metric}"
    head = [f"# The {how}.", f"extends = {_toml(base)}", f"name = {_toml(study.name + '_tuned')}"]
    names = {**study.stands_for, **{str(new): study.stands_for.get(old, old) for old, new in tuned.items()}}
    stands_for = ", ".join(f"{_toml(name)} = {_toml(other)}" for name, other in names.items())
    rest = [f"assumed = {_toml([*study.assumed, how])}", f"stands_for = {{ {stands_for} }}"]
    if study.baseline:
        rest.append(f"baseline = {_toml(str(tuned[study.baseline]))}")
    return "\n".join([*head, "recipes = [", *lines, "]", *rest, ""])


def _toml(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
