"""Names with values, such as focal@mukhoti2020,gamma=5: the one place that writes and parses them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from assay._core.arrays import InputError

Number = float | int
Value = float | int | str | bool | tuple[Number, ...]
"""The value of a hyper-parameter, as a study file or the command line gives it."""


@dataclass(frozen=True)
class Variant:
    """A recipe, network, calibrator or score, and the hyper-parameters that replace its own, in any order.

    >>> str(Variant("flsd53", {"gammas": (5, 3, 2), "cuts": (0.2, 0.5)}, setup="mukhoti2020"))
    'flsd53@mukhoti2020,gammas=[5,3,2],cuts=[0.2,0.5]'
    """

    name: str
    values: Mapping[str, Value] = field(default_factory=dict)
    setup: str | None = None  # of a recipe; None is the set-up of zhu2022

    @property
    def full_name(self) -> str:
        """The name with the set-up, as `assay.nn.recipes.recipe` takes it."""
        return self.name if self.setup is None else f"{self.name}@{self.setup}"

    def __str__(self) -> str:
        return ",".join([self.full_name, *(f"{name}={written(value)}" for name, value in self.values.items())])

    def __hash__(self) -> int:
        return hash((self.name, self.setup, frozenset(self.values.items())))


def written(value: Value) -> str:
    """A value as it stands in a name: numbers of a list in square brackets.

    >>> written((0.2, 0.5)), written(True)
    ('[0.2,0.5]', 'True')
    """
    return f"[{','.join(map(str, value))}]" if isinstance(value, tuple) else str(value)


def parse_variant(text: str) -> Variant:
    """Read a variant from Python, a study file, the command line or a published table.

    >>> parse_variant("focal@mukhoti2020,gamma=5.0") == parse_variant("focal@mukhoti2020(gamma=5)")
    True
    >>> parse_variant("flsd53,cuts=[0.2]").values
    {'cuts': (0.2,)}
    """
    full_name = re.split(r"[(,]", text, maxsplit=1)[0]
    name, _, setup = full_name.partition("@")
    rest = text.removeprefix(full_name).removeprefix("(").removesuffix(")" if text.startswith(f"{full_name}(") else "")
    values: dict[str, Value] = {}
    for part in re.findall(r"(?:\[[^\]]*\]|\([^)]*\)|[^,])+", rest):
        key, equals, value = part.strip().partition("=")
        if not (equals and key.isidentifier() and value):
            raise InputError(f"'{text}': '{part.strip()}' is not name=value, as in focal,gamma=5")
        if key in values:
            raise InputError(f"'{text}': {key} is given twice")
        values[key] = _value(value.strip())
    return Variant(name, values, setup or None)


def _value(text: str) -> Value:
    if text[0] in "[(":
        return tuple(_number(part) for part in text[1:-1].split(",") if part.strip())
    if text in ("True", "False", "true", "false"):
        return text in ("True", "true")
    try:
        return _number(text)
    except InputError:
        return text


def _number(text: str) -> Number:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    raise InputError(f"a list has numbers, got '{text}'")
