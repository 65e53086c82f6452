"""Calibrating deep neural networks using focal loss (Mukhoti et al., NeurIPS 2020; mukhoti2020): scheduled gamma."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Sequence
from functools import partial

from torch import Tensor, nn

from assay.nn.losses import Loss, focal
from assay.nn.objectives._objective import Batch, Objective, Task, of_loss


def scheduled_focal(
    of: Callable[[Loss], Callable[[Task], Objective]] = of_loss,
    *,
    gammas: Sequence[float] = (5.0, 3.0, 2.0),
    starts: Sequence[float] = (100 / 350, 250 / 350),
) -> Callable[[Task], Objective]:
    """Focal loss with gammas[0] first and gammas[i + 1] after the share starts[i] of the epochs.

    The default is FLS-532; FLS-531 ends with 1. zhu2022's code, cross-entropy for 9 of 201 epochs and then focal with
    gamma 2, is gammas (0, 2), starts (9 / 201,). For trees `of` is `every_node`.
    """
    if len(gammas) != len(starts) + 1:
        raise ValueError(f"{len(starts)} starts make {len(starts) + 1} phases, got {len(gammas)} gammas")

    def build(task: Task) -> Objective:
        phases = [of(partial(focal, gamma=gamma))(task) for gamma in gammas]

        def objective(model: nn.Module, batch: Batch) -> Tensor:
            return phases[bisect(starts, batch.known_epoch("a scheduled gamma") / task.epochs)](model, batch)

        return objective

    return build
