"""Constants of each severity: those of CIFAR-10-C, and for images of 224 pixels and more those of ImageNet-C."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from torch import Tensor

Constant = TypeVar("Constant")
LARGE = 224  # pixels of a side, for which the constants of ImageNet-C are meant


def constant(x: Tensor, severity: int, cifar: Sequence[Constant], imagenet: Sequence[Constant]) -> Constant:
    """The constant of a severity for images of this size."""
    return (imagenet if is_large(x) else cifar)[severity - 1]


def is_large(x: Tensor) -> bool:
    """Whether both sides of the images have at least 224 pixels."""
    return min(x.shape[2:]) >= LARGE


def enlargement(x: Tensor) -> float:
    """By how much lengths grow: images of CIFAR-10 have 32 pixels, ImageNet-C has lengths of its own."""
    return 1.0 if is_large(x) else max(1.0, min(x.shape[2:]) / 32)
