"""Data sets as records: samples with their original positions, and how they are split."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol, Self

import torch
from torch import Generator, Tensor

from assay._core.arrays import InputError

Augment = Callable[[Tensor, Generator], Tensor]
"""(a batch of uint8 images [n, c, h, w], randomness) -> the same number of images."""


class Stored(Protocol):
    """Inputs that are read on demand."""

    @property
    def places(self) -> Tensor:
        """Where each is, [n] int64."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: Tensor) -> Self: ...

    def read(self, row: int, seed: int | None) -> Tensor:
        """The input of a row; with a seed, augmented by it."""


@dataclass(frozen=True, eq=False)
class Facts:
    """What all samples of a data set share."""

    classes: tuple[str, ...]
    mean: tuple[float, ...] = ()  # of each channel of pixels in [0, 1]; empty if x is not normalized
    std: tuple[float, ...] = ()
    augment: Augment | None = None  # the usual one in training
    vectors: Tensor | None = None  # [words, width], of the word numbers in x
    extra_node_classes: tuple[str, ...] = ()  # of nodes in trees, and of no tree; their labels follow those of classes


@dataclass(frozen=True, eq=False)
class Samples:
    """Labeled inputs with their original positions."""

    x: Tensor | Stored  # [n, ...]: uint8 images [n, c, h, w], numbers, words [n, length] or trees [n, nodes, 5]
    y: Tensor  # [n] int64
    index: Tensor  # [n] int64
    facts: Facts

    def __post_init__(self) -> None:
        if not len(self.x) == len(self.y) == len(self.index):
            raise InputError(f"{len(self.x)} samples but {len(self.y)} labels and {len(self.index)} positions")
        if len(self.y) and not 0 <= int(self.y.min()) <= int(self.y.max()) < self.n_classes:
            row = int(((self.y < 0) | (self.y >= self.n_classes)).nonzero()[0])
            raise InputError(f"row {row}: label {self.y[row]} is outside 0..{self.n_classes - 1}")

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, rows: Tensor) -> Samples:
        return replace(self, x=self.x[rows], y=self.y[rows], index=self.index[rows])

    def first(self, n: int) -> Samples:
        """The first `n` samples, or all if there are fewer."""
        return self[torch.arange(min(n, len(self)))]

    @property
    def n_classes(self) -> int:
        """Number of classes of the data set, even if some have no sample here."""
        return len(self.facts.classes)


@dataclass(frozen=True, eq=False)
class Splits:
    """The parts of a data set; shifts are functions, since there may be many large ones."""

    train: Samples
    held_out: Samples
    test: Samples
    shifts: Mapping[str, Callable[[], Samples]] = field(default_factory=dict)


@dataclass(frozen=True)
class Cut:
    """How to divide training data: held-out samples are drawn first, so that `n_train` does not change them.

    Smaller training sets are parts of larger ones.
    """

    held_out: int | None = None  # None: a tenth, or all of a held-out split that the data set has
    n_train: int | None = None  # None: all others
    seed: int = 0


Loader = Callable[[Path | None, Cut], Splits]
"""(the folder that holds data sets, how to divide the training data) -> a data set."""


def whereabouts(folder: Path | None, name: str) -> str:
    """The place of a data set, for messages."""
    return str(folder / name) if folder else f"{name}/ of the folder that ASSAY_DATA names (it names none)"


def samples(x: Tensor | Stored, y: Tensor, facts: Facts) -> Samples:
    """Samples in their original order."""
    return Samples(x, y.long(), torch.arange(len(y)), facts)


def divide(train: Samples, cut: Cut) -> tuple[Samples, Samples]:
    """The training and the held-out samples, each in the original order."""
    n_held_out = len(train) // 10 if cut.held_out is None else cut.held_out
    order = torch.randperm(len(train), generator=Generator().manual_seed(cut.seed))
    held_out, rest = order[:n_held_out], order[n_held_out:]
    n_train = len(rest) if cut.n_train is None else cut.n_train
    if n_held_out < 0 or not 0 < n_train <= len(rest):
        raise InputError(f"{len(train)} samples cannot be cut into {n_train} to train on and {n_held_out} held out")
    return train[rest[:n_train].sort().values], train[held_out.sort().values]


def chosen(train: Samples, held_out: Samples, cut: Cut) -> tuple[Samples, Samples]:
    """As many of the given training and held-out samples as the cut asks for."""
    some, _ = divide(train, Cut(0, cut.n_train, cut.seed))
    wanted = len(held_out) if cut.held_out is None else cut.held_out
    if not 0 <= wanted <= len(held_out):
        raise InputError(f"{wanted} samples cannot be held out of the {len(held_out)} that are there for it")
    order = torch.randperm(len(held_out), generator=Generator().manual_seed(cut.seed))
    return some, held_out[order[:wanted].sort().values]
