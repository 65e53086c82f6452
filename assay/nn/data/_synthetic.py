"""Constructed data: classes whose true posterior is known, and images of noise."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Generator, Tensor

from assay.nn.data._samples import Cut, Facts, Samples, Splits, divide, samples
from assay.nn.data.corruptions import shifts

SEPARATION = 2.5


def gaussians(n: int, *, generator: Generator, n_classes: int = 10, separation: float = SEPARATION) -> Samples:
    """Classes of equal share around the corners of a simplex: x = separation * onehot(y) + N(0, 1), [n, n_classes]."""
    y = torch.randint(n_classes, (n,), generator=generator)
    x = torch.randn(n, n_classes, generator=generator)
    x[torch.arange(n), y] += separation
    return samples(x, y, Facts(tuple(str(k) for k in range(n_classes))))


def gaussian_logits(x: Tensor, *, separation: float = SEPARATION) -> Tensor:
    """Logits of the true posterior p(y | x): all other terms of log p(x | y) are the same for every class."""
    return separation * x


def synthetic(folder: Path | None, cut: Cut) -> Splits:
    """Ten Gaussians, 10,000 samples to train on and hold out and 10,000 to test; `gaussian_logits` is the posterior."""
    train, test = (gaussians(10_000, generator=Generator().manual_seed(seed)) for seed in (0, 1))
    return Splits(*divide(train, cut), test)


def noise_images(n_classes: int, side: int, *, n: int) -> Splits:
    """Images of noise [n, 3, side, side] with the first few labels, to try out training without data."""
    x = torch.randint(256, (n, 3, side, side), generator=Generator().manual_seed(0), dtype=torch.uint8)
    y = torch.arange(n) % min(n_classes, 4)
    made = samples(x, y, Facts(tuple(map(str, range(n_classes))), (0.5,) * 3, (0.25,) * 3))
    return Splits(made, made, made, shifts(made))
