"""What an objective is, what a training step sees, and how a loss becomes an objective."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from torch import Tensor, nn

from assay._core.arrays import InputError
from assay.nn.losses import Loss

NODE_LABEL = 4  # index of a node's label in the last dimension of a batch of trees; -1 if it has none


@dataclass(frozen=True, eq=False)
class Batch:
    """Samples of one step."""

    x: Tensor  # [b, ...]
    y: Tensor  # [b] labels
    index: Tensor  # [b] positions in the training set, for methods that remember samples
    epoch: int | None = None  # from 0; methods that change or remember from epoch to epoch need it

    def known_epoch(self, method: str) -> int:
        """The epoch, for a method that would silently do another thing without it."""
        if self.epoch is None:
            raise InputError(f"{method} needs the epoch of each batch: Batch(x, y, index, epoch)")
        return self.epoch


@dataclass(frozen=True)
class Task:
    """What an objective knows before training."""

    n_samples: int
    n_classes: int
    epochs: int


Objective = Callable[[nn.Module, Batch], Tensor]
"""The scalar to minimize. SAM evaluates it twice a step: an objective with memory keeps the first evaluation of a
sample in an epoch, and has `state_dict` and `load_state_dict`."""


def of_loss(loss: Loss) -> Callable[[Task], Objective]:
    """Minimize `loss(model(x), y)`; `functools.partial` sets hyper-parameters.

    >>> from functools import partial
    >>> from assay.nn.losses import cross_entropy, focal, mmce, with_secondary
    >>> plain = of_loss(cross_entropy)
    >>> gamma_5 = of_loss(partial(focal, gamma=5.0))
    >>> with_mmce = of_loss(with_secondary(cross_entropy, mmce, beta=2.0))
    """

    def objective(model: nn.Module, batch: Batch) -> Tensor:
        return loss(model(batch.x), batch.y)

    return lambda task: objective


def every_node(loss: Loss) -> Callable[[Task], Objective]:
    """Minimize the sum of `loss`, a mean over samples, over the labeled nodes of a tree; mean over the trees.

    For networks with `nodes(x) -> logits [b, nodes, k]`, such as the Tree-LSTM of Improved semantic representations
    from tree-structured long short-term memory networks (Tai, Socher & Manning, ACL 2015), whose code sums likewise.
    """

    def objective(model: nn.Module, batch: Batch) -> Tensor:
        if not hasattr(model, "nodes"):
            raise InputError("the loss is of every node of a tree, and this network gives none; take one over trees")
        nodes = cast(Callable[[Tensor], Tensor], model.nodes)
        labels = batch.x[..., NODE_LABEL]
        labeled = labels >= 0
        return loss(nodes(batch.x)[labeled], labels[labeled]) * labeled.sum() / len(labels)

    return lambda task: objective
