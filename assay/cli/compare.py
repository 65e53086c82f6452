"""The command `assay compare`."""

from __future__ import annotations

from pathlib import Path

from assay import examples, files
from assay._core import loops
from assay._core.arrays import InputError
from assay._core.writing import not_over
from assay.cli.inputs import STANDARD, ColumnNames, Everything, Threads, refuse_columns, refuse_group, short_names
from assay.cli.output import show
from assay.comparing import compare
from assay.predictions import Outcomes, Predictions
from assay.report import terminal


def compare_command(
    first: Path | None = None,
    second: Path | None = None,
    *,
    margin: float | None = None,
    columns: ColumnNames = STANDARD,
    json: Path | None = None,
    html: Path | None = None,
    everything: Everything = False,
    threads: Threads = None,
) -> None:
    """Say whether the second model is better calibrated or ranks its errors better than the first, on the same samples.

    Without files two embedded models are compared.

    Parameters
    ----------
    first
        Predictions of the model to compare with.
    second
        Predictions of the model in question.
    margin
        Call accuracies or AUROCs equivalent that are shown to differ by less than this; .005 is half a point.
    json
        Write all numbers to this file.
    html
        Write an interactive page to this file.
    """
    not_over(json, html, reading=[first, second])
    if first is None:
        refuse_columns(columns)
        show("No file given: these are two embedded models, a small ResNet on CIFAR-10.", "dim")
        loaded: dict[str, Predictions | Outcomes] = {name: examples.load(name) for name in examples.MODELS}
    elif second is None:
        raise InputError("compare needs two files of predictions, or none for the embedded example")
    else:
        refuse_group(columns)
        loaded = {name: files.read(file, columns) for name, file in short_names((first, second)).items()}
    (a, x), (b, y) = loaded.items()
    with loops.threads(threads):
        comparison = compare(x, y, margin=margin, names=(a, b))
    show(terminal.compare_view((a, b), comparison, everything=everything))
    if json is not None:
        from assay.report.jsons import write_json

        write_json(comparison, json)
    if html is not None:
        from assay.report.page import compare_page

        compare_page(loaded, comparison, html)
