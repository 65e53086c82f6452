"""EfficientNet: rethinking model scaling for convolutional neural networks. Mingxing Tan, Quoc Le; ICML 2019."""

from __future__ import annotations

from functools import partial

from torch import Tensor, nn

from assay.nn.networks._network import Network, Sum, conv_bn, global_pool, kaiming, stages

# expansion, kernel, width, count, stride. For images of 32 pixels stem and last but one stage have lost their strides.
PLAN = (
    (1, 3, 16, 1, 1),
    (6, 3, 24, 2, 2),
    (6, 5, 40, 2, 2),
    (6, 3, 80, 3, 2),
    (6, 5, 112, 3, 1),
    (6, 5, 192, 4, 1),
    (6, 3, 320, 1, 1),
)


class SqueezeExcitation(nn.Module):
    """Channels scaled by a gate that is computed from their means."""

    def __init__(self, width: int, squeezed: int):
        super().__init__()
        self.gate = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(width, squeezed, 1),
            nn.SiLU(inplace=True),
            nn.Conv2d(squeezed, width, 1),
            nn.Sigmoid(),
        )

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = x * self.gate(x)
        return y


def efficientnet_b0(n_classes: int, *, channels: int = 3) -> Network:
    """EfficientNet-B0 for small images (Zhu et al. 2022), with BatchNorm at torch's eps and momentum.

    Their code passes the momentum of some BatchNorms as eps (0.1 and 0.9); the effect is not reproduced here.
    """
    layers: list[nn.Module] = [conv_bn(channels, 32, 3), nn.SiLU(inplace=True)]
    inputs = 32
    for expansion, kernel, width, count, stride in PLAN:
        layers.append(stages(partial(_mbconv, expansion, kernel), inputs, [(width, count, stride)]))
        inputs = width
    body = nn.Sequential(*layers, conv_bn(inputs, 1280, 1), nn.SiLU(inplace=True), global_pool(), nn.Dropout(0.2))
    return kaiming(Network(body, nn.Linear(1280, n_classes)))


def _mbconv(expansion: int, kernel: int, inputs: int, outputs: int, stride: int) -> nn.Module:
    wide = expansion * inputs
    expanded = (conv_bn(inputs, wide, 1), nn.SiLU(inplace=True)) if expansion > 1 else ()
    branch = nn.Sequential(
        *expanded,
        conv_bn(wide, wide, kernel, stride=stride, groups=wide),
        nn.SiLU(inplace=True),
        SqueezeExcitation(wide, inputs // 4),
        conv_bn(wide, outputs, 1),
    )
    return Sum(branch, nn.Identity()) if stride == 1 and inputs == outputs else branch
