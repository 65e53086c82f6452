"""Names with values: `focal` with its own hyper-parameters, `focal,gamma=5.0` with another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from assay._core.arrays import InputError
from assay.nn.names import Value

Entry = str | dict[str, Value | list[Value]]
"""A name, or a table that names it, such as { recipe = "focal", gamma = [1, 3, 5] }: each value of a list in turn."""


@dataclass(frozen=True)
class Named:
    """A recipe, calibrator or score, and the hyper-parameters that replace its own."""

    name: str
    values: tuple[tuple[str, Value], ...] = ()

    def __str__(self) -> str:
        return ",".join([self.name, *(f"{name}={value}" for name, value in self.values)])


def each(kind: str, entries: Sequence[Entry]) -> list[Named]:
    """Every entry, with every combination of its values."""
    found = []
    for entry in entries:
        if isinstance(entry, str):
            found.append(Named(entry))
            continue
        if kind not in entry:
            raise InputError(f"a {kind} with values names it: {{ {kind} = ..., ... }}, got {entry}")
        axes = {name: value if isinstance(value, list) else [value] for name, value in entry.items() if name != kind}
        if not all(axes.values()):
            raise InputError(f"a list of values is empty: {entry}")
        found += [Named(str(entry[kind]), tuple(zip(axes, values, strict=True))) for values in product(*axes.values())]
    return found
