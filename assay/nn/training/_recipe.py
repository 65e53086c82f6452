"""How to train: what to minimize, how to step, and which weights to keep (the last, the best, or an average)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from torch import Tensor, nn
from torch.optim import Optimizer

from assay._core.arrays import InputError
from assay.metrics import accuracy
from assay.nn.data import Sampler
from assay.nn.objectives import Objective, Task
from assay.nn.optim import Schedule, WeightAverage, constant, epoch_at, recompute_batch_norm, swa
from assay.predictions import Predictions


@dataclass(frozen=True)
class EpochEnd:
    """What a keeper sees after an epoch."""

    network: nn.Module
    epoch: int  # the one that ended, from 0
    epochs: int
    held_out: Callable[[], Predictions | None]  # None if no samples are held out


class Keeper(Protocol):
    """Sees the network before its recipe begins and after each epoch, and sets its final weights."""

    def refuse(self, epochs: int, *, held_out: int = 1) -> None:
        """Raise if so many epochs, or so many held-out samples, leave no weights to keep."""

    def begin(self, network: nn.Module) -> None:
        """See the network before the first epoch of the recipe."""

    def look(self, end: EpochEnd) -> None:
        """See the network after an epoch."""

    def has_average(self) -> bool:
        """Whether `finish` would now give the network weights that it never had, an average."""

    def finish(self, network: nn.Module, inputs: Iterable[Tensor]) -> None:
        """Give the network its final weights; `inputs` are those of an epoch of training."""

    def state_dict(self) -> dict[str, Any]:
        """The state that a resumed run needs."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a `state_dict`."""


def last() -> Keeper:
    """Keep the weights after the last epoch."""
    return _Last()


def best(by: Callable[[Predictions], float] = accuracy) -> Callable[[], Keeper]:
    """Keep the weights after the epoch of highest `by` on held-out predictions; of equal epochs, the first.

    An epoch of nan is never the best. If all are nan, as for a ranking without errors, the last weights are kept, with
    a warning.
    """
    return lambda: _Best(by)


def averaged(
    *, start: float, every: int = 1, count_start: bool = False, average: Callable[[], WeightAverage] = swa
) -> Callable[[], Keeper]:
    """Keep the average of the weights after epochs from the share `start` on, and recompute BatchNorm's statistics.

    `every` is the number of epochs between two of them: the length of a cycle of the learning rate. `count_start` also
    counts the weights that the recipe starts from, as Algorithm 1 of SWA does.
    """
    if every < 1 or every != int(every):
        raise InputError(f"weights are averaged every so many whole epochs, got {every}")
    if not 0 <= start < 1:
        raise InputError(f"averaging starts after a share of the training from 0 to below 1, got {start}")
    return lambda: _Averaged(start, int(every), count_start, average())


class _Last:
    def refuse(self, epochs: int, *, held_out: int = 1) -> None:
        pass

    def begin(self, network: nn.Module) -> None:
        pass

    def look(self, end: EpochEnd) -> None:
        pass

    def has_average(self) -> bool:
        return False

    def finish(self, network: nn.Module, inputs: Iterable[Tensor]) -> None:
        pass

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        pass


@dataclass
class _Best:
    by: Callable[[Predictions], float]
    value: float = float("-inf")
    weights: dict[str, Tensor] = field(default_factory=dict)

    def refuse(self, epochs: int, *, held_out: int = 1) -> None:
        if not held_out:
            raise InputError("the best weights are those best on held-out samples, of which there are none")

    def begin(self, network: nn.Module) -> None:
        pass

    def has_average(self) -> bool:
        return False

    def look(self, end: EpochEnd) -> None:
        held_out = end.held_out()
        assert held_out is not None, "refused before"
        value = self.by(held_out)
        if value > self.value:
            self.value = value
            self.weights = {name: w.detach().clone() for name, w in end.network.state_dict().items()}

    def finish(self, network: nn.Module, inputs: Iterable[Tensor]) -> None:
        if self.weights:
            network.load_state_dict(self.weights)
        else:
            warnings.warn("no epoch is best on held-out samples, all are nan; the last is kept", stacklevel=2)

    def state_dict(self) -> dict[str, Any]:
        return {"value": self.value, "weights": self.weights}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.value, self.weights = state["value"], state["weights"]


@dataclass
class _Averaged:
    start: float
    every: int
    count_start: bool
    average: WeightAverage

    def refuse(self, epochs: int, *, held_out: int = 1) -> None:
        left = epochs - epoch_at(self.start, epochs)
        if left < self.every:
            raise InputError(
                f"nothing is averaged every {self.every} epochs where only the last {left} of {epochs} are"
            )

    def begin(self, network: nn.Module) -> None:
        if self.count_start:
            self.average.update(network)

    def has_average(self) -> bool:
        return self.average.n > 0

    def look(self, end: EpochEnd) -> None:
        models = end.epoch + 1 - epoch_at(self.start, end.epochs)
        if models > 0 and models % self.every == 0:
            self.average.update(end.network)

    def finish(self, network: nn.Module, inputs: Iterable[Tensor]) -> None:
        self.average.copy_to(network)
        recompute_batch_norm(network, inputs)

    def state_dict(self) -> dict[str, Any]:
        return self.average.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.average.load_state_dict(state)


@dataclass(frozen=True)
class Recipe:
    """A way to train any classifier; `dataclasses.replace` makes a variation of it."""

    name: str  # in messages and in run.json
    objective: Callable[[Task], Objective]  # called once a run, so that runs never share memory
    optimizer: Callable[[nn.Module], Optimizer]
    epochs: int
    schedule: Schedule = constant  # called before every step, with fractions of epochs
    batch_size: int = 128  # of all processes together; a last batch of one sample joins the one before
    clip_norm: float | None = None
    sampler: Sampler | None = None  # (rows of a batch, all labels, randomness) -> rows to load
    keep: Callable[[], Keeper] = last
    start: Start | None = None  # None: from scratch
    augment: bool = True  # as is usual for the data set

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.clip_norm is not None and not self.clip_norm > 0:
            raise InputError(f"clip_norm must be > 0, got {self.clip_norm}")
        self.keep().refuse(self.epochs)


@dataclass(frozen=True)
class Start:
    """The weights of another recipe after a share of the epochs: its checkpoint, with a new optimizer."""

    recipe: Recipe
    share: float


@dataclass(frozen=True)
class Phase:
    """Epochs `first` to `end` - 1 of a run, which one recipe trains."""

    recipe: Recipe
    first: int
    end: int


def phases(recipe: Recipe, end: int | None = None) -> list[Phase]:
    """The recipes of a run in order: those of the start come first, at the same length and batch size."""
    end = recipe.epochs if end is None else end
    if recipe.start is None:
        return [Phase(recipe, 0, end)]
    first = epoch_at(recipe.start.share, recipe.epochs)
    same = replace(recipe.start.recipe, epochs=recipe.epochs, batch_size=recipe.batch_size, augment=recipe.augment)
    return [*phases(same, first), Phase(recipe, first, end)]
