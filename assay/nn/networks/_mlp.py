"""A multilayer perceptron: two hidden layers of ReLUs over the flattened input."""

from __future__ import annotations

from torch import nn

from assay.nn.networks._network import Network


def mlp(n_classes: int, *, inputs: int, width: int = 128) -> Network:
    """Two hidden layers of `width` over samples of `inputs` numbers."""
    hidden = (nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
    return Network(nn.Sequential(nn.Flatten(), *hidden), nn.Linear(width, n_classes))
