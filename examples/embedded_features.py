"""Make the features that assay includes: what a published ResNet-20 makes of the CIFAR-10 test images.

    python examples/embedded_features.py DATA assay/nn/data/cifar10_features.npz

DATA holds `cifar10/*.parquet` in the Hugging Face schema and `weights/cifar10_resnet20.safetensors`, the weights of
akamaster/pytorch_resnet_cifar10. Features are stored in steps of 1/255 of the largest.
"""

import sys
from pathlib import Path

import numpy as np
import torch

from assay.nn import training
from assay.nn.data import Cut, load, normalized
from assay.nn.networks import Network

folder, out = map(Path, sys.argv[1:])
splits = load("cifar10", folder=folder, cut=Cut(held_out=0))
network = training.fitting("resnet20", splits.train, "cifar10", seed=0)
weights = training.read_weights(Path("weights/cifar10_resnet20.safetensors"), folder=folder)
test = training.started_from(weights, network, splits).test
assert isinstance(network, Network)
network.eval()
with torch.no_grad():
    batches = (normalized(images, test.facts.mean, test.facts.std) for images in test.x.split(500))
    features = torch.cat([network.features(batch) for batch in batches])
    right = network.head(features).argmax(1) == test.y
print(f"accuracy of the network itself: {right.float().mean():.4f}")
steps = (features / features.max() * 255).round().to(torch.uint8)
np.savez_compressed(out, features=steps.numpy(), labels=test.y.numpy().astype(np.uint8))
