"""Identity mappings in deep residual networks. Kaiming He, Xiangyu Zhang, Shaoqing Ren, Jian Sun; ECCV 2016."""

from __future__ import annotations

from torch import Tensor, nn

from assay.nn.networks._network import Network, global_pool, kaiming, stages


class PreActivation(nn.Module):
    """x + branch(relu(bn(x))); where the shape changes, the shortcut too starts from the activated input."""

    def __init__(self, inputs: int, outputs: int, stride: int):
        super().__init__()
        self.activation = bn_relu(inputs)
        self.branch = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False),
            bn_relu(outputs),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
        )
        same = stride == 1 and inputs == outputs
        self.projection = None if same else nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        active = self.activation(x)
        y: Tensor = self.branch(active) + (x if self.projection is None else self.projection(active))
        return y


def preact_resnet(n_classes: int, channels: int, widths: tuple[int, int, int], count: int) -> Network:
    """Three stages of `count` pre-activation blocks behind a convolution to 16 channels."""
    stem = nn.Conv2d(channels, 16, 3, padding=1, bias=False)
    blocks = stages(PreActivation, 16, [(width, count, 1 if i == 0 else 2) for i, width in enumerate(widths)])
    body = nn.Sequential(stem, blocks, bn_relu(widths[-1]), global_pool())
    return kaiming(Network(body, nn.Linear(widths[-1], n_classes)))


def preact_resnet110(n_classes: int, *, channels: int = 3) -> Network:
    """Eighteen basic blocks a stage; the "ResNet-110" of Moon et al. (2020) and Zhu et al. (2022)."""
    return preact_resnet(n_classes, channels, (16, 32, 64), 18)


def bn_relu(width: int) -> nn.Sequential:
    """BatchNorm, then ReLU."""
    return nn.Sequential(nn.BatchNorm2d(width), nn.ReLU(inplace=True))
