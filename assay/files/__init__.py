"""Predictions on disk: npz, npy, Parquet, Arrow, csv, and what evaluations of language models leave as JSON."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any
from warnings import warn

import numpy as np

from assay._core import arrays
from assay._core.arrays import Array, Floats, InputError, NoRows, Tags
from assay._core.lookup import hint
from assay._core.reading import PACKED, ending, require_file
from assay._core.writing import replacing
from assay.files import _cells, _uqlm
from assay.files._cells import refuse_shares as refuse_shares
from assay.files._classes import class_indices, listed, matching
from assay.files._containers import CONTENTS, read_json
from assay.files._formats import (
    KINDS,
    READERS,
    WRITERS,
    LazyTable,
    bits_of,
    numbers_of,
    parquet_batches,
    write_parquet_chunks,
)
from assay.files._formats import file_system as file_system
from assay.files._formats import from_arrow as from_arrow
from assay.files._formats import open_parquet as open_parquet
from assay.files._hints import suggested
from assay.files._repeated import Samples, agreement, best_of_each
from assay.files._sheets import Sheet as Sheet
from assay.files._sheets import split
from assay.files._unanswered import Read, Unanswered, all_answered, answered, from_numbers, from_text
from assay.predictions import Outcomes, Predictions

FLAGS = {"ids": "ids", "group": "group", "weights": "weight", "cluster": "cluster"}  # by column, its flag
BY_CLASS = ("logits", "probabilities")  # these may be one column a class
DIGEST = "map_digest"  # optional column: the map that was applied, the same for all rows
SCORES = ("nll", "brier", "entropy")  # optional columns of outcomes
ENDINGS = (*READERS, *CONTENTS)
TEXTS = (".csv", ".tsv", ".json", ".jsonl")  # which may be packed
WHOLE = (  # what only all rows of a file together tell
    *("prior", "confidence_from", "agreement", "samples", "unanswered"),
    *("ignore", "positive_label"),
)
FEW = 16  # rows of a file that are looked at to see which columns are needed


@dataclass(frozen=True)
class Columns:
    """The names of a file's columns; a column that is not named here has its standard name, the one that `write` uses.

    `logits` and `probabilities` name one column of vectors, or by a pattern one column a class (`p_*`). If the star
    stands for numbers, these are the classes. If it stands for names (`p_cat`), the labels must be such names too, and
    the classes are numbered in the order of the file.

    Parameters
    ----------
    label
        Column of the true classes: numbers from 0, or the names in the class columns.
    logits
        Column of logits, or a pattern for one column a class ('z_*').
    probabilities
        Column of probabilities, or a pattern for one column a class ('p_*').
    positive
        For two classes: column of the probability of class 1.
    confidence
        Column of the confidence in [0, 1] in the answer; `audit` and `board` take several, with commas between.
    score
        Column of a score that is not a probability and only ranks.
    correct
        Column that says whether the answer is right, 0 or 1.
    ids
        Column that identifies each row.
    group
        Column of groups to audit separately.
    weight
        Column that says how much each row counts.
    cluster
        Column of clusters (patients, videos, prompts) whose rows are not independent.
    prior
        Shares that the true classes have where the model is used, to which rows are weighted: '0.99,0.01' in the order
        of the classes, or 'ham=0.99,spam=0.01'.
    confidence_from
        Column of text that states a confidence ("90%", "0.9", "Confidence: 9/10"); its name is `stated`.
    agreement
        Column of answers: the share of a question's samples (--cluster) that say the same is a confidence, `agreement`.
    samples
        Of several samples of a question (--cluster), judge all, or only the best: the most confident.
    answer
        Column of the answers; without a column of correctness, an answer is right if it equals the label.
    classes
        Names of the classes in the order of the columns, with commas between, if labels are names.
    positive_label
        For two classes: the label that is class 1, if labels are names other than yes and no or true and false.
    ignore
        Leave out rows with this label, as -100.
    percent
        Numbers are per cents, with or without the sign.
    decimal
        Decimal mark of numbers written as text, as in --decimal ','.
    normalize
        Divide rounded probabilities by their sum.
    yes
        Logits are logits, even if every row sums to 1.
    unanswered
        Rows without a confidence: they count as wrong, are dropped, or are a group; by default they are refused.
    format
        Format of a .json, .jsonl or .eval file (lm-eval, inspect, helm, hle, json); by default it is recognized.
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
    weight: str | None = None
    cluster: str | None = None
    prior: str | None = None
    confidence_from: str | None = None
    agreement: str | None = None
    samples: Samples = "all"
    answer: str | None = None
    classes: str | None = None
    positive_label: str | None = None
    ignore: str | None = None
    percent: bool = False
    decimal: str = "."
    normalize: bool = False
    yes: bool = False
    unanswered: Unanswered | None = None
    format: str | None = None


