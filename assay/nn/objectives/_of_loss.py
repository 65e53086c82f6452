"""An objective from a loss: of the model's logits for the batch, or for every node of its trees."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from torch import Tensor, nn

from assay._core.arrays import InputError
from assay.nn.batch import Batch, Objective, Task
from assay.nn.losses import Loss

NODE_LABEL = 4  # place of a node's label in the last dimension of a batch of trees; -1 where it has none


def of_loss(loss: Loss) -> Callable[[Task], Objective]:
    """Minimize `loss(model(x), y)`; hyper-parameters are given by `functools.partial`.

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
