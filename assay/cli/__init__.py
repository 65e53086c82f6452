"""The command `assay`: errors are one line and exit code 2."""

from __future__ import annotations

import os
import sys
import warnings
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
from cyclopts import App, CycloptsError, Parameter
from rich.console import Console

import assay
from assay import examples, files
from assay._core import loops
from assay._core.arrays import InputError
from assay.auditing import Audit, audit
from assay.calibrators import CALIBRATORS
from assay.cli.correct import Named, calibrate_command, export_command, no_group, threshold_command
from assay.comparing import compare
from assay.files import Columns, not_over
from assay.predictions import Outcomes, Predictions
from assay.report import jsons, page, terminal

VERSION = f"{assay.__version__}, {'with' if loops.AVAILABLE else 'without'} compiled loops"
app = App(name="assay", help=assay.__doc__, version=VERSION, help_format="plaintext")
app.command("assay.cli.train:train_command", name="train", help="Train a network and write its predictions.")
app.command("assay.cli.study:study_app", name="study", help="Run a study of many trainings, and tabulate it.")
app.command(calibrate_command, name="calibrate")
app.command(threshold_command, name="threshold")
app.command(export_command, name="export")
EXTRAS = {
    **dict.fromkeys(("onnx", "onnxruntime", "onnxscript"), "onnx"),
    **dict.fromkeys(("lightning", "PIL", "sklearn"), "train"),
    "matplotlib": "figures",
    "datasets": "hub",
    "ray": "ray",
}


@app.command(name="audit")
def audit_command(
    *predictions: Path,
    columns: Named = Columns(),  # noqa: B008 (frozen)
    json: Path | None = None,
    html: Path | None = None,
    everything: Annotated[bool, Parameter(name="--all", negative="")] = False,
    seed: int = 0,
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
    everything
        Print every metric, not only the most used.
    seed
        Of the draws behind the noise floor.
    """
    if seed < 0:
        raise InputError(f"--seed must be 0 or more, got {seed}")
    not_over(json, html, reading=predictions)
    console = Console()
    loaded = {name: files.read(file, columns) for name, file in _names(predictions).items()}
    if not loaded:
        _no_columns(columns)
        console.print("No file given: this is the embedded example, a small ResNet on CIFAR-10.", style="dim")
        loaded = {"cross_entropy": examples.load()}
    audits: dict[str, Audit] = {}
    with Console(stderr=True).status("") as status:
        for name, found in loaded.items():
            status.update(f"auditing {name}")
            audits[name] = audit(found, seed=seed)
    console.print(terminal.audit_view(audits, everything=everything))
    if json is not None:
        jsons.write_json(audits, json)
    if html is not None:
        page.audit_page(loaded, audits, html)


@app.command(name="compare")
def compare_command(
    first: Path | None = None,
    second: Path | None = None,
    *,
    columns: Named = Columns(),  # noqa: B008 (frozen)
    json: Path | None = None,
    html: Path | None = None,
    everything: Annotated[bool, Parameter(name="--all", negative="")] = False,
) -> None:
    """Say whether the second model is better calibrated or ranks its errors better than the first, on the same samples.

    Without files two embedded models are compared.

    Parameters
    ----------
    first
        Predictions of the model to compare with.
    second
        Predictions of the model in question.
    json
        Write all numbers to this file.
    html
        Write an interactive page to this file.
    everything
        Print every metric, not only the most used.
    """
    not_over(json, html, reading=[first, second])
    console = Console()
    if first is None:
        _no_columns(columns)
        console.print("No file given: these are two embedded models, a small ResNet on CIFAR-10.", style="dim")
        loaded: dict[str, Predictions | Outcomes] = {name: examples.load(name) for name in examples.MODELS}
    elif second is None:
        raise InputError("compare needs two files of predictions, or none for the embedded example")
    else:
        no_group(columns)
        loaded = {name: files.read(file, columns) for name, file in _names((first, second)).items()}
    (a, x), (b, y) = loaded.items()
    comparison = compare(x, y, names=(a, b))
    console.print(terminal.compare_view((a, b), comparison, everything=everything))
    if json is not None:
        jsons.write_json(comparison, json)
    if html is not None:
        page.compare_page(loaded, comparison, html)


@app.command(name="list")
def list_command(what: Literal["metrics", "calibrators", "recipes", "networks", "data", "scores"]) -> None:
    """Explain what there is, a line each.

    Parameters
    ----------
    what
        What to list.
    """
    Console().print(terminal.metrics_view() if what == "metrics" else terminal.lines_view(what, _lines(what)))


def _lines(what: str) -> dict[str, str]:
    from assay.nn.data import DATA
    from assay.nn.networks import NETWORKS
    from assay.nn.recipes import ABOUT
    from assay.scores import SCORES
    from assay.study import FITTED, LEARNED, ON_TEST

    if what == "recipes":
        return ABOUT
    tables: dict[str, dict[str, Any]] = {
        "calibrators": {**FITTED, **ON_TEST},
        "networks": NETWORKS,
        "data": DATA,
        "scores": {**SCORES, **LEARNED},
    }
    lines = {name: (found.__doc__ or "").splitlines()[0] for name, found in tables[what].items()}
    only = {name for name in lines if what == "calibrators" and name not in CALIBRATORS}
    return {name: line + (" In studies only." if name in only else "") for name, line in lines.items()}


def _no_columns(columns: Columns) -> None:
    if columns != Columns():
        raise InputError("columns are named but no file is given")


def _names(paths: tuple[Path, ...]) -> dict[str, Path]:
    """Short names for the files: their stems, or where two are equal the whole paths."""
    stems = [path.stem for path in paths]
    if len(set(paths)) < len(paths):
        raise InputError("the same file is given twice")
    return dict(zip(stems if len(set(stems)) == len(stems) else map(str, paths), paths, strict=True))


def main() -> None:
    """Run the command; wrong input or usage is one line on stderr and exit code 2."""
    warnings.formatwarning = lambda message, *_, **__: f"assay: {message}\n"
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # an arrow that the terminal cannot show is no reason to fail
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)  # rows are worked through in cache-sized pieces, too small for threads to share
    try:
        app(sys.argv[1:], print_error=False, exit_on_error=False)
    except (InputError, CycloptsError) as problem:
        print(f"assay: {' '.join(str(problem).split())}", file=sys.stderr)
        sys.exit(2)
    except ModuleNotFoundError as missing:
        if missing.name not in EXTRAS:
            raise
        print(f"assay: this needs {missing.name}: pip install 'assay-ml[{EXTRAS[missing.name]}]'", file=sys.stderr)
        sys.exit(2)
