"""The two kinds of map, and the report of a fit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from assay._core.arrays import Array, Floats, InputError
from assay._core.showing import html_table

LARGEST = 1e30  # number of a map


@dataclass(frozen=True)
class Candidate:
    """One of the calibrators that `auto` compared: its mean cross-validated loss, and how far it is from the best."""

    name: str
    loss: float
    behind: float  # how much worse than the best
    error: float  # standard error of that
    note: str = ""  # why it was not compared on all rows


@dataclass(frozen=True)
class Fit:
    """How a fit went."""

    objective: str  # what was minimized
    before: float | None  # its value without the map; None for a score that is no probability
    after: float
    iterations: int
    n: int
    at_bound: bool = False  # the optimum lies outside the range that was searched: do not rely on it
    chosen_from: tuple[Candidate, ...] = ()  # what `auto` compared
    rows: str = ""  # digest of the rows it was fitted on, if a command saved the map
    classes: tuple[str, ...] | None = None  # names of the classes, in the order of the map
    why: str = ""  # why `auto` chose it

    def __str__(self) -> str:
        bound = ", at a bound" if self.at_bound else ""
        before = "" if self.before is None else f"{self.before:.4f} -> "
        return f"{self.objective} {before}{self.after:.4f} on {self.n:,} samples{bound}"


@dataclass(frozen=True, eq=False)
class Fitted(ABC):
    """A fitted map; two maps of one kind are equal if all their numbers are."""

    fit: Fit

    @property
    @abstractmethod
    def keeps_label(self) -> bool:
        """Whether the predicted class never changes."""

    @property
    @abstractmethod
    def keeps_ranking(self) -> bool:
        """Whether samples always keep their order by confidence, without new ties."""

    def _repr_html_(self) -> str:
        kept = [name for name in ("label", "ranking") if getattr(self, f"keeps_{name}")]
        row = [type(self).__name__, str(self), " and ".join(kept) or "neither label nor ranking", str(self.fit)]
        return html_table("Calibration map", ["kind", "map", "keeps", "fit"], [row])

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(
            _equal(getattr(self, field.name), getattr(other, field.name)) for field in fields(self)
        )

    __hash__ = None  # type: ignore[assignment]


def require(holds: object, kind: Fitted, needs: str) -> None:
    """Refuse a map whose numbers would not work, wherever they come from."""
    if not holds:
        raise InputError(f"a {type(kind).__name__} needs {needs}")


def calculable(*numbers: Floats | float) -> bool:
    """Whether single precision can calculate with all numbers."""
    return all(bool((np.abs(x) <= LARGEST).all()) for x in numbers)


def divides(number: float) -> bool:
    """Whether single precision can divide by a number above 0."""
    return 1 / LARGEST <= number <= LARGEST


def rising(x: Floats) -> bool:
    """Whether there are numbers, in order."""
    return x.ndim == 1 and len(x) > 0 and bool((x[1:] >= x[:-1]).all()) and not np.isnan(x).any()


def probabilities(x: Floats) -> bool:
    """Whether all numbers are in [0, 1]."""
    return bool(((x >= 0) & (x <= 1)).all())


def _equal(a: object, b: object) -> bool:
    return np.array_equal(a, b) if isinstance(a, np.ndarray) and isinstance(b, np.ndarray) else a == b


@dataclass(frozen=True, eq=False)
class LogitMap(Fitted):
    """Logits [n, k] -> logits or log-probabilities [n, k], in the precision of the input, at least float32."""

    gives: ClassVar[Literal["logits", "log-probabilities", "as given"]]

    if TYPE_CHECKING:

        @property
        def n_classes(self) -> int: ...

    @abstractmethod
    def __call__(self, logits: Array) -> Array: ...


@dataclass(frozen=True, eq=False)
class ConfidenceMap(Fitted):
    """Confidence, or any score, [n] -> confidence [n], in the precision of the input, at least float32.

    Calculated in float64; the predicted class stays.
    """

    @property
    def keeps_label(self) -> bool:
        return True

    @abstractmethod
    def __call__(self, confidence: Array) -> Array: ...
