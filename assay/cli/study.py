"""The commands `assay study ...`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter
from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table as Grid

from assay._core.arrays import InputError
from assay._core.lookup import needs
from assay._core.manifest import FAILED, delete, refuse_foreign
from assay._core.own_code import located
from assay._core.writing import not_over, replacing
from assay.cli.consent import agreed
from assay.cli.errors import INTERRUPTED
from assay.cli.output import console, show, working
from assay.cli.progress import watched
from assay.cli.report import RUNS, report_command, rows_command, say_left_out, study_tables, study_view
from assay.nn.names import Precision
from assay.report.quantities import heading, quantity
from assay.study import (
    DONE,
    Progress,
    Run,
    Study,
    Tuned,
    expand,
    own_code,
    read_study,
    rows_file,
    state,
    tune,
    tuned_study,
    why,
)

if TYPE_CHECKING:
    from assay.study import Cost

study_app = App(name="study", help="Run a study of many trainings, and report its results.", help_format="plaintext")
EXAMPLES = {
    "rows": "assay study rows study.toml --to rows.parquet",
    "report": "assay study report study.toml --to table.md --html study.html",
    "run": "assay study run study.toml --workers 2 --threads 1",
    "tune": "assay study tune study.toml --to tuned.toml --metric ece",
    "status": "assay study status study.toml",
    "check": "assay study check study.toml",
    "keep": "assay study keep study.toml --claims claims.toml --to kept",
    "clean": "assay study clean study.toml --failed-only",
}


def _example(name: str) -> str:
    return f"Example: {EXAMPLES[name]}"


study_app.command(rows_command, name="rows", help_epilogue=_example("rows"))
study_app.command(report_command, name="report", help_epilogue=_example("report"))


@Parameter(name="*")
@dataclass(frozen=True)
class Where:
    """Where to train the runs, and their folder.

    Parameters
    ----------
    out
        Folder of all runs.
    engine
        local: a process for each run; ray: a Ray task for each run (needs the extra ray).
    workers
        Runs at a time.
    threads
        Threads of each run; by default runs share the machine's. A run repeats exactly only on the same number.
    device
        cpu, cuda, mps or auto.
    precision
        Precision of weights and arithmetic.
    readers
        Processes of each run that read images from disk.
    gpus
        GPUs of each run, possibly a fraction; for Ray.
    address
        The Ray cluster, whose machines all see the folder `out`; by default a new one of this machine.
    allow_code
        Run the code that the study names as package.module:name; without it you are asked, once for the same code.
    """

    out: Path = RUNS
    engine: Literal["local", "ray"] = "local"
    workers: int = 1
    threads: int | None = None
    device: str = "auto"
    precision: Precision = "32-true"
    readers: int = 0
    gpus: float = 0
    address: str | None = None
    allow_code: Annotated[bool, Parameter(negative="")] = False

    def make_folder(self) -> None:
        """Make the folder of all runs, before the work; refuse a file, and a place where nothing can be written."""
        if self.out.exists() and not self.out.is_dir():
            raise InputError(f"{self.out} is a file; --out needs a folder")
        try:
            self.out.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise InputError(f"{self.out}: cannot be written: {problem.strerror or problem}") from problem
        if not os.access(self.out, os.W_OK):
            raise InputError(f"{self.out}: cannot be written: it is not writable")

    def run_all(self, study: Study, runs: Sequence[Run], show: Callable[[Progress], None]) -> Progress:
        """Train all runs that are not done."""
        from assay.nn.training import Hardware
        from assay.study import Cluster, run_local, run_ray

        if self.workers < 1:
            raise InputError(f"--workers must be at least 1, got {self.workers}")
        hardware = Hardware(self.device, self.precision, self.readers)
        common: dict[str, Any] = {"workers": self.workers, "threads": self.threads, "hardware": hardware}
        common |= {"allow_code": self.allow_code}
        if self.engine == "local":
            if self.gpus or self.address:
                raise InputError("--gpus and --address are for --engine ray")
            return run_local(study, runs, self.out, **common, show=show)
        return run_ray(study, runs, self.out, **common, cluster=Cluster(self.address, self.gpus), show=show)


DEFAULT_PLACE = Where()


@study_app.command(name="run", help_epilogue=_example("run"))
def run_command(
    file: Path,
    *,
    where: Where = DEFAULT_PLACE,
    only: str = "",
    kept: Path | None = None,
    retry: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Train every run of a study that is not done yet, and show the table; after Ctrl-C the same command continues.

    Parameters
    ----------
    file
        The study, a TOML file.
    only
        Only runs whose folder matches this pattern, such as digits/*/sam*.
    kept
        Leave out runs of which `assay study keep` has written the results to this folder, perhaps on another machine.
    retry
        Run failed runs again.
    """
    _needs_training()
    from assay.study import check

    study = read_study(file)
    runs = expand(study, only=only or "*")
    if not runs:
        raise InputError(f"no run of {study.name} fits '{only}'; a folder is, for instance, {expand(study)[0].folder}")
    already = _already_kept(runs, kept, file.stem)
    if already:
        show(f"{len(already)} runs are kept in {kept} and left out")
        runs = [run for run in runs if run not in already]
        if not runs:
            return 0
    where.make_folder()
    where = replace(where, allow_code=agreed(study, file, allow_code=where.allow_code))
    with working("checking the study"):
        check(study, only=only or "*", root=where.out, allow_code=where.allow_code)
    failed = [run for run in runs if state(study, where.out / run.folder) == "failed" and not retry]
    if failed:
        show(f"{len(failed)} runs failed before and are left out; --retry runs them again", "yellow")
    start = time.monotonic()
    try:
        with watched(study.name, where.workers) as follow:
            done = where.run_all(study, [run for run in runs if run not in failed], follow)
    except KeyboardInterrupt:
        show("stopped; the same command continues from here", "yellow")
        return INTERRUPTED
    show(f"{done.done} runs done, {len(done.failed)} failed, in {time.monotonic() - start:.0f} s")
    left_out = [*failed, *done.failed]
    _print_failures(left_out, where.out)
    if len(left_out) < len(runs):
        show(study_view(study_tables(study, runs, where.out), "best", console().width))
        say_left_out(study, runs, where.out)
    return 1 if left_out else 0


