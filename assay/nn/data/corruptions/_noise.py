"""Noise in every pixel and channel."""

from __future__ import annotations

import torch
from torch import Generator, Tensor


def gaussian_noise(x: Tensor, severity: int, generator: Generator) -> Tensor:
    """Normal noise, as in low light."""
    scale = (0.04, 0.06, 0.08, 0.09, 0.10)[severity - 1]
    return x + scale * torch.randn(x.shape, generator=generator).to(x.device)


def shot_noise(x: Tensor, severity: int, generator: Generator) -> Tensor:
    """Poisson noise, as from single photons."""
    photons = (500, 250, 100, 75, 50)[severity - 1]
    return torch.poisson(x.cpu() * photons, generator=generator).to(x.device) / photons


def impulse_noise(x: Tensor, severity: int, generator: Generator) -> Tensor:
    """Set some values to black or white."""
    share = (0.01, 0.02, 0.03, 0.05, 0.07)[severity - 1]
    u = torch.rand(x.shape, generator=generator).to(x.device)
    return torch.where(u < share, (u < share / 2).to(x), x)
