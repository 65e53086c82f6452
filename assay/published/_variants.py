"""Variants of recipes, calibrators and scores: the one place that writes and parses names such as focal,gamma=5."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from assay.nn.names import Value


@dataclass(frozen=True)
class Variant:
    """A recipe, calibrator or score, and the hyper-parameters that replace its own, in any order.

    >>> str(Variant("focal", {"gamma": 5.0}, setup="mukhoti2020"))
    'focal@mukhoti2020,gamma=5.0'
    """

    name: str
    values: Mapping[str, Value] = field(default_factory=dict)
    setup: str | None = None  # of a recipe; None is the set-up of zhu2022

    @property
    def full_name(self) -> str:
        """The name with the set-up, as `assay.nn.recipes.recipe` takes it."""
        return self.name if self.setup is None else f"{self.name}@{self.setup}"

    def __str__(self) -> str:
        return ",".join([self.full_name, *(f"{name}={value}" for name, value in self.values.items())])

    def __hash__(self) -> int:
        return hash((self.name, self.setup, frozenset(self.values.items())))


def parse_variant(text: str) -> Variant:
    """Read a variant from a study file, the command line or a published table.

    >>> parse_variant("focal@mukhoti2020,gamma=5.0") == parse_variant("focal@mukhoti2020(gamma=5)")
    True
    """
    full_name = re.split(r"[(,]", text, maxsplit=1)[0]
    name, _, setup = full_name.partition("@")
    values = re.findall(r"(\w+)=(\([^)]*\)|[^,)]*)", text.removeprefix(full_name))
    return Variant(name, {key: _value(value) for key, value in values}, setup or None)


def _value(text: str) -> Value:
    if text in ("True", "False"):
        return text == "True"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text
