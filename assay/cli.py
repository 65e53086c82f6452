"""The command `assay`: errors are one line and exit code 2."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, CycloptsError, Parameter
from rich.console import Console

import assay
from assay import examples, files
from assay.arrays import InputError
from assay.auditing import Audit, audit
from assay.comparing import compare
from assay.files import Columns
from assay.predictions import Outcomes, Predictions
from assay.report import jsons, terminal

app = App(name="assay", help=assay.__doc__, version=assay.__version__, help_format="plaintext")
Named = Annotated[Columns, Parameter(name="*")]


@app.command(name="audit")
def audit_command(
    *predictions: Path,
    columns: Named = Columns(),  # noqa: B008 (frozen)
    json: Path | None = None,
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
    everything
        Print every metric, not only the most used.
    seed
        Of the draws behind the noise floor.
    """
    console = Console()
    loaded = {name: files.read(file, columns) for name, file in _names(predictions).items()}
    if not loaded:
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


@app.command(name="compare")
def compare_command(
    first: Path | None = None,
    second: Path | None = None,
    *,
    columns: Named = Columns(),  # noqa: B008 (frozen)
    json: Path | None = None,
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
    everything
        Print every metric, not only the most used.
    """
    console = Console()
    if first is None:
        console.print("No file given: these are two embedded models, a small ResNet on CIFAR-10.", style="dim")
        loaded: dict[str, Predictions | Outcomes] = {name: examples.load(name) for name in examples.MODELS}
    elif second is None:
        raise InputError("compare needs two files of predictions, or none for the embedded example")
    else:
        loaded = {name: files.read(file, columns) for name, file in _names((first, second)).items()}
    (a, x), (b, y) = loaded.items()
    comparison = compare(x, y)
    console.print(terminal.compare_view((a, b), comparison, everything=everything))
    if json is not None:
        jsons.write_json(comparison, json)


@app.command(name="list")
def list_command(what: Literal["metrics"]) -> None:
    """Explain what there is, a line each.

    Parameters
    ----------
    what
        What to list.
    """
    Console().print({"metrics": terminal.metrics_view}[what]())


def _names(paths: tuple[Path, ...]) -> dict[str, Path]:
    """Short names for the files: their stems, or where two are equal the whole paths."""
    stems = [path.stem for path in paths]
    if len(set(paths)) < len(paths):
        raise InputError("the same file is given twice")
    return dict(zip(stems if len(set(stems)) == len(stems) else map(str, paths), paths, strict=True))


def main() -> None:
    """Run the command; wrong input or usage is one line on stderr and exit code 2."""
    try:
        app(sys.argv[1:], print_error=False, exit_on_error=False)
    except (InputError, CycloptsError) as problem:
        print(f"assay: {' '.join(str(problem).split())}", file=sys.stderr)
        sys.exit(2)
