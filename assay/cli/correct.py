"""The commands `assay calibrate`, `threshold` and `export`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from rich.console import Console

from assay import files, maps
from assay._core.arrays import InputError
from assay._core.lookup import found
from assay.calibrators import CALIBRATORS, TOP_LABEL, cross_validated, rows_digest, shared_rows
from assay.comparing import compare
from assay.files import Columns, not_over
from assay.maps import Map
from assay.predictions import Outcomes, Predictions
from assay.report import jsons, terminal
from assay.thresholds import choose_threshold

Named = Annotated[Columns, Parameter(name="*")]


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
    no_group(columns)
    not_over(out, save, reading=[held_out, apply])
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
    no_group(columns)
    not_over(json, reading=[held_out, mapping])
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
    from assay.nn import deploy

    not_over(out, reading=[model, mapping])
    if threshold is not None and not 0 <= threshold <= 1:
        raise InputError(f"--threshold is a confidence, between 0 and 1; got {threshold}")
    loaded = maps.load(mapping)
    if model.is_dir():
        from assay.cli.train import kept_network

        network, samples = kept_network(model)
        deploy.export_onnx(network, loaded, out, example=samples, threshold=threshold, metadata={"run": model.name})
        n = len(samples)
    else:
        example = deploy.random_inputs(model)
        deploy.calibrate_onnx(model, loaded, out, example=example, output=output, threshold=threshold)
        n = len(next(iter(example.values())))
    Console().print(f"{out}: {loaded}; probabilities agree with torch on {n} inputs")


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


def no_group(columns: Columns) -> None:
    if columns.group is not None:
        raise InputError("only `assay audit` is broken down by --group")
