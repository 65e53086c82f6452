"""Densely connected convolutional networks.

Gao Huang, Zhuang Liu, Laurens van der Maaten, Kilian Weinberger; CVPR 2017.
With bottlenecks and a compression of one half (DenseNet-BC), for small images.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from assay.nn.networks._network import Network, global_pool, kaiming
from assay.nn.networks._preact_resnet import bn_relu


class Dense(nn.Module):
    """The input and, beside it, `growth` new channels."""

    def __init__(self, inputs: int, growth: int):
        super().__init__()
        self.branch = nn.Sequential(
            bn_relu(inputs),
            nn.Conv2d(inputs, 4 * growth, 1, bias=False),
            bn_relu(4 * growth),
            nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False),
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x, self.branch(x)], 1)


def densenet_bc_100_12(n_classes: int, *, channels: int = 3) -> Network:
    """DenseNet-BC of 100 layers and growth 12."""
    return _densenet(n_classes, channels, 12, (16, 16, 16))


def densenet121(n_classes: int, *, channels: int = 3) -> Network:
    """DenseNet-121 with a 3x3 stem."""
    return _densenet(n_classes, channels, 32, (6, 12, 24, 16))


def _densenet(n_classes: int, channels: int, growth: int, counts: tuple[int, ...]) -> Network:
    width = 2 * growth
    layers: list[nn.Module] = [nn.Conv2d(channels, width, 3, padding=1, bias=False)]
    for i, count in enumerate(counts):
        layers += [Dense(width + j * growth, growth) for j in range(count)]
        width += count * growth
        if i < len(counts) - 1:
            layers += [bn_relu(width), nn.Conv2d(width, width // 2, 1, bias=False), nn.AvgPool2d(2)]
            width //= 2
    body = nn.Sequential(*layers, bn_relu(width), global_pool())
    return kaiming(Network(body, nn.Linear(width, n_classes)))
