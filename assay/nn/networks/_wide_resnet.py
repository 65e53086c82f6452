"""Wide residual networks. Sergey Zagoruyko, Nikos Komodakis; BMVC 2016."""

from __future__ import annotations

from torch import nn

from assay.nn.networks._network import Network, conv_bn, global_pool, kaiming, stages
from assay.nn.networks._preact_resnet import preact_resnet
from assay.nn.networks._resnet import basic_block

WIDTHS = (160, 320, 640)
COUNT = 4  # blocks a stage: (28 - 4) / 6


def wrn28_10(n_classes: int, *, channels: int = 3) -> Network:
    """WRN-28-10, without dropout."""
    return preact_resnet(n_classes, channels, WIDTHS, COUNT)


def wrn28_10_postact(n_classes: int, *, channels: int = 3) -> Network:
    """WRN-28-10 with activations after the sums and BatchNorm in shortcuts; Mukhoti et al. (2020) call it WRN-26-10."""
    stem = nn.Sequential(conv_bn(channels, 16, 3), nn.ReLU(inplace=True))
    blocks = stages(basic_block, 16, [(width, COUNT, 1 if i == 0 else 2) for i, width in enumerate(WIDTHS)])
    return kaiming(Network(nn.Sequential(stem, blocks, global_pool()), nn.Linear(WIDTHS[-1], n_classes)))
