"""From a network and samples to predictions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from assay._core.arrays import InputError
from assay.nn.data import Samples, batches
from assay.nn.optim import modes_kept
from assay.predictions import Predictions


@torch.no_grad()
def predict(
    network: nn.Module, samples: Samples, *, batch_size: int = 500, features: bool = False, workers: int = 0
) -> Predictions:
    """What the network says about the samples, in eval mode and its own precision; ids are their original positions.

    With `features` what enters its last linear layer is kept, for scores that need it.
    """
    like = next(network.parameters(), torch.empty(0))
    logits: list[Tensor] = []
    entering: list[Tensor] = []
    with modes_kept(network), _calls_of_linear(network, watched=features) as calls:
        network.eval()
        for batch in batches(samples, batch_size, device=like.device, workers=workers):
            found = network(as_weights(batch.x, like))
            if not isinstance(found, Tensor) or found.ndim != 2:
                shape = list(found.shape) if isinstance(found, Tensor) else f"a {type(found).__name__}"
                raise InputError(f"{type(network).__name__} must give logits [n, k], and gave {shape}")
            logits.append(found.cpu())
            if features:
                entering.append(_last(calls, network)[1].cpu())
            calls.clear()
    seen = torch.cat(entering) if features else None
    return Predictions.from_logits(torch.cat(logits), samples.y, ids=samples.index, features=seen)


def as_weights(x: Tensor, like: Tensor) -> Tensor:
    """Inputs in the precision of the weights; words and trees stay whole numbers."""
    return x.to(like.dtype) if x.is_floating_point() else x


@torch.no_grad()
def last_linear(network: nn.Module, samples: Samples) -> nn.Linear:
    """The linear layer that such samples come to last, which of a classifier is the one that gives the logits."""
    like = next(network.parameters(), torch.empty(0))
    with modes_kept(network), _calls_of_linear(network) as calls:
        network.eval()
        network(as_weights(next(batches(samples[torch.arange(1)], 1, device=like.device)).x, like))
    return _last(calls, network)[0]


Call = tuple[nn.Linear, Tensor]
"""A layer and what entered it."""


def _last(calls: list[Call], network: nn.Module) -> Call:
    if not calls:
        raise InputError(f"{type(network).__name__} has no linear layer, so none is its last")
    return calls[-1]


@contextmanager
def _calls_of_linear(network: nn.Module, *, watched: bool = True) -> Iterator[list[Call]]:
    """Within it, what enters each linear layer is added to the list, in the order of the calls, if it is watched."""
    calls: list[Call] = []
    layers = [module for module in network.modules() if watched and isinstance(module, nn.Linear)]
    hooks = [
        layer.register_forward_pre_hook(lambda layer, inputs: calls.append((layer, inputs[0]))) for layer in layers
    ]
    try:
        yield calls
    finally:
        for hook in hooks:
            hook.remove()
