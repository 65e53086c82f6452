"""MobileNetV2: inverted residuals and linear bottlenecks.

Mark Sandler, Andrew Howard, Menglong Zhu, Andrey Zhmoginov, Liang-Chieh Chen; CVPR 2018.
"""

from __future__ import annotations

from functools import partial

from torch import nn

from assay.nn.networks._network import Network, Sum, conv_bn, global_pool, kaiming, stages

# expansion, width, count, stride. For images of 32 pixels only two of the paper's five strides are left.
PLAN = (
    (1, 16, 1, 1),
    (6, 24, 2, 1),
    (6, 32, 3, 1),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


def mobilenet_v2(n_classes: int, *, channels: int = 3) -> Network:
    """MobileNetV2 for small images, with an expansion in its first block too (Zhu et al. 2022)."""
    layers: list[nn.Module] = [conv_bn(channels, 32, 3), nn.ReLU6(inplace=True)]
    inputs = 32
    for expansion, width, count, stride in PLAN:
        layers.append(stages(partial(_inverted_residual, expansion), inputs, [(width, count, stride)]))
        inputs = width
    body = nn.Sequential(*layers, conv_bn(inputs, 1280, 1), nn.ReLU6(inplace=True), global_pool())
    return kaiming(Network(body, nn.Linear(1280, n_classes)))


def _inverted_residual(expansion: int, inputs: int, outputs: int, stride: int) -> nn.Module:
    wide = expansion * inputs
    branch = nn.Sequential(
        conv_bn(inputs, wide, 1),
        nn.ReLU6(inplace=True),
        conv_bn(wide, wide, 3, stride=stride, groups=wide),
        nn.ReLU6(inplace=True),
        conv_bn(wide, outputs, 1),
    )
    return Sum(branch, nn.Identity()) if stride == 1 and inputs == outputs else branch
