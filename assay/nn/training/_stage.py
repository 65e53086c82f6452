"""One recipe while it trains a network: an epoch, a step, and the state that a resumed run needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.amp import GradScaler
from torch.nn.utils import clip_grad_norm_

from assay._core.arrays import InputError
from assay.nn.objectives import Batch, Task
from assay.nn.optim import scaled_step
from assay.nn.training._recipe import Recipe

CHECK = 64  # steps between two checks that the loss is finite: on a GPU a check waits for the step


class Diverged(InputError):
    """The loss is no longer finite."""


class Stage:
    """Objective, optimizer and keeper of one recipe while it trains `network`; `model` is its wrapper on devices."""

    def __init__(
        self,
        recipe: Recipe,
        task: Task,
        network: nn.Module,
        model: nn.Module,
        backward: Callable[[Tensor], None],
        scaler: GradScaler | None = None,
    ) -> None:
        self.recipe, self.network, self.model = recipe, network, model
        self.backward, self.scaler = backward, scaler  # backward scales the loss if there is a scaler
        self.objective = recipe.objective(task)
        self.optimizer = recipe.optimizer(network)
        self.keeper = recipe.keep()
        self.rates = [group["lr"] for group in self.optimizer.param_groups]

    def epoch(
        self, epoch: int, batches: Iterable[Batch], weights: list[float], announce: Callable[[Batch, float], None]
    ) -> Tensor:
        """Make a step for each batch and return the weighted losses, [steps]."""
        losses: list[Tensor] = []
        self.network.train()
        for step, (batch, weight) in enumerate(zip(batches, weights, strict=True)):
            self.set_rate(epoch + step / len(weights))
            announce(batch, weight * self._scale())
            losses.append(self.step(batch, weight))
            if step % CHECK == CHECK - 1:
                self._refuse_infinite(losses, epoch)
        return self._refuse_infinite(losses, epoch)

    def step(self, batch: Batch, weight: float) -> Tensor:
        """Step along the gradient of the weighted loss of a batch and return that loss; SAM evaluates it twice."""

        def closure() -> Tensor:
            self.optimizer.zero_grad()
            loss = self._loss(batch) * weight
            self.backward(loss)
            if self.recipe.clip_norm is not None:
                clip_grad_norm_(self.network.parameters(), self.recipe.clip_norm * self._scale())
            return loss.detach()

        if self.scaler is not None:
            return scaled_step(self.optimizer, closure, self.scaler)
        loss: Tensor = self.optimizer.step(closure)  # type: ignore[arg-type, assignment]  # stubs know only floats
        return loss

    def _scale(self) -> float:
        """How many times larger gradients are than those of the loss."""
        return 1.0 if self.scaler is None else self.scaler.get_scale()

    def _loss(self, batch: Batch) -> Tensor:
        try:
            return self.objective(self.model, batch)
        except ValueError as problem:
            if len(batch.index) > 1:
                raise
            # BatchNorm has no variance of one sample, unless an image has several positions.
            alone = "a step has one sample alone; choose another batch size"
            raise InputError(f"recipe {self.recipe.name}: {problem}: {alone}") from problem

    def set_rate(self, epoch: float) -> None:
        """Set the learning rate of the schedule at a fraction of epochs."""
        for group, rate in zip(self.optimizer.param_groups, self.rates, strict=True):
            group["lr"] = rate * self.recipe.schedule(epoch, self.recipe.epochs)

    def state_dict(self) -> dict[str, Any]:
        """The state that a resumed run needs."""
        scaled = {} if self.scaler is None else {"scaler": self.scaler.state_dict()}
        return {
            "objective": self.objective.state_dict() if hasattr(self.objective, "state_dict") else None,
            "optimizer": self.optimizer.state_dict(),
            "keeper": self.keeper.state_dict(),
            **scaled,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a `state_dict`."""
        if hasattr(self.objective, "load_state_dict"):
            self.objective.load_state_dict(state["objective"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.keeper.load_state_dict(state["keeper"])
        if self.scaler is not None:
            self.scaler.load_state_dict(state["scaler"])

    def _refuse_infinite(self, losses: list[Tensor], epoch: int) -> Tensor:
        found = torch.stack(losses)
        wrong = (~found.isfinite()).nonzero()
        if len(wrong):
            step = int(wrong[0])
            raise Diverged(f"recipe {self.recipe.name}: the loss is {found[step]:g} in epoch {epoch}, batch {step}")
        return found