STANDARD = Columns()


@dataclass(frozen=True, eq=False)
class Unlabelled:
    """What a model said about each row, without the truth."""

    values: Array  # [n, k] logits, or [n] confidences
    is_probability: bool  # else the confidences only rank
    classes: tuple[str, ...] | None = None  # [k] names of the classes, where they have names
    cluster: Tags | None = None  # [n]
    weights: Floats | None = None  # [n]


def read(file: str | Path, columns: Columns = Columns()) -> Predictions | Outcomes:
    """Read predictions, or outcomes if the file has only a confidence and whether the answer is right.

    Error messages count rows from 0.
    """
    path = Path(file)
    with _reasons(path):
        table = _counted(_load(path, columns), columns, path)
        rows = _assemble(*_answers(table, columns, path), str(path))
        return _with_prior(best_of_each(rows) if columns.samples == "best" else rows, columns.prior)


def read_confidences(file: str | Path, columns: Columns) -> dict[str, Outcomes]:
    """The same answers with each of the confidences that are named with commas between.

    Rows that lack one of them are an error, or are left out and counted by `unanswered="drop"`.
    """
    path = Path(file)
    if columns.samples == "best":
        raise InputError("--samples best needs one confidence: by each of several, other answers are the best")
    with _reasons(path):
        table = _named(_counted(_load(path, columns), columns, path))
        names = _confidences(columns)
        reads = {name: _read(table, name, columns) for name in names}
        parts = all_answered(table, reads, columns.unanswered, str(path))
        as_read = _as_read(columns)
        return {name: _outcomes(part, as_read, "confidence", "confidence", ()) for name, part in parts.items()}


def read_unlabelled(file: str | Path, columns: Columns = Columns()) -> Unlabelled:
    """Read what a model said where nobody knows yet whether it is right."""
    path = Path(file)
    with _reasons(path):
        return _unlabelled(*_answers(_load(path, columns), columns, path))


@contextmanager
def _reasons(file: Path | str) -> Iterator[None]:
    """Errors that name the file, whatever went wrong in reading it."""
    if isinstance(file, Path):
        require_file(file)
    kind = ending(Path(file))
    if kind not in ENDINGS:
        raise InputError(f"{file}: unknown kind of file '{kind}'; use {', '.join(ENDINGS)}")
    if Path(file).suffix in PACKED and kind not in TEXTS:
        raise InputError(f"{file}: unpack it first; of packed files only {', '.join(TEXTS)} are read")
    try:
        yield
    except NoRows as problem:
        raise NoRows(f"{file}: {problem}") from problem
    except InputError as problem:
        raise InputError(f"{file}: {problem}") from problem
    except MemoryError as problem:
        raise InputError(f"{file}: does not fit into memory: {problem or 'it is full'}") from problem
    except Exception as problem:  # whatever zip, its compressions, numpy and arrow raise of a damaged file
        reason = str(problem).splitlines()[0] if str(problem) else type(problem).__name__
        raise InputError(f"{file}: cannot be read as {kind[1:]}: {reason}") from problem


def read_chunks(file: str | Path, columns: Columns = Columns(), rows: int = 2**17) -> Iterator[Predictions | Outcomes]:
    """Read a Parquet file in chunks of at most so many rows, only the columns that are needed; other files in one.

    Ids are left out: they tell rows of one file from each other, and a chunk has no use for them.
    """
    path = Path(file)
    refuse_in_parts(columns)
    for start, table in read_tables(path, columns, rows):
        with _reasons(path):
            try:
                yield assemble(table, columns)
            except InputError as problem:
                raise InputError(f"of the rows from {start} on, {problem}") from problem


