"""A network that fits the data, or a line that says why it does not."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import nn

from assay._core.arrays import InputError
from assay.nn.data import Samples, batches
from assay.nn.networks import network
from assay.nn.training._predict import predict
from assay.nn.training._seeds import initialized


def fitting(name: str, samples: Samples, data: str, *, seed: int) -> nn.Module:
    """The network of that name, its weights drawn from the seed, once it has given logits for two of the samples."""
    first = samples[torch.arange(min(2, len(samples)))]
    first = replace(first, y=torch.zeros_like(first.y))  # a class that any network has
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
