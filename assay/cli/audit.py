"""The command `assay audit`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from assay import examples, files
from assay._core import loops
from assay._core.arrays import InputError
from assay._core.writing import not_over
from assay.auditing import Audit, audit, calibrated
from assay.cli.advice import advise, command
from assay.cli.inputs import STANDARD, ColumnNames, Everything, Threads, refuse_columns, short_names
from assay.files import Columns
from assay.metrics import METRICS
from assay.predictions import Outcomes, Predictions
from assay.report import terminal
from assay.scale import Tally, is_sharded, tally


def audit_command(
    *predictions: Path,
    columns: ColumnNames = STANDARD,
    json: Path | None = None,
    html: Path | None = None,
    show: str | None = None,
    everything: Everything = False,
    seed: int = 0,
    threads: Threads = None,
) -> None:
    """Tell how far the confidence of one or several models can be trusted; without a file, of an embedded example.

    Parameters
    ----------
    predictions
        Files of predictions: .npz, .parquet or .csv. A folder, or a pattern in quotes ('shards/*.parquet'), is one
        model in many files: they are read chunk by chunk, in memory that does not grow with them.
    json
        Write all numbers to this file.
    html
        Write an interactive page to this file.
    show
        Column of texts, or of names of image files, which the page shows beside the mistakes.
    seed
        Seed of the random draws of the noise floor.
    """
    if seed < 0:
        raise InputError(f"--seed must be 0 or more, got {seed}")
    if show is not None and (html is None or columns.ignore is not None or columns.unanswered == "drop"):
        raise InputError("--show is for the page of --html, of a file whose rows are all used")
    not_over(json, html, reading=predictions)
    console = Console()
    loaded: dict[str, Predictions | Outcomes] = {}
    tallies: dict[str, Tally] = {}
    with loops.threads(threads):
        for name, file in short_names(predictions).items():
            if is_sharded(file):
                _refuse_what_needs_rows(file, columns, html)
                tallies[name] = tally(file, columns)
            else:
                loaded[name] = files.read(file, columns)
    if not predictions:
        refuse_columns(columns)
        console.print("No file given: this is the embedded example, a small ResNet on CIFAR-10.", style="dim")
        loaded = {"cross_entropy": examples.load()}
    audits: dict[str, Audit] = {}
    with loops.threads(threads), Console(stderr=True).status("") as status:
        for name, rows in (loaded | tallies).items():
            status.update(f"auditing {name}")
            audits[name] = audit(rows, seed=seed)
    console.print(terminal.audit_view(audits, everything=everything, width=console.width))
    for name in tallies:
        console.print(f"{name}: {_exactness(audits[name])}", style="dim")
    if json is not None:
        from assay.report.jsons import write_json

        write_json(audits, json)
    if html is not None:
        from assay.report.page import audit_page

        given = short_names(predictions)
        commands = {
            name: command("threshold", file, columns=replace(columns, group=None)) for name, file in given.items()
        }
        samples = {} if show is None else {name: _samples(file, show, columns) for name, file in given.items()}
        audit_page(loaded, audits, html, commands=commands, show=samples)
    if len(predictions) == 1:
        _advise(console, audits, predictions[0], columns)


def _samples(file: Path, show: str, columns: Columns) -> Callable[[int], str]:
    from assay.report.page import shown_by

    return shown_by(files.read_column(file, show, columns), file.parent)


def _advise(console: Console, audits: dict[str, Audit], file: Path, columns: Columns) -> None:
    """Correct what is miscalibrated; of the rest choose a threshold."""
    [found] = audits.values()
    off = found.tables is not None and calibrated(found.tables) is False
    columns = replace(columns, group=None)
    if off:
        advise(console, "calibrate", file, "--method", "auto", "--save", "map.json", columns=columns)
    else:
        advise(console, "threshold", file, "--risk", "0.01", "--json", "threshold.json", columns=columns)


def _refuse_what_needs_rows(file: Path, columns: Columns, html: Path | None) -> None:
    for flag, given in (("--group", columns.group), ("--weight", columns.weight), ("--html", html)):
        if given is not None:
            raise InputError(f"{file}: is summarized, and {flag} needs the rows; give a file instead of a folder")


def _exactness(found: Audit) -> str:
    """How far the numbers of a summary can be from those of the rows."""
    off = {key: m.bound for key, m in found.measurements.items() if m.bound and METRICS[key].headline}
    if not off:
        return "every number is exact."
    return "read on a grid of confidence; off by at most " + ", ".join(f"{x:.1g} ({key})" for key, x in off.items())
