"""Averaging weights leads to wider optima and better generalization (Izmailov et al., UAI 2018): SWA; and EMA."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.parallel import DataParallel, DistributedDataParallel

from assay.nn.optim._modes import modes_kept


def plain_parameters(model: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
    """The parameters by the names they have in the model itself, which `torch.compile` and DDP wrap."""
    while isinstance(model, DistributedDataParallel | DataParallel):
        model = model.module
    for name, p in model.named_parameters():
        # A compiled model, or part of one, is called _orig_mod in its wrapper; DDP may be inside of it.
        yield name.replace("_orig_mod.", "").removeprefix("module." if _compiles_ddp(model) else ""), p


def _compiles_ddp(model: nn.Module) -> bool:
    return isinstance(getattr(model, "_orig_mod", None), DistributedDataParallel | DataParallel)


class WeightAverage:
    """A running average of a model's parameters; the model itself is not touched until `copy_to`.

    `share` gives, of the number of models averaged so far, the weight of the next one. The average of one model is that
    model, bit for bit. Buffers are not averaged: BatchNorm's are wrong for averaged weights, and
    `recompute_batch_norm` makes them anew.

    >>> model = nn.Linear(1, 1, bias=False)
    >>> average = swa()
    >>> for weight in (1.0, 2.0, 6.0):
    ...     _ = nn.init.constant_(model.weight, weight)
    ...     average.update(model)
    >>> average.copy_to(model)
    >>> model.weight.item()
    3.0
    """

    def __init__(self, share: Callable[[int], float]) -> None:
        self.share = share
        self.n = 0
        self.weights: dict[str, Tensor] = {}

    @torch.no_grad()
    def update(self, model: nn.Module) -> None:
        """Take the model's present parameters into the average."""
        if self.n == 0:
            self.weights = {name: p.detach().clone() for name, p in plain_parameters(model)}
        else:
            for name, p in plain_parameters(model):
                # A checkpoint is read to the CPU, so a resumed average comes from there.
                self.weights[name] = self.weights[name].to(p.device).lerp_(p, self.share(self.n))
        self.n += 1

    @torch.no_grad()
    def copy_to(self, model: nn.Module) -> None:
        """Give the model the averaged parameters."""
        if self.n == 0:
            raise ValueError("no model was averaged yet")
        for name, p in plain_parameters(model):
            p.copy_(self.weights[name])

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs."""
        return {"n": self.n, "weights": self.weights}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state_dict`."""
        self.n = state["n"]
        self.weights = {name: w.clone() for name, w in state["weights"].items()}


def swa() -> WeightAverage:
    """The mean of all models, (w n + w') / (n + 1): stochastic weight averaging."""
    return WeightAverage(lambda n: 1 / (n + 1))


def ema(decay: float = 0.999) -> WeightAverage:
    """The exponential moving average decay w + (1 - decay) w', which starts at the first model."""
    if not 0 <= decay < 1:
        raise ValueError(f"decay must be in [0, 1), got {decay}")
    return WeightAverage(lambda n: 1 - decay)


@torch.no_grad()
def recompute_batch_norm(model: nn.Module, batches: Iterable[Tensor]) -> None:
    """Give BatchNorm the mean statistics of the inputs `batches`, by one pass in train mode.

    A batch of b after n samples enters with weight b / (n + b), so every sample counts the same. The mode and momentum
    of each module come back as they were, also after an error; a model without BatchNorm is not run.
    """
    norms = [m for m in model.modules() if isinstance(m, _BatchNorm) and m.track_running_stats]
    if not norms:
        return
    momenta, seen = [m.momentum for m in norms], 0
    try:
        with modes_kept(model):
            model.train()
            for x in batches:
                for m in norms:
                    if not seen:
                        m.reset_running_stats()
                    m.momentum = len(x) / (seen + len(x))
                model(x)
                seen += len(x)
    finally:
        for m, momentum in zip(norms, momenta, strict=True):
            m.momentum = momentum
    if not seen:
        raise ValueError("no batch to recompute BatchNorm's statistics from; an iterator gives its batches only once")
