"""Patches are all you need? Asher Trockman, Zico Kolter; TMLR 2023."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from assay.nn.networks._network import Network, Sum, global_pool


class Margins(nn.Module):
    """Zeros around an image such that a kernel of any size, odd or even, keeps its size."""

    def __init__(self, kernel: int):
        super().__init__()
        before = (kernel - 1) // 2
        self.widths = 2 * (before, kernel - 1 - before)

    def forward(self, x: Tensor) -> Tensor:
        return F.pad(x, self.widths)


def convmixer_256_16(n_classes: int, *, channels: int = 3) -> Network:
    """ConvMixer of width 256 and depth 16, kernel 8, patches of one pixel (Zhu et al. 2022)."""
    return _convmixer(n_classes, channels, depth=16, kernel=8, patch=1)


def convmixer_256_8(n_classes: int, *, channels: int = 3) -> Network:
    """ConvMixer of width 256 and depth 8, kernel 5, patches of two pixels, as its authors have it for CIFAR-10."""
    return _convmixer(n_classes, channels, depth=8, kernel=5, patch=2)


def _convmixer(n_classes: int, channels: int, *, depth: int, kernel: int, patch: int, width: int = 256) -> Network:
    def mixer() -> nn.Module:
        space = nn.Sequential(Margins(kernel), nn.Conv2d(width, width, kernel, groups=width), *_gelu_bn(width))
        return nn.Sequential(Sum(space, nn.Identity()), nn.Conv2d(width, width, 1), *_gelu_bn(width))

    stem = nn.Sequential(nn.Conv2d(channels, width, patch, stride=patch), *_gelu_bn(width))
    body = nn.Sequential(stem, *(mixer() for _ in range(depth)), global_pool())
    return Network(body, nn.Linear(width, n_classes))


def _gelu_bn(width: int) -> tuple[nn.Module, nn.Module]:
    return nn.GELU(), nn.BatchNorm2d(width)
