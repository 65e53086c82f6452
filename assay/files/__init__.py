"""Predictions on disk: npz, Parquet and csv, read and written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile
from zlib import error as ZlibError

import numpy as np
import torch
from torch import Tensor

from assay._core import arrays
from assay._core.arrays import InputError
from assay.files._classes import class_indices, listed, matching
from assay.files._formats import READERS, WRITERS, Array
from assay.predictions import Outcomes, Predictions

KINDS = ("logits", "probabilities", "positive", "confidence", "score")  # what a file may hold, exactly one of them
BY_CLASS = ("logits", "probabilities")  # those of them that may be one column a class
TAGS = ("ids", "group")
SCORES = ("nll", "brier", "entropy")  # what outcomes may have besides


@dataclass(frozen=True)
class Columns:
    """Which columns of a file are what; what is not said goes by its standard name, the one that `write` uses.

    `logits` and `probabilities` name one column of vectors, or by a pattern one column a class (`p_*`): where the star
    stands for numbers these are the classes; where it stands for names (`p_cat`) the labels must be such names too, and
    the classes count in the order of the file.

    Parameters
    ----------
    label
        Column of the true classes: numbers from 0, or names that the columns of the classes have too.
    logits
        Column of logits, or a pattern for one column a class ('z_*').
    probabilities
        Column of probabilities, or a pattern for one column a class ('p_*').
    positive
        Of two classes: column of the probability of class 1.
    confidence
        Column of the confidence in [0, 1] of the answer given.
    score
        Column of a score that is no probability and only ranks.
    correct
        Column that says whether the answer was right, 0 or 1.
    ids
        Column that tells one row from another.
    group
        Column to break the audit down by.
    """

    label: str = "labels"
    logits: str | None = None
    probabilities: str | None = None
    positive: str | None = None
    confidence: str | None = None
    score: str | None = None
    correct: str = "correct"
    ids: str | None = None
    group: str | None = None


def read(file: str | Path, columns: Columns = Columns()) -> Predictions | Outcomes:  # noqa: B008 (frozen)
    """Read predictions, or outcomes where the file has only a confidence and whether it was right.

    Error messages count rows from 0.
    """
    path = Path(file)
    load = READERS.get(path.suffix)
    if load is None:
        raise InputError(f"{path}: unknown kind of file '{path.suffix}'; use {', '.join(READERS)}")
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    try:
        return _assemble(load(path, [getattr(columns, tag) or tag for tag in TAGS]), columns)
    except InputError as problem:
        raise InputError(f"{path}: {problem}") from problem
    except (OSError, EOFError, ValueError, TypeError, KeyError, RuntimeError, BadZipFile, ZlibError) as problem:
        reason = str(problem).splitlines()[0] if str(problem) else type(problem).__name__
        raise InputError(f"{path}: cannot be read as {path.suffix[1:]}: {reason}") from problem


def write(predictions: Predictions | Outcomes, file: str | Path) -> None:
    """Write to npz, Parquet or csv by the ending of the name; the file appears whole or not at all."""
    path = Path(file)
    save = WRITERS.get(path.suffix)
    if save is None:
        raise InputError(f"{path}: unknown kind of file '{path.suffix}'; use {', '.join(WRITERS)}")
    with replacing(path) as stream:
        save(_table(predictions), stream)


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A stream to a temporary file that takes the name `path` once all is written, or vanishes."""
    if not path.name:
        raise InputError(f"'{path}' names no file to write to")
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as stream:
            yield stream
        temporary.replace(path)
    except OSError as problem:
        raise InputError(f"{path}: cannot be written: {problem.strerror or problem}") from problem
    finally:
        temporary.unlink(missing_ok=True)


def not_over(*written: Path | None, reading: Iterable[Path | None]) -> None:
    """Refuse to write over what is read, or two things to one file."""
    taken = {path.resolve() for path in reading if path is not None}
    for path in written:
        if path is not None:
            if path.resolve() in taken:
                raise InputError(f"{path} is read or written already; give what is written a name of its own")
            taken.add(path.resolve())