def refuse_in_parts(columns: Columns) -> None:
    """Refuse what only all rows together tell, if they are read part by part."""
    for name in WHOLE:
        if getattr(columns, name) != getattr(STANDARD, name):
            raise InputError(f"--{name.replace('_', '-')} needs all rows at once: give a single file")


def holds_predictions(file: Path) -> bool:
    """Whether a file in a folder is one of predictions, by its name; of arrays beside each other one is."""
    return ending(file) in ENDINGS and (file.suffix != ".npy" or file.stem in KINDS)


@dataclass(frozen=True)
class Needed:
    """The columns that predictions are made of."""

    names: tuple[str, ...]
    width: int  # numbers that a row has in them
    pair: bool  # whether they are just a confidence in double precision and a boolean
    classes: tuple[str, ...] | None = None  # names of the classes, where they have names


def read_tables(
    file: Path | str,
    columns: Columns = Columns(),
    rows: int = 2**17,
    groups: Sequence[int] | None = None,
    used: Needed | None = None,
) -> Iterator[tuple[int, LazyTable]]:
    """Tables of at most so many rows with the needed columns, and how many rows were before each.

    Of a Parquet file (on a disk, or as text an address such as s3://) `groups` picks row groups. Other files are one
    table. Rows of many classes come in smaller tables, of about as many numbers.
    """
    with _reasons(file):
        if Path(file).suffix != ".parquet":
            if not isinstance(file, Path):
                raise InputError("only Parquet files are read from an address")
            table = _load(file, columns)
            yield 0, table if isinstance(table, LazyTable) else LazyTable(list(table), table.__getitem__)
            return
        known = used or needed(_head(file), columns)
        start = 0
        for batch in parquet_batches(file, list(known.names), _rows(rows, known), groups):
            yield start, from_arrow(batch)
            start += batch.num_rows


def read_pairs(
    file: Path | str, used: Needed, rows: int, groups: Sequence[int] | None = None
) -> Iterator[tuple[Floats, Array, int]]:
    """Of a Parquet file with a pair of columns: confidences, and bits that say which answers are right.

    The bits are eight to a byte, and the number says which is the first. Confidences have not been checked.
    """
    with _reasons(file):
        for batch in parquet_batches(file, list(used.names), rows, groups):
            confidence, correct = (batch[name] for name in used.names)
            if confidence.null_count or correct.null_count:
                raise InputError("a value is missing")
            yield numbers_of(confidence.chunk(0)), *bits_of(correct)


def needed_of(file: Path | str, columns: Columns = Columns()) -> Needed:
    """The columns of a Parquet file that are needed."""
    with _reasons(file):
        return needed(_head(file), columns)


def _head(file: Path | str) -> Any:
    first = next(parquet_batches(file, None, FEW), None)
    if first is None:
        raise NoRows("no rows")
    return first


