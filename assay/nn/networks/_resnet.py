"""Deep residual learning for image recognition. Kaiming He, Xiangyu Zhang, Shaoqing Ren, Jian Sun; CVPR 2016.

Four stages of width 64 to 512 behind one of two stems: one that keeps small images as they are, as is usual on CIFAR
and Tiny-ImageNet, and the paper's for ImageNet, which makes images four times smaller.
"""

from __future__ import annotations

from torch import nn

from assay.nn.networks._network import Block, Network, Sum, conv_bn, global_pool, kaiming, stages


def basic_branch(inputs: int, outputs: int, stride: int) -> nn.Sequential:
    """Two 3x3 convolutions."""
    return nn.Sequential(
        conv_bn(inputs, outputs, 3, stride=stride), nn.ReLU(inplace=True), conv_bn(outputs, outputs, 3)
    )


def residual(branch: nn.Module, shortcut: nn.Module) -> nn.Sequential:
    """relu(branch + shortcut)."""
    return nn.Sequential(Sum(branch, shortcut), nn.ReLU(inplace=True))


def basic_block(inputs: int, outputs: int, stride: int) -> nn.Module:
    """The block of ResNet-18: a basic branch, and a projection where the shape changes (option B)."""
    return residual(basic_branch(inputs, outputs, stride), _projection(inputs, outputs, stride))


def resnet18(n_classes: int, *, channels: int = 3) -> Network:
    """ResNet-18 for small images."""
    return _resnet(n_classes, basic_block, 64, (2, 2, 2, 2), _small_stem(channels))


def resnet50(n_classes: int, *, channels: int = 3) -> Network:
    """ResNet-50 for small images."""
    return _resnet(n_classes, _bottleneck_block, 256, (3, 4, 6, 3), _small_stem(channels))


def resnet50_grid(n_classes: int, *, channels: int = 3) -> Network:
    """ResNet-50 for small images with a pool to 2x2, so 8192 features (Mukhoti et al. 2020, for Tiny-ImageNet)."""
    return _resnet(n_classes, _bottleneck_block, 256, (3, 4, 6, 3), _small_stem(channels), grid=2)


def resnet110_bottleneck(n_classes: int, *, channels: int = 3) -> Network:
    """110 layers of bottlenecks, called ResNet-110 by Mukhoti et al. (2020); `resnet110` has a 26th of its weights."""
    return _resnet(n_classes, _bottleneck_block, 256, (3, 4, 26, 3), _small_stem(channels))


def resnet18_imagenet(n_classes: int, *, channels: int = 3) -> Network:
    """ResNet-18 as for ImageNet."""
    return _resnet(n_classes, basic_block, 64, (2, 2, 2, 2), _imagenet_stem(channels))


def resnet50_imagenet(n_classes: int, *, channels: int = 3) -> Network:
    """ResNet-50 as for ImageNet, with the stride in the 3x3 convolutions."""
    return _resnet(n_classes, _bottleneck_block, 256, (3, 4, 6, 3), _imagenet_stem(channels))


def _resnet(
    n_classes: int, block: Block, width: int, counts: tuple[int, int, int, int], stem: nn.Module, grid: int = 1
) -> Network:
    """A stem of 64 channels, stages from `width` on that double it, a pool."""
    plan = [(width * 2**i, count, 1 if i == 0 else 2) for i, count in enumerate(counts)]
    body = nn.Sequential(stem, stages(block, 64, plan), global_pool(grid))
    return kaiming(Network(body, nn.Linear(8 * width * grid**2, n_classes)))


def _bottleneck_block(inputs: int, outputs: int, stride: int) -> nn.Module:
    """The block of ResNet-50: a 3x3 convolution at a quarter of the width between two of 1x1."""
    width = outputs // 4
    branch = nn.Sequential(
        conv_bn(inputs, width, 1),
        nn.ReLU(inplace=True),
        conv_bn(width, width, 3, stride=stride),
        nn.ReLU(inplace=True),
        conv_bn(width, outputs, 1),
    )
    return residual(branch, _projection(inputs, outputs, stride))


def _projection(inputs: int, outputs: int, stride: int) -> nn.Module:
    """The identity, or where the shape changes a 1x1 convolution (the paper's option B)."""
    return nn.Identity() if stride == 1 and inputs == outputs else conv_bn(inputs, outputs, 1, stride=stride)


def _small_stem(channels: int) -> nn.Module:
    return nn.Sequential(conv_bn(channels, 64, 3), nn.ReLU(inplace=True))


def _imagenet_stem(channels: int) -> nn.Module:
    return nn.Sequential(
        conv_bn(channels, 64, 7, stride=2), nn.ReLU(inplace=True), nn.MaxPool2d(3, stride=2, padding=1)
    )
