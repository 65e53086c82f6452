"""Rows: one number each, in tidy long form, from the predictions of a run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa

from assay import files, scores
from assay._core.arrays import Floats, InputError
from assay._core.manifest import intact, recording
from assay._core.own_code import digests
from assay._core.variants import Value, Variant, written
from assay._core.writing import replacing
from assay.maps import Temperature, apply
from assay.metrics import known_metric, tables
from assay.predictions import Outcomes, Predictions
from assay.scores import outcomes_by
from assay.study._consent import names_of_rows
from assay.study._corrections import correction
from assay.study._run import Run
from assay.study._scores import LEARNED, PROBABILITIES, read_score
from assay.study._shifts import Measured, corruption_and_severity, with_means
from assay.study._study import TEMPERATURE, USUAL_SCORE, Study

RUN_AXES = ("data", "network", "n_train", "learning_rate", "weight_decay", "seed")
TEXT, NUMBER, COUNT = pa.string(), pa.float64(), pa.int64()
SCHEMA = pa.schema(
    {
        **dict.fromkeys(("data", "network", "method", "recipe", "setup"), TEXT),
        "n_train": COUNT,
        "learning_rate": NUMBER,
        "weight_decay": NUMBER,
        "seed": COUNT,
        "split": TEXT,
        "corruption": TEXT,
        "severity": COUNT,
        "calibrator": TEXT,
        "calibrator_name": TEXT,
        "held_out": COUNT,
        "score": TEXT,
        "score_name": TEXT,
        "metric": TEXT,
        "value": NUMBER,
    }
)
"""The columns that all rows have; hyper-parameters add more, named by `method_columns` and `variant_columns`."""

RowColumns = dict[str, Value | None]


def method_columns(method: Variant) -> RowColumns:
    """The columns of a method: method (its display name), recipe, setup, and one for each value, such as gamma.

    A value named like a column of `SCHEMA` is in `recipe_<value>`, such as recipe_learning_rate.
    """
    values = {value_column(name): value for name, value in method.values.items()}
    return {"method": str(method), "recipe": method.name, "setup": method.setup, **values}


def value_column(name: str) -> str:
    """The column of a recipe's value."""
    return f"recipe_{name}" if name in SCHEMA.names else name


def variant_columns(kind: str, variant: Variant) -> RowColumns:
    """The columns of a calibrator or score: its display name, its name, and its values, such as calibrator_step."""
    values = {f"{kind}_{name}": value for name, value in variant.values.items()}
    return {kind: str(variant), f"{kind}_name": variant.name, **values}


def split_columns(split: str) -> RowColumns:
    """The columns of a split: its name, and the kind and severity of a corruption."""
    corruption, severity = corruption_and_severity(split)
    return {"split": split, "corruption": corruption, "severity": severity}


def row_table(rows: Sequence[RowColumns]) -> pa.Table:
    """Rows as a table: the columns of `SCHEMA`, then those of values, as numbers if all are numbers, else as text."""
    values = {name: None for row in rows for name in row if name not in SCHEMA.names}
    types = {name: _type([row[name] for row in rows if row.get(name) is not None]) for name in values}
    texts = [name for name in types if types[name] == TEXT]
    as_text = [row | {name: written(value) for name in texts if (value := row.get(name)) is not None} for row in rows]
    return pa.Table.from_pylist(as_text, schema=pa.schema([*SCHEMA, *types.items()]))


def _type(values: Sequence[Value | None]) -> pa.DataType:
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    return NUMBER if numbers else TEXT


def write_rows(study: Study, run: Run, folder: Path) -> None:
    """Compute every number of the run that the study asks for, unless they exist already."""
    if has_rows(study, folder):
        return
    measured = with_means(_values(study, folder))
    if not measured:
        raise InputError(f"of {', '.join(study.metrics)} nothing can be computed by the study's calibrators and scores")
    run_columns = {name: getattr(run, name) for name in RUN_AXES} | method_columns(run.method) | {"method": run.shown}
    table = row_table([run_columns | _measured_columns(row) for row in measured])
    name = rows_file(study)
    with recording(folder, name), replacing(folder / name) as stream, pa.ipc.new_file(stream, table.schema) as file:
        file.write_table(table)


def _measured_columns(row: Measured) -> RowColumns:
    split, calibrator, held_out, score, metric, value = row
    names = split_columns(split) | variant_columns("calibrator", calibrator) | variant_columns("score", score)
    return {**names, "held_out": held_out, "metric": metric, "value": value}


