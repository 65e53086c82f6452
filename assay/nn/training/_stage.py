"""A recipe at work: its objective, optimizer and keeper, an epoch and a step of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_

from assay._core.arrays import InputError
from assay.nn.batch import Batch, Task
from assay.nn.training._recipe import Recipe

CHECK = 64  # steps from one look at whether the loss is finite to the next: on a GPU a look waits for the step


class Diverged(InputError):
    """The loss is no longer finite."""


class Stage:
    """What one recipe has in hand while it trains a network; `model` is what runs it, on a device or several."""

    def __init__(
        self, recipe: Recipe, task: Task, network: nn.Module, model: nn.Module, backward: Callable[[Tensor], None]
    ) -> None:
        self.recipe, self.network, self.model, self.backward = recipe, network, model, backward
        self.objective = recipe.objective(task)
        self.optimizer = recipe.optimizer(network)
        self.keeper = recipe.keep()
        self.rates = [group["lr"] for group in self.optimizer.param_groups]

    def epoch(
        self, epoch: int, batches: Iterable[Batch], weights: list[float], tell: Callable[[Batch, float], None]
    ) -> Tensor:
        """Step along all batches and return their weighted losses, [steps]."""
        losses: list[Tensor] = []
        self.network.train()
        for step, (batch, weight) in enumerate(zip(batches, weights, strict=True)):
            self.set_rate(epoch + step / len(weights))
            tell(batch, weight)
            losses.append(self.step(batch, weight))
            if step % CHECK == CHECK - 1:
                self._refuse_infinite(losses, epoch)
        return self._refuse_infinite(losses, epoch)

    def step(self, batch: Batch, weight: float) -> Tensor:
        """Step along the gradient of the weighted loss of a batch, which is returned; SAM looks at it twice."""

        def closure() -> Tensor:
            self.optimizer.zero_grad()
            loss = self._loss(batch) * weight
            self.backward(loss)
            if self.recipe.clip_norm is not None:
                clip_grad_norm_(self.network.parameters(), self.recipe.clip_norm)
            return loss.detach()

        loss: Tensor = self.optimizer.step(closure)  # type: ignore[arg-type, assignment]  # stubs know only floats
        return loss

    def _loss(self, batch: Batch) -> Tensor:
        try:
            return self.objective(self.model, batch)
        except ValueError as problem:
            if len(batch.index) > 1:
                raise
            # Of one sample BatchNorm has no variance, unless there are several places to an image.
            alone = "a step has one sample alone; choose another batch size"
            raise InputError(f"recipe {self.recipe.name}: {problem}: {alone}") from problem

    def set_rate(self, epoch: float) -> None:
        """Set the learning rate to that of the schedule at a fraction of epochs."""
        for group, rate in zip(self.optimizer.param_groups, self.rates, strict=True):
            group["lr"] = rate * self.recipe.schedule(epoch, self.recipe.epochs)

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs."""
        return {
            "objective": self.objective.state_dict() if hasattr(self.objective, "state_dict") else None,
            "optimizer": self.optimizer.state_dict(),
            "keeper": self.keeper.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a `state_dict`."""
        if hasattr(self.objective, "load_state_dict"):
            self.objective.load_state_dict(state["objective"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.keeper.load_state_dict(state["keeper"])

    def _refuse_infinite(self, losses: list[Tensor], epoch: int) -> Tensor:
        found = torch.stack(losses)
        wrong = (~found.isfinite()).nonzero()
        if len(wrong):
            step = int(wrong[0])
            raise Diverged(f"recipe {self.recipe.name}: the loss is {found[step]:g} in epoch {epoch}, batch {step}")
        return found
