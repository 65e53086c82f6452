"""Rows without a confidence: read from text on request, and kept, dropped or counted as wrong by a stated rule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal
from warnings import warn

import numpy as np

from assay._core.arrays import Array, Floats, InputError, Mask
from assay.files._formats import LazyTable
from assay.files._stated import stated_confidence

Unanswered = Literal["wrong", "drop", "group"]
DONE: dict[Unanswered, str] = {
    "wrong": "count as wrong with confidence 0",
    "drop": "are left out",
    "group": "are the group 'unanswered', with confidence 0",
}


def answered(
    table: Mapping[str, Array], confidence: str, correct: str, *, text: bool, rule: Unanswered | None, where: str
) -> Mapping[str, Array]:
    """The table with a `confidence` of every row, by the rule for those that have none, which are always counted."""
    if not isinstance(table, LazyTable) or confidence not in table or correct not in table:
        return table
    values, example = _from_text(table, confidence) if text else (numbers(table, confidence), "")
    unusable = ~((values >= 0) & (values <= 1))  # nan too
    if unusable.any():
        count = f"{int(unusable.sum())} of {len(unusable)} rows have no usable confidence in '{confidence}'{example}"
        if rule is None:
            raise InputError(f"{count}; say what they are by --unanswered wrong, drop or group")
        warn(f"{where}: {count}; they {DONE[rule]}", stacklevel=4)
    return _ruled(table, correct, values, unusable, rule)


def _ruled(
    table: LazyTable, correct: str, values: Floats, unusable: Mask, rule: Unanswered | None
) -> Mapping[str, Array]:
    if rule == "drop" and unusable.any():
        return table.picked(~unusable).replacing(confidence=values[~unusable])
    right = _filled(table, correct, unusable)
    if rule == "wrong":
        right = right & ~unusable
    new = {"confidence": np.where(unusable, 0.0, values), correct: right}
    if rule == "group" and unusable.any():
        new["group"] = np.where(unusable, "unanswered", "answered")
    return table.replacing(**new)


def _filled(table: LazyTable, correct: str, unusable: Mask) -> Array:
    """Whether each answer is right; one without a verdict is wrong, if it also has no confidence."""
    empty = table.missing(correct)
    if not (empty & unusable).any() or (empty & ~unusable).any():
        return table[correct]
    right: Array = np.zeros(len(empty), dtype=bool)
    right[~empty] = table.picked(~empty)[correct].astype(bool)
    return right


def numbers(table: LazyTable, name: str) -> Floats:
    empty = table.missing(name)
    values = np.full(len(empty), np.nan)
    if not empty.all():
        there = table.picked(~empty)[name] if empty.any() else table[name]
        if there.dtype.kind not in "biuf":
            raise InputError(f"column '{name}' holds text; read it by --confidence-from {name}")
        values[~empty] = there
    return values


def _from_text(table: LazyTable, name: str) -> tuple[Floats, str]:
    """The confidence that each text states, and the first text that states none."""
    empty = table.missing(name)
    texts = np.full(len(empty), "", dtype=object)
    if not empty.all():
        texts[~empty] = (table.picked(~empty)[name] if empty.any() else table[name]).astype(str)
    found = [stated_confidence(text) for text in texts]
    values = np.array([np.nan if value is None else value for value in found])
    silent = [row for row, value in enumerate(found) if value is None]
    return values, f" (as row {silent[0]}: '{_short(texts[silent[0]])}')" if silent else ""


def _short(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= 40 else plain[:18] + " ... " + plain[-18:]
