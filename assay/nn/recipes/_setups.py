"""Set-ups: how each paper trains; any method can use any of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from torch import nn
from torch.optim import SGD, Adagrad, Adam, Optimizer

from assay.nn.losses import Loss, cross_entropy
from assay.nn.objectives import Objective, Task, every_node, of_loss
from assay.nn.optim import cosine, multistep
from assay.nn.training import Keeper, Recipe, best, last

MakeOptimizer = Callable[[nn.Module], Optimizer]
MakeObjective = Callable[[Task], Objective]


@dataclass(frozen=True)
class Setup:
    """A paper's baseline, and how its data turn a loss into an objective."""

    baseline: Recipe
    of: Callable[[Loss], MakeObjective] = of_loss
    averaging_from: float = 120 / 200  # the share of the baseline's training at which SWA and FMFP begin


def sgd(*, lr: float, weight_decay: float) -> MakeOptimizer:
    """SGD with a momentum of .9, which all five papers have."""
    return lambda network: SGD(network.parameters(), lr=lr, momentum=0.9, weight_decay=weight_decay)


def adam(*, lr: float) -> MakeOptimizer:
    """Adam with its usual betas."""
    return lambda network: Adam(network.parameters(), lr=lr)


def adagrad(*, lr: float, weight_decay: float) -> MakeOptimizer:
    """Adagrad."""
    return lambda network: Adagrad(network.parameters(), lr=lr, weight_decay=weight_decay)


def on_images(
    *,
    epochs: int,
    drops: tuple[int, ...],
    factor: float = 0.1,
    lr: float = 0.1,
    weight_decay: float,
    batch_size: int = 128,
    clip_norm: float | None = None,
    keep: Callable[[], Keeper] = last,
) -> Setup:
    """Cross-entropy by SGD whose rate is multiplied by `factor` at the epochs `drops`."""
    return Setup(
        Recipe(
            "cross_entropy",
            of_loss(cross_entropy),
            sgd(lr=lr, weight_decay=weight_decay),
            epochs,
            schedule=multistep([epoch / epochs for epoch in drops], factor=factor),
            batch_size=batch_size,
            clip_norm=clip_norm,
            keep=keep,
        )
    )


SETUPS: dict[str, Setup] = {
    # The code has 201 epochs and steps its schedule before each: its drops come an epoch earlier.
    "zhu2022": on_images(epochs=200, drops=(80, 130, 170), weight_decay=5e-4),
    "zhu2022_tiny": replace(on_images(epochs=90, drops=(40, 70), weight_decay=5e-4), averaging_from=50 / 90),
    # The paper does not print optimizer, weight decay and batch size. Label smoothing and focal loss drop to a tenth.
    "singh2021": on_images(epochs=300, drops=(150, 225), factor=0.2, weight_decay=5e-4),
    "singh2021_tenth": on_images(epochs=300, drops=(150, 225), weight_decay=5e-4),
    # The ImageNet set-up of singh2021; it does not print weight decay and batch size, these are the usual ones.
    "imagenet": on_images(epochs=100, drops=(30, 60, 90), weight_decay=1e-4, batch_size=256),
    "wang2021": on_images(epochs=200, drops=(100, 150), weight_decay=1e-4, batch_size=512),
    # The paper tunes the weight decay. Drops and weight decay (l2 of 2e-4, twice that in the gradient) are those of its
    # authors' public baseline, which has batches of 8 x 64 with four times the rate, Nesterov, and a warm-up.
    "karandikar2021": on_images(epochs=200, drops=(60, 120, 160), factor=0.2, weight_decay=4e-4),
    # Weight decay is from the code, which also steps its schedule before the epoch.
    "mukhoti2020": on_images(epochs=350, drops=(150, 250), weight_decay=5e-4),
    # The code sums over the batch and clips the gradient of the sum at 2. For batches of 128 this is the gradient of
    # the mean, clipped at 2 / 128, at 128 times the rate with a 128th of the weight decay.
    "mukhoti2020_as_coded": on_images(
        epochs=350, drops=(150, 250), lr=0.1 * 128, weight_decay=5e-4 / 128, clip_norm=2 / 128, keep=best()
    ),
    # ConfidNet's classifier by its public code, which zhu2022 follows in figure 15: a constant rate, the best epoch. It
    # also rotates images and starts from weights trained on ImageNet.
    "confidnet": Setup(
        Recipe("cross_entropy", of_loss(cross_entropy), sgd(lr=1e-3, weight_decay=5e-4), epochs=250, keep=best())
    ),
    # Not of a paper: training on from given weights, a finished baseline, so weights are averaged from the first epoch.
    "fine_tuning": Setup(
        Recipe("cross_entropy", of_loss(cross_entropy), sgd(lr=0.05, weight_decay=5e-4), epochs=8, schedule=cosine()),
        averaging_from=0.0,
    ),
    "mukhoti2020_newsgroups": Setup(
        Recipe("cross_entropy", of_loss(cross_entropy), adam(lr=1e-3), epochs=50, keep=best())
    ),
    # A tree has a label at every node.
    "mukhoti2020_sst": Setup(
        Recipe(
            "cross_entropy",
            every_node(cross_entropy),
            adagrad(lr=0.05, weight_decay=1e-4),
            epochs=25,
            batch_size=25,
            keep=best(),
        ),
        of=every_node,
    ),
}

OF_ONE_METHOD: dict[str, Setup] = {
    # The code of mukhoti2020 divides this loss, and no other, by the batch size.
    "brier@mukhoti2020_as_coded": on_images(
        epochs=350, drops=(150, 250), weight_decay=5e-4, clip_norm=2.0, keep=best()
    ),
}
