"""Deep residual learning for image recognition, section 4.2.

Kaiming He, Xiangyu Zhang, Shaoqing Ren, Jian Sun; CVPR 2016.
Three stages of width 16, 32 and 64; where the shape changes, shortcuts without weights (option A).
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from assay.nn.networks._network import Network, conv_bn, global_pool, kaiming, stages
from assay.nn.networks._resnet import basic_branch, residual


class PadShortcut(nn.Module):
    """Every `stride`-th pixel, and `extra` channels of zeros, half of them on either side."""

    def __init__(self, stride: int, extra: int):
        super().__init__()
        self.stride, self.extra = stride, extra

    def forward(self, x: Tensor) -> Tensor:
        before = self.extra // 2
        return F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, before, self.extra - before))


def resnet8(n_classes: int, *, channels: int = 3) -> Network:
    """One block a stage: a small network for CPUs."""
    return _resnet(n_classes, 1, channels)


def resnet20(n_classes: int, *, channels: int = 3) -> Network:
    """Three blocks a stage."""
    return _resnet(n_classes, 3, channels)


def resnet32(n_classes: int, *, channels: int = 3) -> Network:
    """Five blocks a stage."""
    return _resnet(n_classes, 5, channels)


def resnet44(n_classes: int, *, channels: int = 3) -> Network:
    """Seven blocks a stage."""
    return _resnet(n_classes, 7, channels)


def resnet56(n_classes: int, *, channels: int = 3) -> Network:
    """Nine blocks a stage."""
    return _resnet(n_classes, 9, channels)


def resnet110(n_classes: int, *, channels: int = 3) -> Network:
    """Eighteen blocks a stage."""
    return _resnet(n_classes, 18, channels)


def _resnet(n_classes: int, count: int, channels: int) -> Network:
    stem = nn.Sequential(conv_bn(channels, 16, 3), nn.ReLU(inplace=True))
    blocks = stages(_block, 16, [(16, count, 1), (32, count, 2), (64, count, 2)])
    return kaiming(Network(nn.Sequential(stem, blocks, global_pool()), nn.Linear(64, n_classes)))


def _block(inputs: int, outputs: int, stride: int) -> nn.Module:
    shortcut = nn.Identity() if stride == 1 and inputs == outputs else PadShortcut(stride, outputs - inputs)
    return residual(basic_branch(inputs, outputs, stride), shortcut)
