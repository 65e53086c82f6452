"""Names looked up in tables or imported from a user's module, and packages that an extra installs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from inspect import signature
from types import ModuleType
from typing import Any, TypeVar

from assay._core.arrays import InputError
from assay._core.own_code import KINDS, entry_point, import_own, is_own

T = TypeVar("T")

EXTRAS = {  # which extra installs a package, and what the package is for
    **dict.fromkeys(("torch", "lightning", "PIL", "sklearn"), ("train", "training needs")),
    **dict.fromkeys(("onnx", "onnxruntime", "onnxscript"), ("onnx", "ONNX export needs")),
    "skl2onnx": ("integrations", "ONNX export of scikit-learn needs"),
    "matplotlib": ("figures", "figures need"),
    "datasets": ("hub", "downloading data needs"),
    "ray": ("ray", "the engine ray needs"),
}


def hint(name: str, names: Iterable[str]) -> str:
    """The nearest of the names, or all of them if none is near.

    >>> hint("temprature", ["temperature", "platt"])
    "did you mean 'temperature'?"
    """
    known = list(names)
    close = get_close_matches(name, known, n=1)
    if not known:
        return "there is none by name"
    return f"did you mean '{close[0]}'?" if close else f"there are {', '.join(known)}"


def lookup(kind: str, name: str, table: Mapping[str, T]) -> T:
    """The entry of the table with that name; an unknown name raises with a hint."""
    if name not in table:
        raise InputError(f"unknown {kind} '{name}'; {hint(name, table)}")
    return table[name]


def lookup_or_import(kind: str, name: str, table: Mapping[str, T]) -> T:
    """The entry of the table with that name, an installed package's entry point, or a user's own package.module:name.

    The kind is one of `KINDS`.
    """
    if name not in table and (own := name if is_own(name) else entry_point(kind, name)) is not None:
        imported: T = import_own(kind, own)
        return imported
    try:
        return lookup(kind, name, table)
    except InputError as problem:
        raise InputError(f"{problem}. Your own is package.module:{KINDS[kind].own}".replace("?.", "?")) from problem


def hyper_parameters(*functions: Callable[..., Any]) -> list[str]:
    """The parameters of the functions that are keyword-only or have a default."""
    parameters = [p for function in functions for p in signature(function).parameters.values()]
    named = [p for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return [p.name for p in named if p.kind is p.KEYWORD_ONLY or p.default is not p.empty]


def check_values(kind: str, known: Sequence[str], values: Iterable[str]) -> None:
    """Refuse names that are none of the known hyper-parameters."""
    for name in values:
        if name not in known:
            there = f"it has {', '.join(known)}" if known else "it has none"
            raise InputError(f"no hyper-parameter '{name}' of this {kind}; {there}")


def needs(package: str) -> ModuleType:
    """Import a package that an extra installs; without it, raise a line that says what to install."""
    try:
        return import_module(package)
    except ImportError as problem:
        raise InputError(missing(package)) from problem


def missing(package: str) -> str:
    """What to install for a package of `EXTRAS`.

    >>> missing("torch")
    "training needs torch: pip install 'assay-ml[train]'"
    """
    extra, purpose = EXTRAS[package]
    return f"{purpose} {package}: pip install 'assay-ml[{extra}]'"
