"""Noise in every pixel and channel."""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from assay.nn.data.corruptions._constants import constant


def gaussian_noise(x: Tensor, severity: int, generator: Generator) -> Tensor:
    """Normal noise, as in low light."""
    scale = constant(x, severity, (0.04, 0.06, 0.08, 0.09, 0.10), (0.08, 0.12, 0.18, 0.26, 0.38))
    return x + scale * torch.randn(x.shape, generator=generator).to(x.device)


def shot_noise(x: Tensor, severity: int, generator: Generator) -> Tensor:
    """Poisson noise, as from single photons."""
    photons = constant(x, severity, (500, 250, 100, 75, 50), (60, 25, 12, 5, 3))
    return torch.poisson(x.cpu() * photons, generator=generator).to(x.device) / photons


def impulse_noise(x: Tensor, severity: int, generator: Generator) -> Tensor:
    """Set some values to black or white."""
    share = constant(x, severity, (0.01, 0.02, 0.03, 0.05, 0.07), (0.03, 0.06, 0.09, 0.17, 0.27))
    u = torch.rand(x.shape, generator=generator).to(x.device)
    return torch.where(u < share, (u < share / 2).to(x), x)
