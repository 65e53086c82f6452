"""What every network here is, and the pieces that several of them share."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from torch import Tensor, nn

Block = Callable[[int, int, int], nn.Module]
"""(inputs, outputs, stride) -> module."""


class Network(nn.Module):
    """A body that turns inputs into features, and a linear head that turns these into logits."""

    def __init__(self, body: nn.Module, head: nn.Linear):
        super().__init__()
        self.body, self.head = body, head

    def features(self, x: Tensor) -> Tensor:
        """The penultimate activations [n, d]: what enters the head."""
        features: Tensor = self.body(x)
        return features

    def forward(self, x: Tensor) -> Tensor:
        """The logits [n, k]."""
        logits: Tensor = self.head(self.features(x))
        return logits


class Sum(nn.Module):
    """The sum of two modules of the same input."""

    def __init__(self, branch: nn.Module, shortcut: nn.Module):
        super().__init__()
        self.branch, self.shortcut = branch, shortcut

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.branch(x) + self.shortcut(x)
        return y


def conv_bn(inputs: int, outputs: int, kernel: int, *, stride: int = 1, groups: int = 1) -> nn.Sequential:
    """A convolution without bias that keeps the size but for the stride, then BatchNorm."""
    conv = nn.Conv2d(inputs, outputs, kernel, stride=stride, padding=kernel // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs))


def stages(block: Block, inputs: int, plan: Iterable[tuple[int, int, int]]) -> nn.Sequential:
    """For each (outputs, count, stride) of the plan `count` blocks, the first with the stride."""
    blocks = []
    for outputs, count, stride in plan:
        for i in range(count):
            blocks.append(block(inputs, outputs, stride if i == 0 else 1))
            inputs = outputs
    return nn.Sequential(*blocks)


def global_pool(size: int = 1) -> nn.Sequential:
    """Average over the image, or over each field of a grid of `size` by `size`, whatever the size of the image."""
    return nn.Sequential(nn.AdaptiveAvgPool2d(size), nn.Flatten())


def kaiming(network: Network) -> Network:
    """Draw the kernels anew from N(0, 2 / fan-out).

    "Delving deep into rectifiers", Kaiming He, Xiangyu Zhang, Shaoqing Ren, Jian Sun; ICCV 2015.
    """
    for module in network.modules():
        if isinstance(module, nn.Conv1d | nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    return network
