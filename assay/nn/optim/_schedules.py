"""Learning-rate schedules without state: the factor of the base rate at an epoch, so that resuming needs nothing.

Epochs count from 0. A loop that sets the rate once an epoch passes whole numbers, one that sets it at every step
fractions, which `by_epoch` rounds down. Milestones are shares of the training, so that a recipe keeps its shape at any
length; k / n is met exactly at epoch k of n.
In a bare loop: `LambdaLR(optimizer, lambda epoch: schedule(epoch, epochs))`.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Sequence
from math import cos, floor, pi

Schedule = Callable[[float, int], float]
"""(epoch, epochs) -> factor."""


def epoch_at(share: float, epochs: int) -> int:
    """The epoch, from 0, that begins after a share of the training; never beyond the last."""
    return min(round(share * epochs), epochs - 1)


def constant(epoch: float, epochs: int) -> float:
    """The base rate throughout."""
    return 1.0


def by_epoch(schedule: Schedule) -> Schedule:
    """The schedule, but changing only from epoch to epoch in a loop that sets the rate at every step.

    >>> by_epoch(cosine())(5.9, 10) == cosine()(5, 10)
    True
    """
    return lambda epoch, epochs: schedule(floor(epoch), epochs)


def multistep(at: Sequence[float], *, factor: float = 0.1) -> Schedule:
    """Multiply by `factor` once each share of `at` is done.

    zhu2022's /10 at 80, 130, 170 of 200 is `multistep((0.4, 0.65, 0.85))`: epochs 0 to 79 at the base rate. Code that
    steps its scheduler before the epoch (zhu2022's baseline, mukhoti2020) drops one epoch earlier.

    >>> [round(multistep((0.4, 0.65))(epoch, 20), 4) for epoch in (7, 8, 12, 13)]
    [1.0, 0.1, 0.1, 0.01]
    """
    return lambda epoch, epochs: factor ** bisect(at, epoch / epochs)


def cosine(*, until: float = 1.0) -> Schedule:
    """(1 + cos(pi t)) / 2, t the share of training over `until`; beyond t = 1 it rises again."""
    return lambda epoch, epochs: (1 + cos(pi * epoch / epochs / until)) / 2


def cosine_then_swa(
    *, until: float = 100 / 201, start: float = 120 / 201, anneal: float = 10 / 201, level: float = 0.5
) -> Schedule:
    """`cosine` up to `start`, then within `anneal` along half a cosine to `level`, constant after: FMFP as coded.

    The cosine reaches 0 at `until` and has risen again at `start`; nothing is cyclical about it. The level is
    swa_lr / lr = .05 / .1.
    """
    first = cosine(until=until)

    def schedule(epoch: float, epochs: int) -> float:
        if epoch / epochs < start:
            return first(epoch, epochs)
        begin = first(start * epochs, epochs)
        t = min((epoch / epochs - start) / anneal, 1.0)
        return begin + (level - begin) * (1 - cos(pi * t)) / 2

    return schedule


def linear_to_swa(*, start: float = 161 / 200, level: float = 0.5) -> Schedule:
    """Constant up to half of `start`, linear to `level` at .9 of it, constant after: the schedule of SWA's code.

    The level is swa_lr / lr; weights are averaged from `start` on.
    """

    def schedule(epoch: float, epochs: int) -> float:
        t = epoch / epochs / start
        return 1 - (1 - level) * min(max((t - 0.5) / 0.4, 0.0), 1.0)

    return schedule


def cyclical(*, high: float, low: float, length: float = 1.0, start: float = 0.0) -> Schedule:
    """Fall linearly from `high` to `low` over `length` epochs, again and again: SWA's cycles, as FMFP is printed.

    The first cycle begins after the share `start` of the training. Cycles of an epoch need a loop that sets the rate at
    every step. Models are averaged at the ends of cycles. zhu2022 prints neither rates nor length.
    """
    if not length > 0:
        raise ValueError(f"the length of a cycle must be > 0 epochs, got {length}")
    return lambda epoch, epochs: high + (low - high) * ((epoch - epoch_at(start, epochs)) % length) / length
