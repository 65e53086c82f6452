"""What a published network makes of CIFAR-10, to train classifiers on in seconds; included in the package."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import numpy as np
import torch

from assay.nn.data._cifar import CLASSES
from assay.nn.data._samples import Cut, Facts, Splits, divide, samples

N_TEST = 5000


def cifar10_features(folder: Path | None, cut: Cut) -> Splits:
    """Features [64] of the CIFAR-10 test images before the last layer of a ResNet-20; the last 5,000 are the test set.

    The network had not seen these images. Its weights are those of akamaster/pytorch_resnet_cifar10 (BSD-2-Clause,
    (c) 2018 Yerlan Idelbayev), with 91.7 % of its own answers right; `examples/embedded_features.py` made the file.
    """
    with (files("assay.nn.data") / "cifar10_features.npz").open("rb") as stream:
        stored = np.load(stream)
        x, y = torch.from_numpy(stored["features"]).float(), torch.from_numpy(stored["labels"])
    whole = samples(x / x.std(), y, Facts(CLASSES))
    rest, test = whole.first(len(y) - N_TEST), whole[torch.arange(len(y) - N_TEST, len(y))]
    return Splits(*divide(rest, cut), test)
