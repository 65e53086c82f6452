"""Names that stand for things: found in a table, imported from a user's module, or refused with the nearest one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from importlib import import_module
from inspect import signature
from typing import Any, TypeVar

from assay._core.arrays import InputError

T = TypeVar("T")


def hint(name: str, names: Iterable[str]) -> str:
    """The nearest of the names, or all of them where none is near.

    >>> hint("temprature", ["temperature", "platt"])
    "did you mean 'temperature'?"
    """
    known = list(names)
    close = get_close_matches(name, known, n=1)
    return f"did you mean '{close[0]}'?" if close else f"there are {', '.join(known)}"


def found(kind: str, name: str, table: Mapping[str, T]) -> T:
    """What the table has under that name."""
    if name not in table:
        raise InputError(f"unknown {kind} '{name}'; {hint(name, table)}")
    return table[name]


def found_or_imported(kind: str, name: str, table: Mapping[str, T], own: str) -> T:
    """What the table has under that name, or a user's own at "package.module:own"."""
    module, colon, attribute = name.partition(":")
    if name in table or not colon:
        try:
            return found(kind, name, table)
        except InputError as problem:
            raise InputError(f"{problem}. Your own is package.module:{own}".replace("?.", "?")) from problem
    try:
        imported: T = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as problem:
        raise InputError(f"{kind} '{name}' cannot be imported: {problem}") from problem
    return imported


def check_values(kind: str, function: Callable[..., Any], values: Iterable[str]) -> None:
    """Refuse names of values that are no hyper-parameters, which are keyword-only, of the function."""
    known = [p.name for p in signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY]
    for name in values:
        if name not in known:
            there = f"it has {', '.join(known)}" if known else "it has none"
            raise InputError(f"no hyper-parameter '{name}' of this {kind}; {there}")
