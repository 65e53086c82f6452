"""Very deep convolutional networks for large-scale image recognition. Karen Simonyan, Andrew Zisserman; ICLR 2015.

Configuration D, for images of 32 pixels or more, in the two forms the literature on failure prediction uses.
"""

from __future__ import annotations

from itertools import pairwise

from torch import nn

from assay.nn.networks._network import Network, global_pool, kaiming

STAGES = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))


def vgg16_bn(n_classes: int, *, channels: int = 3) -> Network:
    """VGG-16 with BatchNorm and two hidden layers of 512 (Moon et al. 2020, Zhu et al. 2022)."""
    layers: list[nn.Module] = []
    for widths in STAGES:
        for inputs, outputs in pairwise((channels, *widths)):
            layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)]
        layers.append(nn.MaxPool2d(2))
        channels = widths[-1]
    body = nn.Sequential(*layers, global_pool(), nn.Dropout(0.5), *_hidden(), nn.Dropout(0.5), *_hidden())
    return kaiming(Network(body, nn.Linear(512, n_classes)))


def vgg16_confidnet(n_classes: int, *, channels: int = 3) -> Network:
    """VGG-16 of Corbière et al. (2019): reflected margins, BatchNorm after ReLU, dropout between convolutions."""
    layers: list[nn.Module] = []
    for widths in STAGES:
        for inputs, outputs in pairwise((channels, *widths)):
            conv = nn.Conv2d(inputs, outputs, 3, padding=1, padding_mode="reflect")
            layers += [conv, nn.ReLU(inplace=True), nn.BatchNorm2d(outputs), nn.Dropout(0.3 if outputs == 64 else 0.4)]
        layers[-1] = nn.MaxPool2d(2)
        channels = widths[-1]
    body = nn.Sequential(*layers, global_pool(), nn.Dropout(0.5), *_hidden(), nn.Dropout(0.5))
    return kaiming(Network(body, nn.Linear(512, n_classes)))


def _hidden() -> tuple[nn.Module, nn.Module]:
    return nn.Linear(512, 512), nn.ReLU(inplace=True)
