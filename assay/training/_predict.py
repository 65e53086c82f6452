"""From a network and samples to predictions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from assay.arrays import InputError
from assay.data import Samples, batches
from assay.predictions import Predictions


@torch.no_grad()
def predict(
    network: nn.Module, samples: Samples, *, batch_size: int = 500, features: bool = False, workers: int = 0
) -> Predictions:
    """What the network says about the samples, in eval mode and its own precision; ids are their original positions.

    With `features` what enters its last linear layer is kept, for scores that need it.
    """
    like = next(network.parameters())
    logits: list[Tensor] = []
    entering: list[Tensor] = []
    with _evaluating(network), _inputs_of_last(network, entering if features else None):
        for batch in batches(samples, batch_size, device=like.device, workers=workers):
            logits.append(network(as_weights(batch.x, like)).cpu())
    seen = torch.cat(entering) if features else None
    return Predictions.from_logits(torch.cat(logits), samples.y, ids=samples.index, features=seen)


def as_weights(x: Tensor, like: Tensor) -> Tensor:
    """Inputs in the precision of the weights; words and trees stay whole numbers."""
    return x.to(like.dtype) if x.is_floating_point() else x


def last_linear(network: nn.Module) -> nn.Linear:
    """The last linear layer, which of a classifier is the one that gives the logits."""
    layers = [module for module in network.modules() if isinstance(module, nn.Linear)]
    if not layers:
        raise InputError(f"{type(network).__name__} has no linear layer, so none is its last")
    return layers[-1]


@contextmanager
def _evaluating(network: nn.Module) -> Iterator[None]:
    """Within it the network is in eval mode; each module's own mode comes back after."""
    modes = {module: module.training for module in network.modules()}
    network.eval()
    try:
        yield
    finally:
        for module, training in modes.items():
            module.training = training


@contextmanager
def _inputs_of_last(network: nn.Module, seen: list[Tensor] | None) -> Iterator[None]:
    """Within it, what enters the last linear layer is added to `seen`, if there is such a list."""
    if seen is None:
        yield
        return
    hook = last_linear(network).register_forward_hook(lambda _, inputs, __: seen.append(inputs[0].cpu()))
    try:
        yield
    finally:
        hook.remove()
