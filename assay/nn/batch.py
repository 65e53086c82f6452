"""What a training step sees, and what an objective is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor, nn


@dataclass(frozen=True, eq=False)
class Batch:
    """Samples of one step."""

    x: Tensor  # [b, ...]
    y: Tensor  # [b] labels
    index: Tensor  # [b] positions in the training set, for methods that remember samples
    epoch: int = 0  # from 0


@dataclass(frozen=True)
class Task:
    """What an objective may know before training."""

    n_samples: int
    n_classes: int
    epochs: int


Objective = Callable[[nn.Module, Batch], Tensor]
"""The scalar to minimize. SAM evaluates it twice a step: one with memory lets the first look at a sample in an epoch
stand, and has `state_dict` and `load_state_dict`."""
