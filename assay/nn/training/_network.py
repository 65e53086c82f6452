"""A network for the data: its weights drawn from a seed, checked against the samples, asked for predictions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from assay._core.arrays import InputError
from assay._core.outputs import logits_of
from assay.nn.data import Data, Inputs, Samples, batches, labeled_batches
from assay.nn.networks import Factory, build, network
from assay.nn.optim import modes_kept
from assay.predictions import Predictions

Call = tuple[nn.Linear, Tensor]
"""A layer and its input."""


def seed_of(*numbers: int) -> int:
    """One seed from several numbers, such as the seed of a run and an epoch; zeros at the end change nothing."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> 1)


def initialized(factory: Factory, samples: Samples, *, seed: int) -> nn.Module:
    """A network for such samples, its weights drawn from the seed alone."""
    some = next(batches(samples.first(1), 1)).x
    with torch.random.fork_rng([]):
        torch.manual_seed(seed_of(seed))
        facts = samples.facts
        extra = len(facts.extra_node_classes)
        return build(factory, samples.n_classes, some, facts.vectors, extra_node_classes=extra)


def fitting(name: str, samples: Samples, data: str, *, seed: int) -> nn.Module:
    """The network of that name, its weights drawn from the seed, after a trial on two of the samples."""
    first = samples.first(2)
    first = replace(first, y=torch.zeros_like(first.y))  # a class that every network has
    refusal = f"network '{name}' does not fit {data}"
    factory = network(name)
    try:
        made = initialized(factory, samples, seed=seed)
        _refuse_untrainable(made)
        logits = predict(made, first).values
    except InputError as problem:
        raise InputError(f"{name} on {data}: {problem}") from problem
    except (RuntimeError, ValueError, IndexError, TypeError, NotImplementedError) as problem:
        shape = list(next(batches(first, 2)).x.shape[1:])
        raise InputError(f"{refusal}, samples of shape {shape}: {str(problem).splitlines()[0]}") from problem
    if logits.shape[1] != samples.n_classes:
        raise InputError(f"{refusal}: {logits.shape[1]} logits for {samples.n_classes} classes")
    return made


def _refuse_untrainable(made: object) -> None:
    if not isinstance(made, nn.Module):
        raise InputError(f"a factory must give an nn.Module, and gave {type(made).__name__}")
    if not any(weight.requires_grad for weight in made.parameters()):
        raise InputError(f"{type(made).__name__} has no weights to train")


@torch.no_grad()
def predict(
    network: nn.Module, samples: Samples | Data, *, batch_size: int = 500, features: bool = False, workers: int = 0
) -> Predictions:
    """The network's predictions on the samples, in eval mode and its own precision; ids are their original positions.

    A torch Dataset or DataLoader of (x, y) or of dicts with `labels` is taken too; a dict goes to the network by name,
    and what the network calls `logits` are the logits. With `features`, the predictions have the inputs of its last
    linear layer, for scores that need them.
    """
    like = next(network.parameters(), torch.empty(0))
    logits: list[Tensor] = []
    labels: list[Tensor] = []
    inputs: list[Tensor] = []
    with modes_kept(network), _calls_of_linear(network, watched=features) as calls:
        network.eval()
        for x, y in _labeled(samples, batch_size, like.device, workers):
            found = logits_of(_called(network, x, like))
            if not isinstance(found, Tensor) or found.ndim != 2:
                shape = list(found.shape) if isinstance(found, Tensor) else f"a {type(found).__name__}"
                raise InputError(f"{type(network).__name__} must give logits [n, k], and gave {shape}")
            logits.append(found.cpu())
            labels.append(y.cpu())
            if features:
                inputs.append(_last(calls, network)[1].cpu())
            calls.clear()
    last = torch.cat(inputs) if features else None
    if not logits:
        raise InputError("there is no sample to predict")
    ids = samples.index if isinstance(samples, Samples) else None
    return Predictions.from_logits(torch.cat(logits), torch.cat(labels), ids=ids, features=last)


def _labeled(
    samples: Samples | Data, batch_size: int, device: torch.device, workers: int
) -> Iterator[tuple[Inputs, Tensor]]:
    if not isinstance(samples, Samples):
        return labeled_batches(samples, batch_size, workers)
    return ((batch.x, batch.y) for batch in batches(samples, batch_size, device=device, workers=workers))


def _called(network: nn.Module, x: Inputs, like: Tensor) -> Any:
    if isinstance(x, Mapping):
        return network(**{name: as_weights(value.to(like.device), like) for name, value in x.items()})
    return network(as_weights(x.to(like.device), like))


@contextmanager
def weights_kept(network: nn.Module) -> Iterator[None]:
    """Inside the block weights and statistics may change; after it, the network has its own again."""
    kept = {name: w.detach().clone() for name, w in network.state_dict().items()}
    try:
        yield
    finally:
        network.load_state_dict(kept)


def as_weights(x: Tensor, like: Tensor) -> Tensor:
    """Inputs in the precision of the weights, and in their layout; words and trees stay whole numbers."""
    last = x.ndim == like.ndim == 4 and like.is_contiguous(memory_format=torch.channels_last)
    layout = torch.channels_last if last else torch.preserve_format
    return x.to(like.dtype, memory_format=layout) if x.is_floating_point() else x


@torch.no_grad()
def last_linear(network: nn.Module, samples: Samples) -> nn.Linear:
    """The linear layer that such samples reach last: in a classifier, the one that gives the logits."""
    like = next(network.parameters(), torch.empty(0))
    with modes_kept(network), _calls_of_linear(network) as calls:
        network.eval()
        network(as_weights(next(batches(samples.first(1), 1, device=like.device)).x, like))
    return _last(calls, network)[0]


def _last(calls: list[Call], network: nn.Module) -> Call:
    if not calls:
        raise InputError(f"{type(network).__name__} has no linear layer, so none is its last")
    return calls[-1]


@contextmanager
def _calls_of_linear(network: nn.Module, *, watched: bool = True) -> Iterator[list[Call]]:
    """Inside the block, if `watched`, each call of a linear layer is added to the list."""
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
