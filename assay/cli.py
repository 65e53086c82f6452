"""The command `assay`: errors are one line and exit code 2."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
from cyclopts import App, CycloptsError, Parameter
from rich.console import Console

import assay
from assay import examples, files, maps
from assay.arrays import InputError
from assay.auditing import Audit, audit
from assay.calibrators import CALIBRATORS, TOP_LABEL, cross_validated, rows_digest, shared_rows
from assay.comparing import compare
from assay.files import Columns
from assay.maps import Map
from assay.names import found
from assay.predictions import Outcomes, Predictions
from assay.report import jsons, page, terminal
from assay.selective import choose_threshold

app = App(name="assay", help=assay.__doc__, version=assay.__version__, help_format="plaintext")
app.command("assay.cli_train:train_command", name="train", help="Train a network and write its predictions.")
app.command("assay.cli_study:study_app", name="study", help="Run a study of many trainings, and tabulate it.")
Named = Annotated[Columns, Parameter(name="*")]
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
    _not_over(json, html, reading=predictions)
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
    _not_over(json, html, reading=[first, second])
    console = Console()
    if first is None:
        _no_columns(columns)
        console.print("No file given: these are two embedded models, a small ResNet on CIFAR-10.", style="dim")
        loaded: dict[str, Predictions | Outcomes] = {name: examples.load(name) for name in examples.MODELS}
    elif second is None:
        raise InputError("compare needs two files of predictions, or none for the embedded example")
    else:
        _no_group(columns)
        loaded = {name: files.read(file, columns) for name, file in _names((first, second)).items()}
    (a, x), (b, y) = loaded.items()
    comparison = compare(x, y, names=(a, b))
    console.print(terminal.compare_view((a, b), comparison, everything=everything))
    if json is not None:
        jsons.write_json(comparison, json)
    if html is not None:
        page.compare_page(loaded, comparison, html)


@app.command(name="calibrate")
def calibrate_command(
    held_out: Path,
    *,
    method: str = "temperature",
    apply: Path | None = None,
    out: Path | None = None,
    save: Path | None = None,
    columns: Named = Columns(),  # noqa: B008 (frozen)
    in_sample: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Fit a calibrator on held-out predictions, and say what it does to calibration and to ranking.

    It is judged on the test set, or without one by cross-validation.

    Parameters
    ----------
    held_out
        Predictions to fit on.
    method
        A calibrator (`assay list calibrators`), or `all` for a table of them all.
    apply
        Predictions of a test set, to apply the map to and to judge it on.
    out
        Write the calibrated test predictions to this file.
    save
        Write the map to this file, as JSON.
    in_sample
        Judge the map even on rows that it was fitted on.
    """
    _no_group(columns)
    _not_over(out, save, reading=[held_out, apply])
    fit_on = files.read(held_out, columns)
    test = None if apply is None else _in_order(files.read(apply, columns), _classes(fit_on))
    chosen = _calibrators(method, fit_on)
    if out is not None and test is None:
        raise InputError("--out needs --apply, the predictions to calibrate")
    if len(chosen) > 1 and (out is not None or save is not None):
        raise InputError("--out and --save need one method, not all")
    shared = 0 if test is None or in_sample else shared_rows(fit_on, test)
    if test is not None and shared > len(test) / 100:
        raise InputError(f"{shared} of {len(test)} test rows were fitted on; judge on others, or say --in-sample")
    before = fit_on if test is None else test
    judged, refused = {}, {}
    with Console(stderr=True).status("") as status:
        for name, calibrator in chosen.items():
            status.update(f"fitting {name}")
            try:
                mapping = calibrator(fit_on)
                after = cross_validated(fit_on, calibrator) if test is None else maps.apply(mapping, test)
            except InputError as problem:
                if len(chosen) == 1:
                    raise
                refused[name] = str(problem)
                continue
            whole = isinstance(before, Predictions) and isinstance(after, Predictions)  # with the class 1 of two
            judged[name] = (mapping, compare(before, after) if whole else compare(before.outcomes(), after.outcomes()))
    if not judged:
        raise InputError(f"these rows allow none of the calibrators; {', '.join(map(': '.join, refused.items()))}")
    if save is not None:
        fit = replace(mapping.fit, rows=rows_digest(fit_on), classes=_classes(fit_on))
        maps.save(replace(mapping, fit=fit), save)
    if out is not None:
        files.write(after, out)
    judged_on = f"{len(before):,} rows, " + ("by cross-validation" if test is None else "of the test set")
    Console().print(terminal.calibrators_view(judged, judged_on, refused, in_folds=test is None))


