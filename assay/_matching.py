"""Rows that belong together: those of two models on the same samples, and classes that have the same names."""

from __future__ import annotations

import numpy as np

from assay._core.arrays import InputError, Labels, Tags
from assay.predictions import Outcomes, Predictions

Rows = Predictions | Outcomes
NAMES = ("the first", "the second")


def in_order(rows: Rows, classes: tuple[str, ...] | None) -> Rows:
    """The rows with their classes in the given order; classes without names stay in the order of the file."""
    if classes is None or not isinstance(rows, Predictions) or rows.classes in (None, classes):
        return rows
    return rows.in_order(classes)


def matched(a: Rows, b: Rows, names: tuple[str, str] = NAMES) -> tuple[Rows, Rows]:
    """Both with their rows in the same order, or an error that says why they are not the same samples."""
    if (a.ids is None) != (b.ids is None):
        has, lacks = names if b.ids is None else names[::-1]
        raise InputError(f"{has} has ids and {lacks} has none; give them to both or to neither")
    if len(a) != len(b):
        raise InputError(f"not the same samples: {len(a)} rows against {len(b)}")
    if a.ids is not None and b.ids is not None:
        b = b[_order(a.ids, b.ids, names)]
    for column in ("weights", "cluster"):
        x, y = getattr(a, column), getattr(b, column)
        if (x is None) != (y is None) or (x is not None and not np.array_equal(x, y)):
            raise InputError(f"the {column} of the same samples must be the same in {names[0]} and {names[1]}")
    if isinstance(a, Predictions) and isinstance(b, Predictions):
        other = a.labels != b.labels
        if other.any():
            row = int(other.argmax())
            labels = f"label {a.labels[row]} in {names[0]}, {b.labels[row]} in {names[1]}"
            hint = "" if a.ids is not None else "; without ids rows are paired in order, ids would match them"
            raise InputError(f"not the same samples: row {row} has {labels}{hint}")
    return a, b


def _order(ids: Tags, other: Tags, names: tuple[str, str]) -> Labels:
    """Rows of `other` in the order of `ids`."""
    if ids.dtype.kind != other.dtype.kind and "U" in ids.dtype.kind + other.dtype.kind:
        ids, other = ids.astype(str), other.astype(str)
    sorting = np.argsort(other)
    place = np.searchsorted(other, ids, sorter=sorting).clip(max=len(other) - 1)
    missing = other[sorting[place]] != ids
    if missing.any():
        raise InputError(f"not the same samples: id {ids[missing.argmax()]} is in {names[0]} only")
    return np.asarray(sorting[place])