def has_rows(study: Study, folder: Path) -> bool:
    """Whether a run is done: the numbers that the study asks for exist and can be read."""
    return _read(folder, rows_file(study)) is not None


def read_rows(study: Study, folders: Sequence[Path]) -> pa.Table:
    """The rows of all finished runs, as one table."""
    file = rows_file(study)
    read = (_read(folder, file) for folder in folders)
    return joined([table for table in read if table is not None])


def joined(tables: Sequence[pa.Table]) -> pa.Table:
    """Rows of several runs as one table; a value that a run does not have is null, and text if it is text in any."""
    types: dict[str, pa.DataType] = dict(zip(SCHEMA.names, SCHEMA.types, strict=True))
    for schema in dict.fromkeys(table.schema for table in tables):
        types |= {field.name: TEXT if types.get(field.name) == TEXT else field.type for field in schema}
    common = pa.schema(types.items())
    return pa.concat_tables([common.empty_table(), *(_conforming(table, common) for table in tables)])


def _conforming(table: pa.Table, schema: pa.Schema) -> pa.Table:
    if table.schema == schema:
        return table
    columns = [
        table[field.name].cast(field.type) if field.name in table.column_names else pa.nulls(len(table), field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def rows_file(study: Study) -> str:
    """A file name that depends on the numbers asked for: studies that ask for others share the folder of a run."""
    names = ("calibrators", "scores", "shifts", "metrics", "held_out_sizes", "train_predictions")
    wanted = {name: getattr(study, name) for name in names} | {"columns": SCHEMA.names, "chosen": study.chosen}
    code = digests(names_of_rows(study), study.places)
    asked = json.dumps(wanted | ({"code": code} if code else {}))
    return f"rows.{sha256(asked.encode()).hexdigest()[:12]}.arrow"


def _read(folder: Path, name: str) -> pa.Table | None:
    """The rows of a file; None if there is no file or it is damaged."""
    if not intact(folder, name):
        return None
    try:
        table = pa.ipc.open_file((folder / name).read_bytes()).read_all()
        table.validate(full=True)  # a stranger's rows may lead arrow out of its buffers
    except (OSError, ValueError, pa.ArrowException):  # also names that are no UTF-8
        return None
    return table if all(map(_is_of_rows, table.schema)) else None


def _is_of_rows(column: pa.Field) -> bool:
    """Whether a column has the type that rows are written with."""
    known = SCHEMA.get_field_index(column.name)
    return column.type in ((TEXT, NUMBER) if known < 0 else (SCHEMA.types[known],))


def _predictions(file: Path) -> Predictions:
    predictions = files.read(file)
    assert isinstance(predictions, Predictions)
    return predictions


def _values(study: Study, folder: Path) -> Iterator[Measured]:
    held_out = _predictions(folder / "held_out.npz") if study.held_out != 0 else None
    splits = {name: _predictions(folder / f"{name}.npz") for name in ("test", *study.shifts)}
    learned = {s: read_score(s, folder, splits) or {} for s in study.scores_in_full if s.name in LEARNED}
    for size in study.held_out_sizes:
        fit_on = _some(held_out, size)
        n = 0 if fit_on is None else len(fit_on)
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
                        yield split, calibrator, n, score, metric, value
                if TEMPERATURE in study.metrics and isinstance(mapping, Temperature):
                    yield (
                        split,
                        calibrator,
                        0 if fit_on is None else len(fit_on),
                        Variant(USUAL_SCORE),
                        TEMPERATURE,
                        mapping.t,
                    )


def _some(held_out: Predictions | None, size: int | None) -> Predictions | None:
    """So many held-out predictions, or all; smaller parts are within larger ones."""
    if held_out is None or size is None:
        return held_out
    return held_out[np.random.default_rng(0).permutation(len(held_out))[:size]]


def _measured(
    after: Predictions | Outcomes, score: Variant, column: Floats | None, wanted: Sequence[str]
) -> Iterator[tuple[str, float]]:
    if column is not None:
        after = Outcomes.from_scores(column, after.outcomes().correct, is_probability=score.name in PROBABILITIES)
    elif score.name != USUAL_SCORE:
        if isinstance(after, Outcomes):
            return  # a map of the confidence gives no other score
        after = outcomes_by(scores.score(str(score)), after)
    found = tables(after)
    for key in wanted:
        record = known_metric(key)
        if record is not None and record.needs(found):
            yield key, found.once(record.of)
