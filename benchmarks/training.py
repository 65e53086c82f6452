"""What training by assay costs, as ratios in one run on one thread.

    python benchmarks/training.py

The loop, history off, against one written by hand; SAM against SGD; each secondary loss against a step of the network.
Exits with an error where a bound is missed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn
from torch.optim import SGD, Optimizer

from assay.data import Facts, Samples, Splits, normalized, samples
from assay.losses import Loss, avuc, avuc_gs, cross_entropy, mmce, mmce_weighted, s_avuc, sb_ece_bin, sb_ece_lb
from assay.networks import resnet8
from assay.objectives import of_loss
from assay.optim import SAM
from assay.training import NOTHING, Hardware, Recipe, train

BATCH, STEPS, CLASSES, REPEATS = 128, 6, 100, 5
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
    network = resnet8(CLASSES)
    optimizer = sgd(network)
    assert isinstance(images.x, Tensor)
    for rows in torch.randperm(len(images)).split(BATCH):
        loss = F.cross_entropy(network(normalized(images.x[rows], FACTS.mean, FACTS.std)), images.y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def by_assay(images: Samples, optimizer: Callable[[nn.Module], Optimizer]) -> None:
    """The same epoch by the loop."""
    none = images[torch.arange(0)]
    recipe = Recipe("bench", of_loss(cross_entropy), optimizer, epochs=1, batch_size=BATCH)
    train(resnet8(CLASSES), Splits(images, none, none), recipe, record=NOTHING, hardware=Hardware("cpu"))


def of_secondary(loss: Loss, logits: Tensor, labels: Tensor, repeats: int = 50) -> None:
    """Forward and backward, many times over."""
    for _ in range(repeats):
        loss(logits.detach().requires_grad_(), labels).backward()


def seconds(*calls: Callable[[], None]) -> list[float]:
    """Least CPU time of each, taken in turn so that they share what else goes on, which only ever adds to it."""
    taken: list[list[float]] = [[] for _ in calls]
    for _ in range(REPEATS + 1):
        for call, times in zip(calls, taken, strict=True):
            start = time.process_time()
            call()
            times.append(time.process_time() - start)
    return [min(times[1:]) for times in taken]


if __name__ == "__main__":
    torch.set_num_threads(1)
    generator = Generator().manual_seed(0)
    x = torch.randint(256, (STEPS * BATCH, 3, 32, 32), generator=generator, dtype=torch.uint8)
    images = samples(x, torch.randint(CLASSES, (len(x),), generator=generator), FACTS)
    logits, labels = torch.randn(BATCH, CLASSES, generator=generator), images.y[:BATCH]

    flat = partial(by_assay, images, lambda network: SAM(sgd(network)))
    secondary = [partial(of_secondary, loss, logits, labels) for loss in SECONDARY.values()]
    hand, plain, sam, *rest = seconds(partial(by_hand, images), partial(by_assay, images, sgd), flat, *secondary)

    step = hand / STEPS
    found = {"loop / by hand": (plain / hand, 1.10), "SAM / SGD": (sam / plain, 2.1)}
    for name, taken in zip(SECONDARY, rest, strict=True):
        found[f"{name} / step"] = (taken / 50 / step, 0.10)
    for name, (ratio, bound) in found.items():
        print(f"{name:22} {ratio:6.3f}   at most {bound:.2f}")
    missed = [name for name, (ratio, bound) in found.items() if ratio > bound]
    if missed:
        sys.exit(f"above the bound: {', '.join(missed)}")
