"""The two kinds of map, and the report of a fit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import torch
from torch import Tensor


@dataclass(frozen=True)
class Candidate:
    """A calibrator that was weighed against others: its mean loss where it was not fitted, and how sure that is."""

    name: str
    loss: float
    behind: float  # how much worse than the best
    error: float  # standard error of that


@dataclass(frozen=True)
class Fit:
    """How a fit went."""

    objective: str  # what was minimized
    before: float | None  # its value without the map; a score that is no probability has none
    after: float
    iterations: int
    n: int
    at_bound: bool = False  # the optimum lies beyond what was searched: not to be relied on
    chosen_from: tuple[Candidate, ...] = ()  # where the calibrator itself was chosen
    rows: str = ""  # a digest of what it was fitted on, where the map was saved by a command
    classes: tuple[str, ...] | None = None  # what they were called there, in the order of the map

    def __str__(self) -> str:
        bound = ", at a bound" if self.at_bound else ""
        before = "" if self.before is None else f"{self.before:.4f} -> "
        return f"{self.objective} {before}{self.after:.4f} on {self.n:,} samples{bound}"


@dataclass(frozen=True, eq=False)
class Fitted(ABC):
    """What every map is: equal to another of its kind with equal numbers."""

    fit: Fit

    @property
    @abstractmethod
    def keeps_label(self) -> bool:
        """Whether the predicted class is always the same."""

    @property
    @abstractmethod
    def keeps_ranking(self) -> bool:
        """Whether samples keep their order by confidence, whatever their logits, none being tied that were not."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(
            _equal(getattr(self, field.name), getattr(other, field.name)) for field in fields(self)
        )

    __hash__ = None  # type: ignore[assignment]


def _equal(a: object, b: object) -> bool:
    return torch.equal(a, b) if isinstance(a, Tensor) and isinstance(b, Tensor) else a == b


@dataclass(frozen=True, eq=False)
class LogitMap(Fitted):
    """Logits [n, k] -> logits or log-probabilities [n, k]."""

    gives: ClassVar[Literal["logits", "log-probabilities", "as given"]]

    if TYPE_CHECKING:

        @property
        def n_classes(self) -> int: ...

    @abstractmethod
    def __call__(self, logits: Tensor) -> Tensor: ...


@dataclass(frozen=True, eq=False)
class ConfidenceMap(Fitted):
    """Confidence, or any score, [n] -> confidence [n]; the label stays."""

    @property
    def keeps_label(self) -> bool:
        return True

    @abstractmethod
    def __call__(self, confidence: Tensor) -> Tensor: ...

    @staticmethod
    def by_row(maps: Sequence[Any], rows: Tensor) -> Tensor:
        """Each of the rows [k, n] by a map of its own; all are of this kind."""
        return torch.stack([mapping(row) for mapping, row in zip(maps, rows, strict=True)])