@app.command(name="threshold")
def threshold_command(
    held_out: Path,
    *,
    risk: float | None = None,
    coverage: float | None = None,
    error_cost: float | None = None,
    level: float = 0.95,
    mapping: Annotated[Path | None, Parameter(name="--map")] = None,
    columns: Named = Columns(),  # noqa: B008 (frozen)
    in_sample: Annotated[bool, Parameter(negative="")] = False,
    json: Path | None = None,
) -> None:
    """Choose the confidence above which answers are accepted, with a guarantee on the errors among them.

    Parameters
    ----------
    held_out
        Predictions that neither the model nor the map were fitted on.
    risk
        At most this share of errors among the accepted; .01 where nothing else is asked for.
    coverage
        Accept this share of inputs instead.
    error_cost
        Or weigh: an accepted error costs as much as this many reviews.
    level
        How sure the bound must be.
    mapping
        A map to apply first, as `assay calibrate --save` writes it.
    in_sample
        Go on even if the map was fitted on these very rows: the bound is then too good.
    json
        Write the threshold and its figures to this file.
    """
    _no_group(columns)
    _not_over(json, reading=[held_out, mapping])
    rows = files.read(held_out, columns)
    if mapping is not None:
        loaded = maps.load(mapping)
        rows = _in_order(rows, loaded.fit.classes)
        if loaded.fit.rows == rows_digest(rows) and not in_sample:
            raise InputError(f"{mapping} was fitted on these very rows; the bound needs others, or say --in-sample")
        rows = maps.apply(loaded, rows)
    found = choose_threshold(rows, risk=risk, coverage=coverage, error_cost=error_cost, confidence=level)
    Console().print(terminal.threshold_view(found))
    if json is not None:
        jsons.write_json(found, json)


@app.command(name="export")
def export_command(
    model: Path,
    *,
    mapping: Annotated[Path, Parameter(name="--map")],
    out: Path,
    threshold: float | None = None,
    output: str | None = None,
) -> None:
    """Put a model, a map and a threshold into one ONNX file, and check the result before it is written.

    Parameters
    ----------
    model
        An ONNX file that gives logits, or the folder of a run of `assay train` or `assay study`.
    mapping
        A map, as `assay calibrate --save` writes it.
    out
        The file to write.
    threshold
        Accept what is at least this confident; without it everything is.
    output
        The name of the logits, if the model has several outputs.
    """
    from assay import deploy

    _not_over(out, reading=[model, mapping])
    if threshold is not None and not 0 <= threshold <= 1:
        raise InputError(f"--threshold is a confidence, between 0 and 1; got {threshold}")
    loaded = maps.load(mapping)
    if model.is_dir():
        from assay.cli_train import kept_network

        network, samples = kept_network(model)
        deploy.export_onnx(network, loaded, out, example=samples, threshold=threshold, metadata={"run": model.name})
        n = len(samples)
    else:
        example = deploy.random_inputs(model)
        deploy.calibrate_onnx(model, loaded, out, example=example, output=output, threshold=threshold)
        n = len(next(iter(example.values())))
    Console().print(f"{out}: {loaded}; probabilities agree with torch on {n} inputs")


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
    from assay.data import DATA
    from assay.networks import NETWORKS
    from assay.recipes import ABOUT
    from assay.scores import SCORES

    if what == "recipes":
        return ABOUT
    tables: dict[str, dict[str, Any]] = {
        "calibrators": CALIBRATORS,
        "networks": NETWORKS,
        "data": DATA,
        "scores": SCORES,
    }
    return {name: (found.__doc__ or "").splitlines()[0] for name, found in tables[what].items()}


def _calibrators(method: str, held_out: Predictions | Outcomes) -> dict[str, Callable[[Any], Map]]:
    """The calibrators meant."""
    allowed = CALIBRATORS if isinstance(held_out, Predictions) else TOP_LABEL
    if method == "all":
        return dict(allowed)
    found("calibrator", method, CALIBRATORS)
    if method not in allowed:
        raise InputError(f"{method} needs the logits of all classes; confidences allow {', '.join(allowed)}")
    return {method: CALIBRATORS[method]}


def _classes(rows: Predictions | Outcomes) -> tuple[str, ...] | None:
    return rows.classes if isinstance(rows, Predictions) else None


def _in_order(rows: Predictions | Outcomes, classes: tuple[str, ...] | None) -> Predictions | Outcomes:
    """With the classes where the map has them, whatever their order in the file; without names they go by number."""
    if classes is None or not isinstance(rows, Predictions) or rows.classes is None:
        return rows
    return rows.in_order(classes)


def _not_over(*written: Path | None, reading: Iterable[Path | None]) -> None:
    """Refuse to write over what is read, or two things to one file."""
    taken = {path.resolve() for path in reading if path is not None}
    for path in written:
        if path is not None:
            if path.resolve() in taken:
                raise InputError(f"{path} is read or written already; give what is written a name of its own")
            taken.add(path.resolve())


def _no_group(columns: Columns) -> None:
    if columns.group is not None:
        raise InputError("only `assay audit` is broken down by --group")


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
