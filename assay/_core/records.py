"""Records from plain data, as a file has them: every field of its type, or an error that names the field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from assay._core.arrays import InputError

T = TypeVar("T")


def record(kind: type[T], values: Mapping[str, Any]) -> T:
    """A frozen dataclass from values by the names of its fields; a whole number is a float too.

    >>> from assay.maps import Candidate
    >>> record(Candidate, {"name": "platt", "loss": 1, "behind": 0.0, "error": 0.0}).loss
    1.0
    """
    hints = get_type_hints(kind)
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]  # a dataclass
    for name in values:
        if name not in known:
            raise InputError(f"a {kind.__name__} has no '{name}'")
    for name, field in known.items():
        if name not in values and field.default is MISSING:
            raise InputError(f"a {kind.__name__} needs '{name}'")
    return kind(**{name: _typed(value, hints[name], f"{kind.__name__}.{name}") for name, value in values.items()})


def _typed(value: Any, hint: Any, where: str) -> Any:
    """The value if it is of that type."""
    hint = _unaliased(hint)
    origin, inner = get_origin(hint), tuple(map(_unaliased, get_args(hint)))
    if origin in (Union, UnionType):
        fits = [each for each in inner if each is not NoneType and isinstance(value, get_origin(each) or each)]
        return None if value is None and NoneType in inner else _typed(value, (fits or inner)[0], where)
    if origin is tuple and isinstance(value, tuple):
        return tuple(_typed(item, inner[0], where) for item in value)
    if hint is float and isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**1000:
        return float(value)
    wanted = np.ndarray if origin is np.ndarray else tuple if origin is tuple else hint
    if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
        raise InputError(f"{where} must be {_article(wanted)}, got {_article(type(value))}")
    return value


def _unaliased(hint: Any) -> Any:
    """The type behind an alias: numpy's NDArray is one from numpy 2.5 on."""
    return getattr(get_origin(hint), "__value__", hint)


def _article(kind: type) -> str:
    name = {"ndarray": "array", "str": "text", "tuple": "list", "NoneType": "null"}.get(kind.__name__, kind.__name__)
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"
