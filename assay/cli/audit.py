"""The command `assay audit`."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from assay import examples, files
from assay._core import loops
from assay._core.arrays import InputError
from assay._core.writing import not_over
from assay.auditing import Audit, audit
from assay.cli.inputs import STANDARD, ColumnNames, Everything, Threads, refuse_columns, short_names
from assay.report import terminal


def audit_command(
    *predictions: Path,
    columns: ColumnNames = STANDARD,
    json: Path | None = None,
    html: Path | None = None,
    everything: Everything = False,
    seed: int = 0,
    threads: Threads = None,
) -> None:
    """Tell how far the confidence of one or several models can be trusted; without a file, of an embedded example.

    Parameters
    ----------
    predictions
        Files of predictions: .npz, .parquet or .csv.
    json
        Write all numbers to this file.
    html
        Write an interactive page to this file.
    seed
        Seed of the random draws of the noise floor.
    """
    if seed < 0:
        raise InputError(f"--seed must be 0 or more, got {seed}")
    not_over(json, html, reading=predictions)
    console = Console()
    loaded = {name: files.read(file, columns) for name, file in short_names(predictions).items()}
    if not loaded:
        refuse_columns(columns)
        console.print("No file given: this is the embedded example, a small ResNet on CIFAR-10.", style="dim")
        loaded = {"cross_entropy": examples.load()}
    audits: dict[str, Audit] = {}
    with loops.threads(threads), Console(stderr=True).status("") as status:
        for name, rows in loaded.items():
            status.update(f"auditing {name}")
            audits[name] = audit(rows, seed=seed)
    console.print(terminal.audit_view(audits, everything=everything))
    if json is not None:
        from assay.report.jsons import write_json

        write_json(audits, json)
    if html is not None:
        from assay.report.page import audit_page

        audit_page(loaded, audits, html)
