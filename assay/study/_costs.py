"""What the runs of a study would cost here: time by a trial step, disk and memory by counting numbers."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from assay.nn.data import Splits
from assay.study._run import Run

NUMBER = 4  # bytes of a number in single precision
COPIES = 3  # of the weights in a checkpoint: themselves, and at most momentum and an average


@dataclass(frozen=True)
class Cost:
    """Seconds, and bytes on disk and in memory, of one run; and how many such runs there are."""

    runs: int
    seconds: float
    disk: int
    memory: int


@dataclass(frozen=True)
class Sizes:
    """Samples of a data set as a run would have them."""

    train: int
    held_out: int
    test: int
    classes: int
    shape: tuple[int, ...]  # of a sample, one byte a number

    @classmethod
    def of(cls, splits: Splits) -> Sizes:
        """The sizes of a data set that is at hand."""
        x = splits.train.x
        shape = tuple(x.shape[1:]) if isinstance(x, Tensor) else tuple(x.read(0, None).shape)
        return cls(len(splits.train), len(splits.held_out), len(splits.test), splits.train.n_classes, shape)


def cost(run: Run, network: nn.Module, sizes: Sizes, *, runs: int, shifts: int, seconds_a_sample: float) -> Cost:
    """The cost of a run whose training takes so many seconds a sample and epoch.

    A step on few samples costs more a sample than one of a full batch, so the time is rather too long than too short.
    """
    weights = sum(weight.numel() for weight in network.parameters())
    predicted = sizes.held_out + sizes.test * (1 + shifts)
    evaluated = (sizes.held_out + sizes.test) / 3  # a prediction is about a third of a training step
    an_epoch = sizes.train + evaluated * len({"held_out", "test"} & {*run.record.on})
    seconds = seconds_a_sample * run.built_recipe().epochs * an_epoch
    disk = NUMBER * (COPIES * weights + predicted * sizes.classes)
    inputs = sizes.train + sizes.held_out + sizes.test
    volume = 1
    for side in sizes.shape:
        volume *= side
    memory = NUMBER * (2 * COPIES * weights + sizes.train * sizes.classes) + inputs * volume
    return Cost(runs, seconds, disk, memory)