def _already_kept(runs: Sequence[Run], kept: Path | None, regime: str) -> list[Run]:
    if kept is None:
        return []
    from assay.claims import has_evidence, kept_already, read_evidence

    return kept_already(runs, read_evidence(kept, regime)) if has_evidence(kept, regime) else []


@study_app.command(name="tune", help_epilogue=_example("tune"))
def tune_command(
    file: Path,
    *,
    to: Path,
    where: Where = DEFAULT_PLACE,
    on: Literal["held_out", "test"] = "held_out",
    metric: str = "ece",
    give_up: float = 0.01,
    relative: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Choose the values of the hyper-parameters under [tune], one after the other, and write a study with them.

    Parameters
    ----------
    file
        The study.
    to
        The file to write: a study that extends this one, of the recipes with the chosen values.
    on
        Samples to choose on. Choosing on test, as wang2021 did, makes test figures better than they are.
    metric
        The metric to minimize.
    give_up
        How far accuracy may stay below the highest.
    relative
        --give-up is a share of the highest accuracy, not a difference of accuracies.
    """
    study = read_study(file)
    not_over(to, reading=[file])
    _needs_training()
    from assay.study import check

    where.make_folder()
    where = replace(where, allow_code=agreed(study, file, allow_code=where.allow_code))
    with working("checking the study"):
        check(study, root=where.out, allow_code=where.allow_code)
    try:
        with watched(f"tuning {study.name}", where.workers) as follow:

            def run_all(runs: Sequence[Run]) -> None:
                done = where.run_all(study, runs, follow)
                if done.failed:
                    folder = where.out / done.failed[0].folder
                    raise InputError(f"a run failed: {why(folder)}; {folder / FAILED} says more")

            tuned = tune(study, where.out, run_all, on=on, metric=metric, give_up=give_up, relative=relative)
    except KeyboardInterrupt:
        show("stopped; the same command continues from here", "yellow")
        return INTERRUPTED
    show(_trials(tuned, on, metric))
    with replacing(to) as stream:
        stream.write(tuned_study(study, file, tuned, to, on=on, metric=metric).encode())
    return 0


@study_app.command(name="status", help_epilogue=_example("status"))
def status_command(file: Path, *, out: Path = RUNS) -> None:
    """Count the runs that are done, failed, begun and waiting.

    Parameters
    ----------
    file
        The study.
    out
        Folder of all runs.
    """
    study = read_study(file)
    states = {run: state(study, out / run.folder) for run in expand(study)}
    for which in ("done", "failed", "begun", "waiting"):
        show(f"{list(states.values()).count(which):6d} {which}")
    _print_failures([run for run, which in states.items() if which == "failed"], out)


def _place(name: str, study: Study) -> str:
    """Code of the user's own with its file, if it is there."""
    try:
        return str(located(name, study.places))
    except InputError:
        return name


@study_app.command(name="check", help_epilogue=_example("check"))
def check_command(file: Path) -> int:
    """Say whether a study can run: its data exist, its networks fit them, each recipe can make a step.

    Parameters
    ----------
    file
        The study.
    """
    _needs_training()
    from assay.study import try_out

    study = read_study(file)
    with working("a step of each recipe"):
        tried = try_out(study)
    for problem in tried.problems:
        show(problem, "red")
    verdict = "something is missing" if tried.problems else "all can run"
    show(f"{file}: {len(expand(study))} runs, {verdict}")
    if tried.costs:
        show(f"  here, on one thread: {_costs(tried.costs)}")
    for name in own_code(study):
        show(f"  not tried: {_place(name, study)}", "dim")
    for value in study.assumed:
        show(f"  assumed: {value}", "dim")
    return 2 if tried.problems else 0


@study_app.command(name="keep", help_epilogue=_example("keep"))
def keep_command(file: Path, *, claims: Path, to: Path, out: Path = RUNS) -> None:
    """Keep what claims read from the finished runs of a study, in two small files named like the study file.

    What the files already hold of other runs stays, so runs can be trained on several machines.

    Parameters
    ----------
    file
        The study, which the claims name as a regime by its file name.
    claims
        The claims, a TOML file.
    to
        Folder to write to.
    out
        Folder of all runs.
    """
    from assay.claims import gather, has_evidence, joined, read_claims, read_evidence, write_evidence

    study, wanted = read_study(file), [claim for claim in read_claims(claims) if file.stem in claim.regime]
    if not wanted:
        raise InputError(f"{claims}: no claim names the regime '{file.stem}'")
    with working("reading the runs"):
        evidence = gather(study, out, wanted)
    if not evidence.numbers:
        raise InputError(f"no run of {study.name} is done under {out}")
    to.mkdir(parents=True, exist_ok=True)
    if has_evidence(to, file.stem):
        evidence = joined(study, read_evidence(to, file.stem), evidence)
    write_evidence(evidence, to, file.stem)
    runs = len({(number["method"], number["n_train"], number["seed"]) for number in evidence.numbers})
    size = sum(part.stat().st_size for part in to.glob(f"{file.stem}.*.parquet")) / 1e6
    show(f"{runs} of {len(expand(study))} runs kept, {size:.2g} MB")


@study_app.command(name="clean", help_epilogue=_example("clean"))
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
        Only failed runs; a run that failed after its training is kept, and its failure is forgotten.
    """
    study = read_study(file)
    folders = [out / run.folder for run in expand(study) if (out / run.folder).is_dir()]
    chosen = [folder for folder in folders if not failed_only or state(study, folder) == "failed"]
    trained = [folder for folder in chosen if failed_only and (folder / DONE).is_file()]
    shared = sum(any(file.name != rows_file(study) for file in folder.glob("rows.*.arrow")) for folder in chosen)
    kept = []
    for folder in chosen:
        refuse_foreign(folder, root=out)
        if folder in trained:
            (folder / FAILED).unlink()
        elif not delete(folder):
            kept.append(folder)
    show(f"{len(chosen) - len(trained)} runs deleted")
    for folder in kept:
        show(f"{folder} has other files too, which are kept", "yellow", soft_wrap=True)
    if trained:
        show(f"{len(trained)} were trained and are kept; their failure is forgotten")
    elif shared:
        show(f"{shared} of them were runs of other studies too", "yellow")


def _costs(costs: Sequence[Cost]) -> str:
    """All runs one after the other, as the trial steps suggest."""
    hours = sum(cost.runs * cost.seconds for cost in costs) / 3600
    long = f"{hours:.0f} hours" if hours < 72 else f"{hours / 24:,.0f} days"
    time = f"{60 * hours:.0f} minutes" if hours < 2 else long
    disk, memory = sum(cost.runs * cost.disk for cost in costs), max(cost.memory for cost in costs)
    return f"about {time}, {disk / 1e9:.2g} GB on disk, and at least {memory / 1e9:.2g} GB of memory for a run"


def _needs_training() -> None:
    needs("torch")
    needs("lightning")


def _print_failures(runs: Sequence[Run], out: Path) -> None:
    for run in runs:
        show(f"failed: {out / run.folder}: {why(out / run.folder)}", "red", soft_wrap=True)


def _trials(tuned: Tuned, on: str, metric: str) -> RenderableType:
    grid = Grid(box=SIMPLE_HEAD, pad_edge=False, title=f"chosen on {on}", title_justify="left")
    for head in ("data", "network", "parameter", "method", heading("accuracy"), heading(metric), ""):
        grid.add_column(head, overflow="fold", no_wrap=head in ("data", "network", "parameter"))
    for trial in tuned.trials:
        numbers = (quantity(m).unit.number(s.mean) for m, s in (("accuracy", trial.accuracy), (metric, trial.error)))
        grid.add_row(
            trial.data, trial.network, trial.parameter, str(trial.method), *numbers, "chosen" if trial.chosen else ""
        )
    return grid
