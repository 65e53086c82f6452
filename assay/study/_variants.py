"""Entries of a study file; each stands for one or several variants."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from assay._core.arrays import InputError
from assay._core.variants import Number, Value, Variant, parse_variant
from assay.nn.names import LISTS, PARTS_OF_RECIPES

Plain = Number | str | bool
PARTS = {"recipe": PARTS_OF_RECIPES}  # by kind: what else an entry may name
Entry = str | dict[str, Plain | list[Plain] | list[list[Number]]]
"""A name, or a table that names it, such as { recipe = "focal", gamma = [1, 3, 5] }: each value of a list in turn.

A recipe with a part of the user's own names that part, { loss = "mine:smooth", strength = [0.1, 0.5] }. A
hyper-parameter in `LISTS` has a list as its value, { recipe = "flsd53", cuts = [0.2] }, and lists in a list in turn.
"""


def variants(kind: str, entries: Sequence[Entry]) -> list[Variant]:
    """The variants that the entries stand for, with every combination of values.

    >>> [str(each) for each in variants("recipe", ["sam", {"recipe": "focal", "gamma": [1.0, 3.0]}])]
    ['sam', 'focal,gamma=1.0', 'focal,gamma=3.0']
    >>> [str(each) for each in variants("recipe", [{"recipe": "flsd53", "cuts": [0.2]}])]
    ['flsd53,cuts=[0.2]']
    """
    return [variant for entry in entries for variant in _variants_of(kind, entry)]


def _variants_of(kind: str, entry: Entry) -> list[Variant]:
    if isinstance(entry, str):
        return [parse_variant(entry)]
    key = next((key for key in (kind, *PARTS.get(kind, ())) if key in entry), None)
    if key is None:
        raise InputError(f"a {kind} with values names it: {{ {kind} = ..., ... }}, got {entry}")
    named = parse_variant(str(entry[key]) if key == kind else f"{key}={entry[key]}")
    axes = {name: _in_turn(name, value) for name, value in entry.items() if name != key}
    if not all(axes.values()):
        raise InputError(f"a list of values is empty: {entry}")
    combinations = [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
    return [Variant(named.name, {**named.values, **values}, named.setup) for values in combinations]


def _in_turn(name: str, given: Plain | list[Plain] | list[list[Number]]) -> list[Value]:
    """The values that an entry gives to a hyper-parameter, one after the other."""
    several: list[Plain | list[Number]] = [*given] if isinstance(given, list) else [given]
    if name in LISTS and not all(isinstance(value, list) for value in several):
        return [_list_of(name, several)]
    return [_list_of(name, value) if isinstance(value, list) else value for value in several]


def _list_of(name: str, values: Sequence[object]) -> tuple[Number, ...]:
    numbers = tuple(value for value in values if isinstance(value, int | float))
    if name not in LISTS or len(numbers) < len(values):
        raise InputError(f"{name} = {values}: lists of numbers are values of {', '.join(LISTS)} only")
    return numbers
