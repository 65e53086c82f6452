"""Rows without a confidence: read from text on request, and kept, dropped or counted as wrong by a stated rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from warnings import warn

import numpy as np

from assay._core.arrays import Array, Floats, InputError, Mask
from assay.files._cells import numbers, refuse_shares
from assay.files._formats import LazyTable
from assay.files._stated import stated_confidence

Unanswered = Literal["wrong", "drop", "group"]
DONE: dict[Unanswered, str] = {
    "wrong": "count as wrong with confidence 0",
    "drop": "are left out",
    "group": "are the group 'unanswered', with confidence 0",
}


@dataclass(frozen=True, eq=False)
class Read:
    """A confidence as a file has it, nan where it has none, and how to show a text that states none."""

    values: Floats
    example: str = ""

    @property
    def unusable(self) -> Mask:
        return ~((self.values >= 0) & (self.values <= 1))  # nan too


def answered(table: LazyTable, name: str, read: Read, correct: str, rule: Unanswered | None, where: str) -> LazyTable:
    """The table with a `confidence` of every row, by the rule for those that have none, which are always counted."""
    values, unusable = read.values, read.unusable
    count_unusable(table, {name: read}, rule, where)
    if rule == "drop" and unusable.any():
        return table.picked(~unusable).replacing(confidence=values[~unusable])
    right = _filled(table, correct, unusable)
    if rule == "wrong":
        right = np.where(unusable, False, right)
    new = {"confidence": np.where(unusable, 0.0, values), correct: right}
    if rule == "group" and unusable.any():
        new["group"] = np.where(unusable, "unanswered", "answered")
    return table.replacing(**new)


def all_answered(
    table: LazyTable, reads: Mapping[str, Read], rule: Unanswered | None, where: str
) -> dict[str, LazyTable]:
    """For each confidence the table with it as `confidence`, of the rows that have all of them."""
    if rule not in (None, "drop"):
        raise InputError("several confidences are compared on rows that have all of them, so say --unanswered drop")
    unusable = count_unusable(table, reads, rule, where)
    rows = table.picked(~unusable) if unusable.any() else table
    return {name: rows.replacing(confidence=read.values[~unusable]) for name, read in reads.items()}


def count_unusable(table: LazyTable, reads: Mapping[str, Read], rule: Unanswered | None, where: str) -> Mask:
    """Rows that lack one of the confidences: said if there is a rule for them, else an error."""
    without = {name: read.unusable for name, read in reads.items()}
    unusable: Mask = np.logical_or.reduce(list(without.values()))
    if unusable.any():
        which = ", ".join(f"'{name}'{reads[name].example}" for name, mask in without.items() if mask.any())
        count = f"{int(unusable.sum())} of {len(unusable)} rows have no usable confidence in {which}"
        if rule is None:
            raise InputError(f"{count}; say what they are by --unanswered wrong, drop or group")
        warn(f"{where}: {count}; they {DONE[rule]}", stacklevel=5)
    if unusable.all() and rule == "drop":
        raise InputError(f"no row has a usable confidence in {' and '.join(map(repr, reads))}")
    return unusable


def _filled(table: LazyTable, correct: str, unusable: Mask) -> Array:
    """Whether each answer is right; one without a verdict is wrong, if it also has no confidence."""
    empty = table.missing(correct)
    if not (empty & unusable).any() or (empty & ~unusable).any():
        return table[correct]
    right: Array = np.zeros(len(empty), dtype=bool)
    right[~empty] = table.picked(~empty)[correct].astype(bool)
    return right


def from_numbers(table: LazyTable, name: str, *, percent: bool = False, decimal: str = ".") -> Read:
    """A column of numbers as they are written."""
    empty = np.array(table.missing(name))
    values = np.full(len(empty), np.nan)
    if not empty.all():
        there = table.picked(~empty)[name] if empty.any() else table[name]
        if there.dtype.kind == "U":  # a csv file keeps the empty cells of a column of text
            blank = np.char.strip(there) == ""
            empty[~empty], there = blank, there[~blank]
        there = numbers(there, name, percent=percent, decimal=decimal)
        if there.dtype.kind not in "biuf":
            raise InputError(f"column '{name}' holds text; read it by --confidence-from {name}")
        if percent:
            refuse_shares(there)
        values[~empty] = there
    return Read(values)


def from_text(table: LazyTable, name: str) -> Read:
    """The confidence that each text states."""
    empty = table.missing(name)
    texts = np.full(len(empty), "", dtype=object)
    if not empty.all():
        texts[~empty] = (table.picked(~empty)[name] if empty.any() else table[name]).astype(str)
    found = [stated_confidence(text) for text in texts]
    values = np.array([np.nan if value is None else value for value in found])
    silent = [row for row, value in enumerate(found) if value is None]
    return Read(values, f" (as row {silent[0]}: '{_short(texts[silent[0]])}')" if silent else "")


def _short(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= 40 else plain[:18] + " ... " + plain[-18:]
