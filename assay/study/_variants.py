"""Entries of a study file; each stands for one or several variants."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from assay._core.arrays import InputError
from assay.nn.names import Value
from assay.published import Variant, parse_variant

Entry = str | dict[str, Value | list[Value]]
"""A name, or a table that names it, such as { recipe = "focal", gamma = [1, 3, 5] }: each value of a list in turn."""


def variants(kind: str, entries: Sequence[Entry]) -> list[Variant]:
    """The variants that the entries stand for, with every combination of values.

    >>> [str(each) for each in variants("recipe", ["sam", {"recipe": "focal", "gamma": [1.0, 3.0]}])]
    ['sam', 'focal,gamma=1.0', 'focal,gamma=3.0']
    """
    return [variant for entry in entries for variant in _variants_of(kind, entry)]


def _variants_of(kind: str, entry: Entry) -> list[Variant]:
    if isinstance(entry, str):
        return [parse_variant(entry)]
    if kind not in entry:
        raise InputError(f"a {kind} with values names it: {{ {kind} = ..., ... }}, got {entry}")
    named = parse_variant(str(entry[kind]))
    axes = {name: value if isinstance(value, list) else [value] for name, value in entry.items() if name != kind}
    if not all(axes.values()):
        raise InputError(f"a list of values is empty: {entry}")
    combinations = [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
    return [Variant(named.name, {**named.values, **values}, named.setup) for values in combinations]
