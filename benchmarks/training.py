"""What training by assay costs, as ratios in one run on one thread.

    python benchmarks/training.py

The loop on a ResNet-20, history off, against one written by hand in the usual layout of images; SAM against SGD; each
secondary loss against a step of the network.
Exits with an error where a bound is missed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from timing import seconds
from torch import Generator, Tensor, nn
from torch.optim import SGD, Optimizer

from assay.nn.data import Facts, Samples, Splits, normalized, samples, shuffled_batches
from assay.nn.losses import Loss, avuc, avuc_gs, cross_entropy, mmce, mmce_weighted, s_avuc, sb_ece_bin, sb_ece_lb
from assay.nn.networks import resnet20
from assay.nn.objectives import Batch, Task, of_loss
from assay.nn.optim import SAM
from assay.nn.training import NOTHING, Hardware, Recipe, train
from assay.nn.training._hardware import reused_memory
from assay.nn.training._stage import Stage

BATCH, STEPS, CLASSES = 128, 6, 100
FACTS = Facts(tuple(map(str, range(CLASSES))), (0.491, 0.482, 0.447), (0.247, 0.243, 0.262))
SECONDARY: dict[str, Loss] = {
    "mmce": mmce,
    "mmce_weighted": mmce_weighted,
    "avuc": avuc,
    "avuc_gs": avuc_gs,
    "s_avuc": s_avuc,
    "sb_ece_bin": sb_ece_bin,
    "sb_ece_lb": sb_ece_lb,
}


def sgd(network: nn.Module) -> Optimizer:
    return SGD(network.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)


def by_hand(images: Samples) -> None:
    """An epoch as one would write it without a library."""
    network = resnet20(CLASSES)
    optimizer = sgd(network)
    assert isinstance(images.x, Tensor)
    for rows in torch.randperm(len(images)).split(BATCH):
        loss = F.cross_entropy(network(normalized(images.x[rows], FACTS.mean, FACTS.std)), images.y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def recipe_of(optimizer: Callable[[nn.Module], Optimizer]) -> Recipe:
    return Recipe("bench", of_loss(cross_entropy), optimizer, epochs=1, batch_size=BATCH)


def by_assay(images: Samples) -> None:
    """The same epoch by the loop."""
    none = images[torch.arange(0)]
    train(resnet20(CLASSES), Splits(images, none, none), recipe_of(sgd), record=NOTHING, hardware=Hardware("cpu"))


def step_of(optimizer: Callable[[nn.Module], Optimizer], batch: Batch) -> Callable[[], object]:
    """A step as the loop makes it."""
    network = resnet20(CLASSES).train()
    stage = Stage(recipe_of(optimizer), Task(BATCH, CLASSES, 1), network, network, Tensor.backward)
    return lambda: stage.step(batch, 1.0)


def of_secondary(loss: Loss, logits: Tensor, labels: Tensor, repeats: int = 50) -> None:
    """Forward and backward, many times over."""
    for _ in range(repeats):
        loss(logits.detach().requires_grad_(), labels).backward()


if __name__ == "__main__":
    torch.set_num_threads(1)
    generator = Generator().manual_seed(0)
    x = torch.randint(256, (STEPS * BATCH, 3, 32, 32), generator=generator, dtype=torch.uint8)
    images = samples(x, torch.randint(CLASSES, (len(x),), generator=generator), FACTS)
    logits, labels = torch.randn(BATCH, CLASSES, generator=generator), images.y[:BATCH]

    secondary = [partial(of_secondary, loss, logits, labels) for loss in SECONDARY.values()]
    hand, loop, *rest = seconds(partial(by_hand, images), partial(by_assay, images), *secondary)
    batch = next(shuffled_batches(images, BATCH, generator, epoch=0))
    with reused_memory():
        plain, sam = seconds(step_of(sgd, batch), step_of(lambda network: SAM(sgd(network)), batch), repeats=40)

    step = hand / STEPS
    found = {"loop / by hand": (loop / hand, 0.80), "SAM / SGD": (sam / plain, 2.1)}
    for name, taken in zip(SECONDARY, rest, strict=True):
        found[f"{name} / step"] = (taken / 50 / step, 0.10)
    for name, (ratio, bound) in found.items():
        print(f"{name:22} {ratio:6.3f}   at most {bound:.2f}")
    missed = [name for name, (ratio, bound) in found.items() if ratio > bound]
    if missed:
        sys.exit(f"above the bound: {', '.join(missed)}")
