"""Which weights a run ends with: the last, those best on held-out data, or an average."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from torch import Tensor, nn

from assay._core.arrays import InputError
from assay.nn.optim import WeightAverage, recompute_batch_norm, swa
from assay.predictions import Predictions


@dataclass(frozen=True)
class EpochEnd:
    """What a keeper may look at after an epoch."""

    network: nn.Module
    epoch: int  # that has ended, from 0
    epochs: int
    held_out: Callable[[], Predictions | None]  # None where no samples are held out


class Keeper(Protocol):
    """Looks at the network after each epoch, and gives it the kept weights in the end."""

    def refuse(self, epochs: int, *, held_out: int = 1) -> None:
        """Raise if a training of so many epochs, or so many held-out samples, leave it nothing to keep."""

    def look(self, end: EpochEnd) -> None:
        """Take note of the network after an epoch."""

    def finish(self, network: nn.Module, inputs: Iterable[Tensor]) -> None:
        """Give the network the kept weights; `inputs` are those of an epoch of training."""

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a `state_dict`."""


def epoch_at(share: float, epochs: int) -> int:
    """The epoch, from 0, that begins once a share of the training is done; never beyond the last."""
    return min(round(share * epochs), epochs - 1)


def last() -> Keeper:
    """Keep the weights after the last epoch."""
    return _Last()


def best(by: Callable[[Predictions], float] | None = None) -> Callable[[], Keeper]:
    """Keep the weights after the epoch of highest `by` on held-out predictions, by default accuracy; the first wins.

    An epoch of nan is never the best; where all are, as of a ranking without errors, the last is kept, with a warning.
    """
    return lambda: _Best(by or _accuracy)


def averaged(*, start: float, every: int = 1, average: Callable[[], WeightAverage] = swa) -> Callable[[], Keeper]:
    """Keep the average of the weights after epochs from the share `start` on, with BatchNorm's statistics made anew.

    `every` is the number of epochs from one of them to the next: the length of a cycle of the learning rate.
    """
    return lambda: _Averaged(start, every, average())


class _Last:
    def refuse(self, epochs: int, *, held_out: int = 1) -> None:
        pass

    def look(self, end: EpochEnd) -> None:
        pass

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
    average: WeightAverage

    def refuse(self, epochs: int, *, held_out: int = 1) -> None:
        left = epochs - epoch_at(self.start, epochs)
        if left < self.every:
            raise InputError(
                f"nothing is averaged every {self.every} epochs where only the last {left} of {epochs} are"
            )

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


def _accuracy(predictions: Predictions) -> float:
    return float(predictions.outcomes().correct.double().mean())
