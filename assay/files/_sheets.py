"""Files of many models: the answers of each model with each of its confidences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from assay._core.arrays import InputError, Tags
from assay.files._formats import LazyTable
from assay.files._unanswered import Read
from assay.predictions import Outcomes


@dataclass(frozen=True, eq=False)
class Sheet:
    """The answers of one model with one confidence; rows without a usable one are left out and counted."""

    model: str
    confidence: str
    rows: Outcomes
    question: Tags  # [n] the same answered by other models; may repeat
    asked: int  # rows, with or without a confidence


def split(
    table: LazyTable,
    read: Mapping[str, Callable[[LazyTable], Read]],
    *,
    model: str,
    by: str | None,
    correct: str,
    question: str | None,
    group: str | None,
) -> Iterator[Sheet]:
    """A sheet for each model in the column `by`, or of the one `model`, and each confidence that has a usable value.

    `read` takes each confidence from the table of one model.
    """
    for name in (correct, *(each for each in (by, question, group) if each)):
        if name not in table:
            raise InputError(f"no column '{name}'; it has {', '.join(table)}")
    if by is None:
        yield from _sheets(model, table, read, correct, question, group)
        return
    models, member = np.unique(table[by].astype(str), return_inverse=True)
    for i, each in enumerate(models.tolist()):
        yield from _sheets(each, table.picked(member == i), read, correct, question, group)


def _sheets(
    model: str,
    table: LazyTable,
    read: Mapping[str, Callable[[LazyTable], Read]],
    correct: str,
    question: str | None,
    group: str | None,
) -> Iterator[Sheet]:
    right = table[correct]
    asked = table[question] if question else np.arange(len(right))
    groups = table[group].astype(str) if group else None
    for name, of in read.items():
        values, usable = (found := of(table)).values, ~found.unusable
        if usable.any():
            rows = Outcomes.from_scores(values[usable], right[usable], group=None if groups is None else groups[usable])
            yield Sheet(model, name, rows, asked[usable], len(values))