def _rows(most: int, used: Needed) -> int:
    return max(most // max(used.width // 2, 1), 1)


def assemble(table: Mapping[str, Array], columns: Columns = Columns()) -> Predictions | Outcomes:
    """The predictions in a table, without its ids."""
    ids = columns.ids or "ids"
    if ids not in table:
        return _assemble(table, columns)
    some = LazyTable([name for name in table if name != ids], table.__getitem__)
    return _assemble(some, replace(columns, ids=None))


def needed(head: Any, columns: Columns = Columns()) -> Needed:
    """The columns of an arrow table that predictions are made of, by its first row that is not bad."""
    if not head.num_rows:
        raise NoRows("no rows")
    used: dict[str, int] = {}
    problems: list[InputError] = []
    for row in range(head.num_rows):
        used.clear()
        try:
            rows = assemble(
                LazyTable(head.column_names, partial(_noted, from_arrow(head.slice(row, 1)), used)), columns
            )
        except InputError as problem:
            problems.append(problem)
        else:
            kinds = [str(head.schema.field(name).type) for name in used]
            plain = kinds == ["double", "bool"] and not columns.percent
            is_pair = plain and isinstance(rows, Outcomes) and rows.is_probability
            return Needed(tuple(used), sum(used.values()), is_pair, getattr(rows, "classes", None))
    raise problems[0]


def _noted(table: LazyTable, used: dict[str, int], name: str) -> Array:
    found = table[name]
    used[name] = found[0].size
    return found


def from_dataframe(frame: Any, **columns: str | bool) -> Predictions | Outcomes:
    """Predictions or outcomes from a data frame of pandas or polars; `columns` are those of `Columns`."""
    known = [f.name for f in fields(Columns)]
    for name in columns:
        if name not in known:
            raise InputError(f"no column '{name}' of predictions; {hint(name, known)}")
    named: dict[str, Any] = dict(columns)
    given = Columns(**named)
    table = _counted(from_frame(frame), given, Path("data frame"))
    return _with_prior(_assemble(table, given, "data frame"), given.prior)


def _with_prior(rows: Predictions | Outcomes, prior: str | None) -> Predictions | Outcomes:
    """The rows weighted to these shares of the classes, if any are given."""
    if prior is None:
        return rows
    if not isinstance(rows, Predictions):
        raise InputError("--prior needs the true classes, and these rows have only confidences")
    parts = [part.rpartition("=") for part in prior.split(",")]
    try:
        shares = [float(share) for _, _, share in parts]
    except ValueError as problem:
        raise InputError(f"--prior is '{prior}'; write '0.9,0.1' or 'ham=0.9,spam=0.1'") from problem
    named = all(equals for _, equals, _ in parts)
    return rows.with_prior({name: x for (name, _, _), x in zip(parts, shares, strict=True)} if named else shares)


def from_frame(frame: Any) -> LazyTable:
    """The columns of a data frame of pandas or polars."""
    if not hasattr(frame, "columns"):
        raise InputError(f"expected a data frame, got {type(frame).__name__}")
    by_name = {str(name): name for name in frame.columns}  # names need not be text
    return LazyTable(list(map(str, frame.columns)), lambda name: _text_as_text(np.asarray(frame[by_name[name]])))


def _text_as_text(column: Array) -> Array:
    """Columns of text that pandas holds as objects."""
    if column.dtype.kind == "O" and column.ndim == 1 and all(isinstance(item, str) for item in column):
        return column.astype(str)
    return column


def _counted(table: Mapping[str, Array], columns: Columns, path: Path) -> Mapping[str, Array]:
    """The table without the rows to ignore, which are counted and said."""
    if columns.ignore is None or not isinstance(table, LazyTable):
        return table
    rows = _cells.ignored(_column(table, columns.label, "label"), columns.ignore)
    if rows.all():
        raise InputError(f"all {len(rows)} rows have the label {columns.ignore}, which is ignored")
    warn(f"{path}: {int(rows.sum())} of {len(rows)} rows are ignored: their label is {columns.ignore}", stacklevel=3)
    return table.picked(~rows)


def _load(path: Path, columns: Columns) -> Mapping[str, Array]:
    tags = [getattr(columns, flag) or tag for tag, flag in FLAGS.items() if tag != "weights"]
    if ending(path) in CONTENTS:
        return read_json(path, tags, columns.format)
    if columns.format is not None:
        raise InputError(f"--format is for {', '.join(CONTENTS)}; this file has its columns named by other flags")
    return READERS[ending(path)](path, tags)


def _answers(table: Mapping[str, Array], columns: Columns, path: Path) -> tuple[Mapping[str, Array], Columns]:
    """The table with a confidence of every row, where one is read from text or rows may lack it."""
    if _uqlm.recognized(table) and not any(getattr(columns, kind) for kind in (*KINDS, "confidence_from")):
        columns = replace(columns, confidence=_uqlm.scorer(table))
        warn(f"{path}: read as uqlm, confidence is '{columns.confidence}'", stacklevel=3)
    derived = columns.confidence_from or columns.agreement
    if derived is None and columns.unanswered is None:
        return table, columns
    if columns.unanswered == "group" and columns.group is not None:
        raise InputError("--unanswered group makes the groups; leave out --group")
    names = _confidences(columns)
    if len(names) > 1:
        raise InputError(f"give one confidence, not {' and '.join(names)}; only audit and board take several")
    table, correct = _named(table), columns.correct
    _require(table, correct, "correct")
    found = answered(table, names[0], _read(table, names[0], columns), correct, columns.unanswered, str(path))
    return found, _as_read(columns)


def _confidences(columns: Columns) -> list[str]:
    """The names of the confidences: the given ones, or those that are derived from other columns."""
    if columns.confidence is not None:
        return columns.confidence.split(",")
    derived = [name for name, column in _derived(columns).items() if column is not None]
    return derived or ["confidence"]


def _derived(columns: Columns) -> dict[str, str | None]:
    return {"stated": columns.confidence_from, "agreement": columns.agreement}


def _read(table: LazyTable, name: str, columns: Columns) -> Read:
    """One confidence: a column of numbers, or derived from the column that a flag names."""
    column = _derived(columns).get(name)
    if column is None:
        _require(table, name, "confidence")
        return from_numbers(table, name, percent=columns.percent, decimal=columns.decimal)
    if name in table:
        raise InputError(f"has a column '{name}' of its own; leave out --confidence-from and --agreement, or rename it")
    if name == "agreement":
        return Read(agreement(table, column, columns.cluster or "cluster"))
    _require(table, column, "confidence-from")
    return from_text(table, column)


def _as_read(columns: Columns) -> Columns:
    """The columns of a table whose confidence has been read."""
    return replace(columns, confidence="confidence", percent=False, decimal=STANDARD.decimal)


def _named(table: Mapping[str, Array]) -> LazyTable:
    if not isinstance(table, LazyTable):
        raise InputError("has no columns")
    return table


def read_column(file: str | Path, name: str, columns: Columns = Columns()) -> Array:
    """A column of a file as text, one a row, such as what a page shows of each sample."""
    path = Path(file)
    with _reasons(path):
        return np.asarray(_column(_load(path, columns), name, "show")).astype(str)


def read_sheets(file: str | Path, columns: Columns = Columns(), *, by: str | None = None) -> list[Sheet]:
    """The answers of each model in a file, by the column `by`, with each of the confidences named with commas between.

    Rows without a usable confidence are left out and counted. Without `by` the file holds one model, named as the file;
    it may then have logits or probabilities, whose confidence is `max_probability`. Questions are told by --ids or
    --cluster, by a column `ids`, or else by their row.
    """
    path = Path(file)
    with _reasons(path):
        table = _named(_counted(_load(path, columns), columns, path))
        question = columns.ids or columns.cluster or ("ids" if "ids" in table else None)
        if by is None and _has_classes(table, columns):
            return [_top_label(path.stem, _assemble(table, columns), table, question)]
        named: dict[str, Any] = {"correct": columns.correct, "question": question, "group": columns.group}
        read = {name: partial(_read, name=name, columns=columns) for name in _confidences(columns)}
        return list(split(table, read, model=path.stem, by=by, **named))


def _has_classes(table: LazyTable, columns: Columns) -> bool:
    if columns.confidence or any(_derived(columns).values()) or "confidence" in table:
        return False
    return _kind(table, columns)[0] not in ("confidence", "score")


def _top_label(model: str, rows: Predictions | Outcomes, table: LazyTable, question: str | None) -> Sheet:
    told, n = rows.outcomes(), len(rows)
    answers = Outcomes.from_scores(told.confidence, told.correct, group=told.group)
    return Sheet(model, "max_probability", answers, table[question] if question else np.arange(n), n)


def read_judged(file: str | Path, judge: str, human: str, *, format: str | None = None) -> tuple[Floats, Floats]:
    """The judge's scores, and the human labels, nan where there is none."""
    path = Path(file)
    with _reasons(path):
        table = _named(_load(path, Columns(format=format)))
        for name, flag in ((judge, "judge"), (human, "human")):
            _require(table, name, flag)
            if not table.missing(name).all() and table.picked(~table.missing(name))[name].dtype.kind not in "biuf":
                raise InputError(f"column '{name}' holds text; --{flag} needs numbers, as 1 for right and 0 for wrong")
        empty = table.missing(judge)
        if empty.any():
            raise InputError(f"column '{judge}', row {int(empty.argmax())}: the judge must score every answer")
        return from_numbers(table, judge).values, from_numbers(table, human).values


def write(predictions: Predictions | Outcomes, file: str | Path) -> None:
    """Write npz, Parquet or csv, by the ending of the name; the file appears whole or not at all."""
    path = Path(file)
    save = WRITERS.get(path.suffix)
    if save is None:
        raise InputError(f"{path}: unknown kind of file '{path.suffix}'; use {', '.join(WRITERS)}")
    with replacing(path) as stream:
        save(_table(predictions), stream)


def write_chunks(chunks: Iterable[Predictions | Outcomes], file: str | Path) -> int:
    """Write chunks of rows to one Parquet file as they come, and say how many rows there were.

    The file appears whole or not at all.
    """
    path = Path(file)
    if path.suffix != ".parquet":
        raise InputError(f"{path}: rows are written as they come to .parquet files only")
    with replacing(path) as stream:
        return write_parquet_chunks((_table(chunk) for chunk in chunks), stream)


def read_rows(file: Path | str, columns: Columns = Columns(), rows: int = 2**15) -> Iterator[Predictions | Outcomes]:
    """All predictions of a Parquet file in chunks of at most so many rows, with their ids and the map applied before.

    Other files are one chunk. That no id occurs twice is checked in each chunk alone.
    """
    refuse_in_parts(columns)
    if Path(file).suffix != ".parquet":
        yield read(file, columns)
        return
    with _reasons(file):
        for batch in parquet_batches(file, None, rows):
            yield _assemble(from_arrow(batch), columns)


def _assemble(table: Mapping[str, Array], columns: Columns, where: str = "") -> Predictions | Outcomes:
    """The predictions in a table: a whole one says `where` it is from, a part of one does not."""
    kind, name, named = _kind(table, columns)
    if where and columns.percent:
        refuse_shares(_numbers(table, columns, name, kind))
    rows: Predictions | Outcomes
    if kind in ("confidence", "score"):
        rows = _outcomes(table, columns, kind, name, SCORES if not named else ())
    else:
        rows = _predictions(table, columns, kind, name, where)
    return replace(rows, map_digest=_map_digest(table))


def _numbers(table: Mapping[str, Array], columns: Columns, name: str, kind: str) -> Array:
    """The numbers of one column, or of one column a class, as they are written."""
    raw = _matrix(table, name, kind) if kind in BY_CLASS else _column(table, name, kind)
    return _cells.numbers(raw, name, percent=columns.percent, decimal=columns.decimal)


def _unlabelled(table: Mapping[str, Array], columns: Columns) -> Unlabelled:
    """The constructors of labelled rows check the numbers, with labels that are not kept."""
    kind, name, _ = _kind(table, columns)
    values = _numbers(table, columns, name, kind)
    nobody_knows, tags = np.zeros(len(values), dtype=np.int64), _tags(table, columns)
    if kind in ("confidence", "score"):
        checked = Outcomes.from_scores(values, nobody_knows, is_probability=kind == "confidence", **tags)
        return Unlabelled(checked.confidence, checked.is_probability, cluster=checked.cluster, weights=checked.weights)
    make: dict[str, Callable[..., Predictions]] = {
        "logits": Predictions.from_logits,
        "probabilities": Predictions.from_probabilities,
        "positive": Predictions.from_binary_probabilities,
    }
    classes = tuple(matching(table, name)) if "*" in name else ()
    named = classes if classes and not classes[0].isdecimal() else None
    rows = make[kind](values, nobody_knows, **tags)
    return Unlabelled(rows.logits, True, named, rows.cluster, rows.weights)


def _kind(table: Mapping[str, Array], columns: Columns) -> tuple[str, str, bool]:
    """What the file holds, under which name, and whether the caller named it."""
    named = {kind: name for kind in KINDS if (name := getattr(columns, kind)) is not None}
    kinds = named or {kind: name for kind in KINDS if (name := _standard(table, kind))}
    if len(kinds) != 1:
        has = f"{' and '.join(kinds)} together" if kinds else f"only {listed(table)}"
        like = "" if kinds else suggested(list(table))
        flags = f"say which column is what by flags, as in {like or '--logits NAME --label NAME'}"
        raise InputError(f"needs one of {', '.join(KINDS)}, has {has}; {flags}")
    kind, name = kinds.popitem()
    return kind, name, bool(named)


def _outcomes(table: Mapping[str, Array], columns: Columns, kind: str, name: str, scores: tuple[str, ...]) -> Outcomes:
    confidence, correct = _numbers(table, columns, name, kind), _correct(table, columns, name)
    is_probability = kind == "confidence"
    try:
        outcomes = Outcomes.from_scores(confidence, correct, is_probability=is_probability, **_tags(table, columns))
    except InputError:
        if is_probability:
            _refuse_percentages(confidence)
        raise
    present: dict[str, Any] = {x: _score(table[x], x, len(outcomes)) for x in scores if x in table}
    return replace(outcomes, labels=_known_labels(table, columns), **present)


def _known_labels(table: Mapping[str, Array], columns: Columns) -> Array | None:
    """What the right answers were, where answers are compared with it or groups are made of it."""
    used = columns.answer is not None or columns.group == columns.label
    return _column(table, columns.label, "label") if used else None


def _correct(table: Mapping[str, Array], columns: Columns, name: str) -> Array:
    """Whether each answer is right: by its column, or by whether the answer is the label."""
    if columns.answer is not None:
        answer, label = _column(table, columns.answer, "answer"), _column(table, columns.label, "label")
        same_kind = (answer.dtype.kind in "biuf") == (label.dtype.kind in "biuf")
        return np.asarray(answer == label if same_kind else answer.astype(str) == label.astype(str))
    if columns.correct not in table and columns.correct == STANDARD.correct:
        hint = "name the column of 0 and 1 by --correct, or that of the answers by --answer"
        two = f"if '{name}' is the probability of class 1, say --positive {shlex.quote(name)} and name the --label"
        raise InputError(f"'{name}' says how sure each answer is, but not whether it is right; {hint}; {two}")
    return _cells.truths(_column(table, columns.correct, "correct"))


def _predictions(table: Mapping[str, Array], columns: Columns, kind: str, name: str, where: str) -> Predictions:
    labels, tags = _labels(table, columns), _tags(table, columns)
    matrix = _numbers(table, columns, name, kind)
    if kind == "positive":
        labels, pair = _cells.two_labels(labels, columns.positive_label)
        return replace(Predictions.from_binary_probabilities(matrix, labels, **tags), classes=pair)
    if columns.normalize and kind == "probabilities":
        matrix = _cells.normalized(matrix, where)
    if kind == "logits" and not columns.yes:
        _cells.refuse_probabilities(matrix)
    if matrix.ndim == 1 or matrix.shape[1] == 1:
        instead = "of two classes say --positive, else" if kind == "probabilities" else "there must be"
        raise InputError(f"'{name}' is one column of {kind}; {instead} one column a class, by a pattern like 'p_*'")
    classes = tuple(matching(table, name)) if "*" in name else ()
    given = _class_names(table, columns)
    if given:
        classes = given
        labels = _cells.indices(labels, given)
    elif classes:
        labels = class_indices(labels, classes, name)
    activations = _standard(table, "features")
    features = {"features": _matrix(table, activations, "features")} if activations else {}
    make = Predictions.from_logits if kind == "logits" else Predictions.from_probabilities
    predictions = make(matrix, labels, **tags, **features)
    if given and len(given) != predictions.n_classes:
        raise InputError(f"{len(given)} classes are named, but there are {predictions.n_classes}: {listed(given)}")
    return replace(predictions, classes=classes) if classes and not classes[0].isdecimal() else predictions


def _labels(table: Mapping[str, Array], columns: Columns) -> Array:
    """The true classes; several of a row are refused with what to do."""
    if "*" not in columns.label:
        return _column(table, columns.label, "label")
    one_hot = _matrix(table, columns.label, "label")
    one_each = bool((one_hot.astype(float).sum(1) == 1).all())
    instead = "write the class of each row in one" if one_each else "audit each label as two classes, by --positive"
    raise InputError(f"'{columns.label}' names {one_hot.shape[1]} columns of labels; {instead}")


def _class_names(table: Mapping[str, Array], columns: Columns) -> tuple[str, ...]:
    """The names of the classes in the order of the columns, if given by flag or in the file."""
    if columns.classes is not None:
        return tuple(name.strip() for name in columns.classes.split(","))
    if "classes" in table and columns.label != "classes":
        names = np.asarray(table["classes"])
        return tuple(map(str, names.tolist())) if names.ndim == 1 and names.dtype.kind == "U" else ()
    return ()


def _standard(table: Mapping[str, Array], name: str) -> str | None:
    """The column of that name, or the pattern of one column a class, if the file has it."""
    if name in table:
        return name
    some = sum(column.startswith(f"{name}_") for column in table)
    return f"{name}_*" if f"{name}_0" in table or (name in BY_CLASS and some > 1) else None


def _tags(table: Mapping[str, Array], columns: Columns) -> dict[str, Array]:
    named = {tag: getattr(columns, flag) or (tag if tag in table else None) for tag, flag in FLAGS.items()}
    return {tag: _tag(table, column, FLAGS[tag]) for tag, column in named.items() if column is not None}


def _map_digest(table: Mapping[str, Array]) -> str | None:
    """What `maps.apply` stamped on the rows before they were written; None if rows differ in it."""
    if DIGEST not in table:
        return ""
    digests = np.atleast_1d(table[DIGEST])
    return str(digests[0]) if (digests == digests[0]).all() else None


def _tag(table: Mapping[str, Array], name: str, flag: str) -> Array:
    array = _column(table, name, flag)
    if array.dtype.kind == "U" and (array == "").any():
        raise InputError(f"column '{name}', row {int((array == '').argmax())}: no value")
    return array


def _refuse_percentages(confidence: Array) -> None:
    """`Outcomes` checks this too; the message here names the flag of the command line."""
    x = arrays.array(confidence, name="confidence")
    what = "divide per cents by 100, and name a score that is no probability by --score"
    arrays.refuse(x, (x < 0) | (x > 1), f"confidence {{}} is outside [0, 1]; {what}")


def _score(column: Array, name: str, n: int) -> Array:
    score = arrays.floats(column, name=name, ndim=1)
    if len(score) != n:
        raise InputError(f"{n} rows of confidence but {len(score)} of {name}")
    return score.astype(np.float64)


def _column(table: Mapping[str, Array], name: str, flag: str) -> Array:
    _require(table, name, flag)
    found = table[name]
    if not found.ndim:
        raise InputError(f"'{name}' is a single value, not a column")
    return found


def _require(table: Mapping[str, Array], name: str, flag: str) -> None:
    """An error that suggests a name, if there is no such column."""
    if name not in table:
        close = get_close_matches(name, table, n=1)
        hint = f"did you mean '{close[0]}'?" if close else f"it has {listed(table)};"
        raise InputError(f"no column '{name}'; {hint} name it by --{flag}")


def _matrix(table: Mapping[str, Array], pattern: str, flag: str) -> Array:
    """One column of vectors, or the columns that match, side by side."""
    if "*" not in pattern:
        return _column(table, pattern, flag)
    return np.stack([table[name] for name in matching(table, pattern).values()], 1)


def _table(predictions: Predictions | Outcomes) -> dict[str, Array]:
    """The columns of a file, by their standard names."""
    columns = _scores(predictions) if isinstance(predictions, Predictions) else _confidence(predictions)
    columns |= {name: getattr(predictions, name) for name in FLAGS}
    if predictions.map_digest:
        columns[DIGEST] = np.full(len(predictions), predictions.map_digest)
    return {name: x for name, x in columns.items() if x is not None}


def _scores(predictions: Predictions) -> dict[str, Array | None]:
    kind = "probabilities" if predictions.normalized else "logits"
    values, labels, features = predictions.values, predictions.labels, {"features": predictions.features}
    if predictions.classes is None:
        return {kind: values, "labels": labels, **features}
    by_class = {f"{kind}_{name}": values[:, j] for j, name in enumerate(predictions.classes)}
    return {**features, **by_class, "labels": np.array(predictions.classes)[labels]}


def _confidence(outcomes: Outcomes) -> dict[str, Array | None]:
    kind = "confidence" if outcomes.is_probability else "score"
    scores = {name: getattr(outcomes, name) for name in SCORES}
    return {kind: outcomes.confidence, "correct": outcomes.correct, **scores}
