"""Rows: one number each, in tidy long form, from the predictions that a run has left."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from assay import files
from assay.calibrators import CALIBRATORS
from assay.files import replacing
from assay.maps import Map, apply
from assay.metrics import evaluate
from assay.predictions import Outcomes, Predictions
from assay.scores import SCORES, outcomes_by
from assay.study._run import Run
from assay.study._study import UNCHANGED, Study

FILE = "rows.parquet"
PLAIN = "max_probability"  # the score that maps of the confidence are about
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
    """Compute every number that the study asks of the run, unless just these are there already."""
    asked = _asked(study)
    if _computed(folder / FILE) == asked:
        return
    held_out = _predictions(folder / "held_out.npz")
    splits = {name: _predictions(folder / f"{name}.npz") for name in ("test", *study.shifts)}
    found = list(_values(study, held_out, splits))
    point = [getattr(run, name) for name in KEYS]
    columns = zip(*[(*point, *row) for row in found], strict=True)
    table = pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )
    with replacing(folder / FILE) as stream:
        pq.write_table(table.replace_schema_metadata({"asked": asked}), stream)


def read_rows(folders: Sequence[Path]) -> pa.Table:
    """The rows of all runs that have some, one table."""
    tables = [pq.read_table(folder / FILE, schema=SCHEMA) for folder in folders if (folder / FILE).is_file()]
    return pa.concat_tables(tables) if tables else SCHEMA.empty_table()


def _asked(study: Study) -> str:
    names = ("calibrators", "scores", "shifts", "metrics", "held_out_sizes")
    return json.dumps({name: getattr(study, name) for name in names})


def _computed(file: Path) -> str:
    """What the rows in a file were computed for; nothing where it cannot be read."""
    try:
        asked: bytes = (pq.read_schema(file).metadata or {}).get(b"asked", b"")
    except (OSError, pa.ArrowInvalid):
        return ""
    return asked.decode()


def _predictions(file: Path) -> Predictions:
    found = files.read(file)
    assert isinstance(found, Predictions)
    return found


def _values(
    study: Study, held_out: Predictions, splits: dict[str, Predictions]
) -> Iterator[tuple[str, str, int, str, str, float]]:
    """(split, calibrator, held-out samples, score, metric, value)."""
    for size in study.held_out_sizes:
        fit_on = held_out if size is None else held_out[:size]
        for name in study.calibrators:
            mapping = None if name == UNCHANGED else CALIBRATORS[name](fit_on)
            for split, predictions in splits.items():
                for score in study.scores:
                    for metric, value in _measured(mapping, predictions, score, study.metrics):
                        yield split, name, len(fit_on), score, metric, value


def _measured(
    mapping: Map | None, predictions: Predictions, score: str, wanted: Sequence[str]
) -> Iterator[tuple[str, float]]:
    after: Predictions | Outcomes = predictions if mapping is None else apply(mapping, predictions)
    if score != PLAIN:
        if isinstance(after, Outcomes):
            return  # a map of the confidence knows no other score
        after = outcomes_by(SCORES[score], after)
    values: dict[str, Any] = evaluate(after)
    for metric in wanted:
        if metric in values:
            yield metric, float(np.float64(values[metric]))
