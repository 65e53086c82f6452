"""One column a class: the columns that match a pattern, their order, and the class that a label names."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np

from assay._core.arrays import Array, InputError

LISTED = 10  # names in a message


def matching(names: Collection[str], pattern: str) -> dict[str, str]:
    """The columns that match a pattern, by what its star stands for: in order of number, or of the file if named."""
    before, _, after = pattern.partition("*")
    if "*" in after:
        raise InputError(f"'{pattern}' has two stars; one must stand for the class")
    fixed = len(before) + len(after)
    matched = [x for x in names if x.startswith(before) and x.endswith(after) and len(x) >= fixed]
    if not matched:
        raise InputError(f"no column matches '{pattern}'; it has {listed(names)}")
    by_stem = {name[len(before) : len(name) - len(after)]: name for name in matched}
    named = [name for stem, name in by_stem.items() if not stem.isdecimal()]
    if len(named) == len(by_stem):
        return by_stem
    if named:
        raise InputError(f"'{pattern}' matches numbered columns and '{named[0]}'; rename that one or the classes")
    ordered = dict(sorted(by_stem.items(), key=lambda item: int(item[0])))
    if [int(stem) for stem in ordered] != list(range(len(ordered))):
        got = listed(ordered.values())
        raise InputError(
            f"columns '{pattern}' must be numbered 0 to {len(ordered) - 1}, got {got}; classes count from 0"
        )
    return ordered


def class_indices(labels: Array, classes: Collection[str], pattern: str) -> Array:
    """The index of each label among the names of the classes; a numbered class is its own index."""
    if all(name.isdecimal() for name in classes):
        _refuse_names(labels, pattern)
        return labels
    values, member = np.unique(labels.astype(str), return_inverse=True)
    place = {name: i for i, name in enumerate(classes)}
    unknown = np.array([value not in place for value in values.tolist()])[member]
    if unknown.any():
        row, last = unknown.argmax(), len(classes) - 1
        numbered = f"{pattern.replace('*', '0')} to {pattern.replace('*', str(last))}"
        raise InputError(
            f"row {row}: label '{labels[row]}' is none of the classes that columns '{pattern}' name "
            f"({listed(classes)}); write these names as labels, or number the columns {numbered} as the labels count"
        )
    return np.array([place[value] for value in values.tolist()])[member]


def _refuse_names(labels: Array, pattern: str) -> None:
    if labels.dtype.kind == "U":
        row = int((~np.char.isdecimal(labels)).argmax())
        instead = "number the labels from 0, or name the columns as the labels"
        raise InputError(
            f"row {row}: label '{labels[row]}' is no number, but columns '{pattern}' are numbered; {instead}"
        )


def listed(names: Iterable[str]) -> str:
    """The first names, and how many more there are."""
    shown = list(names)
    more = f" and {len(shown) - LISTED} more" if len(shown) > LISTED else ""
    return ", ".join(shown[:LISTED]) + more
