"""The command `assay compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from assay import examples, files
from assay._core import loops
from assay._core.arrays import InputError
from assay._core.writing import not_over
from assay.cli.advice import advise
from assay.cli.compare_files import compare_files
from assay.cli.inputs import (
    STANDARD,
    ColumnNames,
    Everything,
    Threads,
    refuse_among,
    refuse_columns,
    refuse_group,
    short_names,
)
from assay.cli.output import show
from assay.comparing import Comparison, common_rows, compare_all
from assay.files import Columns
from assay.metrics import COMPARED
from assay.predictions import Outcomes, Predictions
from assay.report import terminal
from assay.report.ranks import comparisons_view
from assay.report.summaries import exactness_of
from assay.scale import Tally, is_sharded


def compare_command(
    *predictions: Path,
    margin: float | None = None,
    common: Annotated[bool, Parameter(negative="")] = False,
    columns: ColumnNames = STANDARD,
    json: Path | None = None,
    html: Path | None = None,
    everything: Everything = False,
    threads: Threads = None,
) -> None:
    """Say whether the second model is better calibrated or ranks its errors better than the first, on the same samples.

    Of more models, each is compared with the first. Without files two embedded models are compared.

    Example: assay compare old.npz new.npz --html compare.html

    Parameters
    ----------
    predictions
        Predictions of the model to compare with, then of those in question. Two folders, patterns in quotes or
        addresses are counted in memory that does not grow; where both have the same files with the same rows, these
        are paired file by file.
    margin
        Call accuracies or error AUROCs equivalent that are shown to differ by less than this; .005 is half a point.
    common
        Compare on the rows whose ids all files have.
    json
        Write all numbers to this file.
    html
        Write an interactive page to this file.
    """
    not_over(json, html, reading=list(predictions))
    refuse_among(json, html, reading=predictions)
    if html is not None and len(predictions) > 2:
        raise InputError("--html shows two models; compare the first with one of the others")
    loaded: dict[str, Predictions | Outcomes] | dict[str, Tally]
    with loops.threads(threads):
        if any(map(is_sharded, predictions)):
            loaded, compared = _counted(predictions, columns, margin, common)
        else:
            loaded, compared = _read(predictions, columns, margin, common)
    first = next(iter(loaded))
    if len(compared) == 1:
        [(second, comparison)] = compared.items()
        show(terminal.compare_view((first, second), comparison, everything=everything))
        keys = [key for key in comparison.differences if everything or COMPARED[key].headline]
        for line in exactness_of(loaded, keys):
            show(line, "dim")
    else:
        show(comparisons_view(first, compared))
    if json is not None:
        from assay.report.jsons import write_json

        write_json(comparison if len(compared) == 1 else compared, json)
    if html is not None:
        from assay.report.page import compare_page

        compare_page(loaded, comparison, html)
    if predictions:
        advise("audit", predictions[-1], "--html", "audit.html", columns=columns)


def _read(
    predictions: tuple[Path, ...], columns: Columns, margin: float | None, common: bool
) -> tuple[dict[str, Predictions | Outcomes], dict[str, Comparison]]:
    loaded = _loaded(predictions, columns)
    if common:
        loaded = _common(loaded)
    return loaded, compare_all(loaded, margin=margin)


def _counted(
    predictions: tuple[Path, ...], columns: Columns, margin: float | None, common: bool
) -> tuple[dict[str, Tally], dict[str, Comparison]]:
    refuse_group(columns)
    if common:
        raise InputError("--common needs the rows, in one file of each model")
    tallies, comparison = compare_files(short_names(predictions), columns, margin)
    return tallies, {list(tallies)[-1]: comparison}


def _loaded(files_given: tuple[Path, ...], columns: Columns) -> dict[str, Predictions | Outcomes]:
    if not files_given:
        refuse_columns(columns)
        show("No file given: these are two embedded models, a small ResNet on CIFAR-10.", "dim")
        return {name: examples.load(name) for name in examples.MODELS}
    if len(files_given) == 1:
        raise InputError("compare needs two files of predictions or more, or none for the embedded example")
    refuse_group(columns)
    return {name: files.read(file, columns) for name, file in short_names(files_given).items()}


def _common(loaded: dict[str, Predictions | Outcomes]) -> dict[str, Predictions | Outcomes]:
    shared = common_rows(loaded)
    sizes = ", ".join(f"{len(rows):,} of {name}" for name, rows in loaded.items())
    show(f"{len(next(iter(shared.values()))):,} rows are in all files ({sizes}).", "bold")
    return shared
