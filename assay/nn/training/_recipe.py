"""How to train: what to minimize, how to step, which weights to keep."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from torch import nn
from torch.optim import Optimizer

from assay._core.arrays import InputError
from assay.nn.batch import Objective, Task
from assay.nn.data import Sampler
from assay.nn.optim import Schedule, constant
from assay.nn.training._keeping import Keeper, epoch_at, last


@dataclass(frozen=True)
class Recipe:
    """A way to train any classifier; `dataclasses.replace` makes a variation of it."""

    name: str  # in messages and in run.json
    objective: Callable[[Task], Objective]  # called once a run, so that memory is never shared
    optimizer: Callable[[nn.Module], Optimizer]
    epochs: int
    schedule: Schedule = constant  # asked before every step, at fractions of epochs
    batch_size: int = 128  # of all processes together; a last batch of one sample joins the one before
    clip_norm: float | None = None
    sampler: Sampler | None = None  # (rows of a batch, all labels, randomness) -> rows to load
    keep: Callable[[], Keeper] = last
    start: Start | None = None  # None: from scratch
    augment: bool = True  # as is usual for the data set

    def __post_init__(self) -> None:
        for field in ("epochs", "batch_size"):
            if getattr(self, field) < 1:
                raise InputError(f"{field} must be at least 1, got {getattr(self, field)}")
        if self.clip_norm is not None and not self.clip_norm > 0:
            raise InputError(f"clip_norm must be > 0, got {self.clip_norm}")
        self.keep().refuse(self.epochs)


@dataclass(frozen=True)
class Start:
    """The weights that another recipe has reached after a share of the epochs: its checkpoint, with a new optimizer."""

    recipe: Recipe
    share: float


@dataclass(frozen=True)
class Phase:
    """Epochs `first` to `end` - 1 of a run are those of one recipe."""

    recipe: Recipe
    first: int
    end: int


def phases(recipe: Recipe, end: int | None = None) -> list[Phase]:
    """Which recipe trains when: those that give the start come first, at the same length and batch size."""
    end = recipe.epochs if end is None else end
    if recipe.start is None:
        return [Phase(recipe, 0, end)]
    first = epoch_at(recipe.start.share, recipe.epochs)
    same = replace(recipe.start.recipe, epochs=recipe.epochs, batch_size=recipe.batch_size, augment=recipe.augment)
    return [*phases(same, first), Phase(recipe, first, end)]