def _assemble(table: Mapping[str, Array], columns: Columns) -> Predictions | Outcomes:
    said = {kind: name for kind in KINDS if (name := getattr(columns, kind)) is not None}
    kinds = said or {kind: name for kind in KINDS if (name := _standard(table, kind))}
    if len(kinds) != 1:
        found = f"{' and '.join(kinds)} together" if kinds else f"only {listed(table)}"
        flags = "say which column is what by flags, as in --logits NAME --label NAME"
        raise InputError(f"needs one of {', '.join(KINDS)}, has {found}; {flags}")
    kind, name = kinds.popitem()
    named = {tag: getattr(columns, tag) or (tag if tag in table else None) for tag in TAGS}
    tags = {tag: _tags(table, column, tag) for tag, column in named.items() if column is not None}
    if kind in ("confidence", "score"):
        confidence = _column(table, name, kind)
        if kind == "confidence":
            _refuse_percentages(confidence)
        correct = _column(table, columns.correct, "correct")
        outcomes = Outcomes.from_scores(confidence, correct, is_probability=kind == "confidence", **tags)
        scores: dict[str, Any] = {x: torch.as_tensor(table[x]).double() for x in SCORES if x in table and not said}
        return replace(outcomes, **scores)
    labels = _column(table, columns.label, "label")
    if kind == "positive":
        return Predictions.from_binary_probabilities(_column(table, name, kind), labels, **tags)
    matrix = _matrix(table, name, kind)
    if matrix.ndim == 1 or matrix.shape[1] == 1:
        instead = "of two classes say --positive, else" if kind == "probabilities" else "there must be"
        raise InputError(f"'{name}' is one column of {kind}; {instead} one column a class, by a pattern like 'p_*'")
    classes = tuple(matching(table, name)) if "*" in name else ()
    if classes:
        labels = class_indices(labels, classes, name)
    activations = _standard(table, "features")
    features = {"features": _matrix(table, activations, "features")} if activations else {}
    make = Predictions.from_logits if kind == "logits" else Predictions.from_probabilities
    predictions = make(matrix, labels, **tags, **features)
    return replace(predictions, classes=classes) if classes and not classes[0].isdecimal() else predictions


def _standard(table: Mapping[str, Array], name: str) -> str | None:
    """The column of that name, or the pattern of one column a class, if the file has it."""
    if name in table:
        return name
    some = sum(column.startswith(f"{name}_") for column in table)
    return f"{name}_*" if f"{name}_0" in table or (name in BY_CLASS and some > 1) else None


def _tags(table: Mapping[str, Array], name: str, flag: str) -> Array:
    array = _column(table, name, flag)
    if array.dtype.kind == "U" and (array == "").any():
        raise InputError(f"column '{name}', row {int((array == '').argmax())}: no value")
    return array


def _refuse_percentages(confidence: Array) -> None:
    """Here and not only further on, since on the command line a mere score is told by a flag."""
    x = arrays.tensor(confidence, name="confidence")
    what = "divide per cents by 100, and name a score that is no probability by --score"
    arrays.refuse(x, (x < 0) | (x > 1), f"confidence {{}} is outside [0, 1]; {what}")


def _column(table: Mapping[str, Array], name: str, flag: str) -> Array:
    if name not in table:
        close = get_close_matches(name, table, n=1)
        hint = f"did you mean '{close[0]}'?" if close else f"it has {listed(table)};"
        raise InputError(f"no column '{name}'; {hint} name it by --{flag}")
    return table[name]


def _matrix(table: Mapping[str, Array], pattern: str, flag: str) -> Array:
    """One column of vectors, or the columns that match, side by side."""
    if "*" not in pattern:
        return _column(table, pattern, flag)
    return np.stack([table[name] for name in matching(table, pattern).values()], 1)


def _table(predictions: Predictions | Outcomes) -> dict[str, Array]:
    """The columns of a file, by their standard names."""
    if isinstance(predictions, Predictions):
        kind = "probabilities" if predictions.normalized else "logits"
        tensors: dict[str, Tensor | None] = {kind: predictions.values, "labels": predictions.labels}
        tensors["features"] = predictions.features
    else:
        kind = "confidence" if predictions.is_probability else "score"
        tensors = {kind: predictions.confidence, "correct": predictions.correct}
        tensors |= {name: getattr(predictions, name) for name in SCORES}
    columns = {name: _numpy(x) for name, x in tensors.items() if x is not None}
    if isinstance(predictions, Predictions) and predictions.classes is not None:
        values, labels = columns.pop(kind), columns.pop("labels")
        columns |= {f"{kind}_{name}": values[:, j] for j, name in enumerate(predictions.classes)}
        columns["labels"] = np.array(predictions.classes)[labels]
    tags = {"ids": predictions.ids, "group": predictions.group}
    return columns | {name: x for name, x in tags.items() if x is not None}


def _numpy(x: Tensor) -> Array:
    return (x.float() if x.dtype is torch.bfloat16 else x).cpu().numpy()
