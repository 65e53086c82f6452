"""The command `assay recheck`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
from cyclopts import Parameter
from rich.text import Text

from assay import files, maps
from assay._core import loops
from assay._core.arrays import Floats, InputError
from assay._core.writing import not_over
from assay._matching import in_order
from assay.calibrators import rows_digest
from assay.cli.inputs import STANDARD, ColumnNames, Threads, refuse_group
from assay.cli.output import show
from assay.files import Unlabelled
from assay.maps import ConfidenceMap, Map
from assay.predictions import Outcomes
from assay.rechecking import Drift, Recheck, confidence_drift, recheck
from assay.report.jsons import write_json
from assay.thresholds import PositiveThreshold, Threshold, load_threshold, threshold_under


def recheck_command(
    new: Path,
    *,
    threshold: Path,
    mapping: Annotated[Path | None, Parameter(name="--map")] = None,
    columns: ColumnNames = STANDARD,
    unlabelled: Annotated[bool, Parameter(negative="")] = False,
    json: Path | None = None,
    threads: Threads = None,
) -> None:
    """Say whether a threshold keeps its promise on new rows, and whether it is time to recalibrate.

    Example: assay recheck new.parquet --map map.json --threshold threshold.json

    Parameters
    ----------
    new
        Predictions made since the threshold was chosen.
    threshold
        The threshold, as `assay threshold --json` writes it.
    mapping
        The map that was applied before the threshold was chosen.
    unlabelled
        The new rows have no labels: check only whether the confidence has drifted.
    json
        Write what is found to this file.
    """
    refuse_group(columns)
    not_over(json, reading=[new, threshold, mapping])
    chosen = load_threshold(threshold)
    loaded = None if mapping is None else maps.load(mapping)
    threshold_under(loaded, chosen)
    with loops.threads(threads):
        if unlabelled:
            read = files.read_unlabelled(new, columns)
            decided, known = _decided_by(read, loaded, chosen), read.is_probability or loaded is not None
            unjudged = np.zeros(len(decided), dtype=bool)
            rows = Outcomes(decided, unjudged, is_probability=known, weights=read.weights, cluster=read.cluster)
            found: Drift | Recheck = confidence_drift(rows, chosen)
        else:
            labelled = in_order(files.read(new, columns), None if loaded is None else loaded.fit.classes)
            if loaded is not None and loaded.fit.rows == rows_digest(labelled):
                raise InputError(f"{mapping} was fitted on these very rows; a check needs new ones")
            found = recheck(labelled if loaded is None else maps.apply(loaded, labelled), chosen)
    show(Text(_words(found, new, mapping)))
    if json is not None:
        write_json(found, json)


def _decided_by(rows: Unlabelled, mapping: Map | None, threshold: Threshold | PositiveThreshold) -> Floats:
    """The confidence after the map, or the probability of class 1, that the threshold is compared with."""
    values = rows.values
    if values.ndim == 2:
        known = None if mapping is None else mapping.fit.classes
        order = [rows.classes.index(name) for name in known] if known and rows.classes else slice(None)
        answers = maps.answer(mapping, values[:, order])
        if isinstance(threshold, Threshold):
            return answers.confidence
        if values.shape[1] == 2:
            return np.where(answers.label == 1, answers.confidence, 1 - answers.confidence)
    if not isinstance(threshold, Threshold):
        raise InputError("the threshold is one of class 1, and needs predictions of two classes")
    for part in maps.parts(mapping):
        if not isinstance(part, ConfidenceMap):
            raise InputError(f"{type(part).__name__} needs the logits of all classes; these are only confidences")
        maps.refuse_other_scores(part, rows.is_probability)
        values = part(values)
    return values


def _words(found: Recheck | Drift, new: Path, mapping: Path | None) -> str:
    """The verdict and the next command."""
    if isinstance(found, Drift):
        return f"{found}\n{found.expected_accuracy}"
    before = found.drift.before
    mapped = "" if mapping is None else f" --map {mapping}"
    steps = []
    if found.recalibrate:
        steps.append(f"next: assay calibrate {new} --save new_map.json")
        mapped = " --map new_map.json"
    if found.promise == "broken":
        rows = "OTHER_NEW_ROWS" if found.recalibrate else new
        goal = f"--risk {before.guaranteed_risk:.4g}"
        if isinstance(before, PositiveThreshold):
            goal = f"--{before.goal} {before.promised:.4g}"
        level = f"--level {before.confidence:.4g}"
        steps.append(f"next: assay threshold {rows}{mapped} {goal} {level} --json threshold.json")
    return "\n".join([str(found), *steps])
