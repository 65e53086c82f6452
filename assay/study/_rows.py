"""Rows: one number each, in tidy long form, from the predictions of a run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa

from assay import files
from assay._core.arrays import Floats, InputError
from assay._core.writing import replacing
from assay.maps import Temperature, apply
from assay.metrics import evaluate
from assay.predictions import Outcomes, Predictions
from assay.scores import SCORES, outcomes_by
from assay.study._corrections import correction
from assay.study._named import Named
from assay.study._run import Run
from assay.study._scores import LEARNED, read_score
from assay.study._shifts import with_means
from assay.study._study import PLAIN, TEMPERATURE, Study

KEYS = ("data", "network", "method", "n_train", "learning_rate", "weight_decay", "seed")
SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("data", "network", "method")),
        ("n_train", pa.int64()),
        *((name, pa.float64()) for name in ("learning_rate", "weight_decay")),
        ("seed", pa.int64()),
        *((name, pa.string()) for name in ("split", "calibrator")),
        ("held_out", pa.int64()),
        *((name, pa.string()) for name in ("score", "metric")),
        ("value", pa.float64()),
    ]
)


def write_rows(study: Study, run: Run, folder: Path) -> None:
    """Compute every number of the run that the study asks for, unless they exist already."""
    if has_rows(study, folder):
        return
    found = with_means(_values(study, folder))
    if not found:
        raise InputError(f"of {', '.join(study.metrics)} nothing can be computed by the study's calibrators and scores")
    point = [getattr(run, name) for name in KEYS]
    columns = zip(*[(*point, *row) for row in found], strict=True)
    table = pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )
    with replacing(folder / rows_file(study)) as stream, pa.ipc.new_file(stream, SCHEMA) as file:
        file.write_table(table)


def has_rows(study: Study, folder: Path) -> bool:
    """Whether a run is done: the numbers that the study asks for exist and can be read."""
    return _read(folder / rows_file(study)) is not None


def read_rows(study: Study, folders: Sequence[Path]) -> pa.Table:
    """The rows of all finished runs, as one table."""
    file = rows_file(study)
    found = (_read(folder / file) for folder in folders)
    return pa.concat_tables([SCHEMA.empty_table(), *(table for table in found if table is not None)])


def rows_file(study: Study) -> str:
    """A file name that depends on the numbers asked for: studies that ask for others share the folder of a run."""
    names = ("calibrators", "scores", "shifts", "metrics", "held_out_sizes", "train_predictions")
    asked = json.dumps({name: getattr(study, name) for name in names})
    return f"rows.{sha256(asked.encode()).hexdigest()[:12]}.arrow"


def _read(file: Path) -> pa.Table | None:
    """The rows of a file; None if there is no file or it is damaged."""
    try:
        return pa.ipc.open_file(file.read_bytes()).read_all()
    except (OSError, pa.ArrowInvalid):
        return None


def _predictions(file: Path) -> Predictions:
    found = files.read(file)
    assert isinstance(found, Predictions)
    return found


def _values(study: Study, folder: Path) -> Iterator[tuple[str, str, int, str, str, float]]:
    """(split, calibrator, held-out samples, score, metric, value)."""
    held_out = _predictions(folder / "held_out.npz")
    splits = {name: _predictions(folder / f"{name}.npz") for name in ("test", *study.shifts)}
    learned = {s: read_score(s, folder, splits) or {} for s in study.scores_in_full if s.name in LEARNED}
    order = np.random.default_rng(0).permutation(len(held_out))
    for size in study.held_out_sizes:
        fit_on = held_out if size is None else held_out[order[:size]]  # smaller parts are within larger ones
        for calibrator in study.corrections:
            fitted = correction(calibrator, fit_on)
            for split, predictions in splits.items():
                mapping = fitted(predictions)
                after = predictions if mapping is None else apply(mapping, predictions)
                for score in study.scores_in_full:
                    column = learned[score][split] if score in learned else None
                    if column is not None and mapping is not None:
                        continue  # a learned score does not depend on the logits, so no map changes it
                    for metric, value in _measured(after, score, column, study.metrics):
                        yield split, str(calibrator), len(fit_on), str(score), metric, value
                if TEMPERATURE in study.metrics and isinstance(mapping, Temperature):
                    yield split, str(calibrator), len(fit_on), PLAIN, TEMPERATURE, mapping.t


def _measured(
    after: Predictions | Outcomes, score: Named, column: Floats | None, wanted: Sequence[str]
) -> Iterator[tuple[str, float]]:
    if column is not None:
        after = Outcomes.from_scores(column, after.outcomes().correct, is_probability=False)
    elif score.name != PLAIN:
        if isinstance(after, Outcomes):
            return  # a map of the confidence gives no other score
        after = outcomes_by(SCORES[score.name], after)
    values = evaluate(after)
    for metric in wanted:
        if metric in values:
            yield metric, values[metric]
