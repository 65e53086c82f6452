"""What a run writes down epoch by epoch."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any, Literal

import numpy as np
from torch import Tensor

from assay._core.arrays import InputError
from assay.files import replacing
from assay.metrics import Bins
from assay.nn.data import Samples
from assay.nn.training._figures import FIGURES

Split = Literal["train", "held_out", "test"]
CHEAP = tuple(name for name in FIGURES if name != "optimal_ece")  # which looks at a hundred temperatures


@dataclass(frozen=True)
class Record:
    """What to write down; loss and learning rate are always.

    Figures of the training set come from the training pass itself: of the first look at each sample, before the step,
    in train mode, augmented and, under mixup, mixed, of trees the roots. They take the memory of its logits.

    Parameters
    ----------
    figures
        Figures of each epoch: accuracy, nll, ece, auroc, aurc, ...
    on
        Splits they are of.
    weight_norm
        The norm of the last layer's weights, each epoch.
    learned_epochs
        Of each training sample the epoch since which it was answered right to the end.
    gradient_norms_at
        Epochs, from 0, at which to keep the norm of each training sample's gradient in the last layer.
    reliability_at
        Epochs, from 0, at which to keep the reliability of the training set in 15 bins.
    """

    figures: tuple[str, ...] = CHEAP
    on: tuple[Split, ...] = ("train", "held_out")
    weight_norm: bool = True
    learned_epochs: bool = True
    gradient_norms_at: tuple[int, ...] = ()
    reliability_at: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        unknown = [name for name in self.figures if name not in FIGURES]
        if unknown:
            raise InputError(f"unknown figure '{unknown[0]}'; there are {', '.join(FIGURES)}")

    def refuse_beyond(self, epochs: int) -> None:
        """Raise if something is asked for at an epoch that will not come."""
        for epoch in (*self.gradient_norms_at, *self.reliability_at):
            if not 0 <= epoch < epochs:
                raise InputError(f"epoch {epoch} is to be recorded, but epochs are 0 to {epochs - 1}")


NOTHING = Record((), (), weight_norm=False, learned_epochs=False)
"""Only loss and learning rate."""


@dataclass
class History:
    """What was written down so far; epochs count from 0."""

    epochs: list[dict[str, float]] = field(default_factory=list)  # loss, held_out_ece, ...: one row an epoch
    learned_epoch: Tensor | None = None  # [n] int64; the number of epochs where the last answer was wrong
    gradient_norms: dict[int, Tensor] = field(default_factory=dict)  # [n] by epoch
    reliability: dict[int, Bins] = field(default_factory=dict)  # by epoch

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs."""
        return {
            "epochs": self.epochs,
            "learned_epoch": self.learned_epoch,
            "gradient_norms": self.gradient_norms,
            "reliability": {epoch: _lists(bins) for epoch, bins in self.reliability.items()},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a `state_dict`."""
        self.epochs, self.learned_epoch, self.gradient_norms = (
            state[name] for name in ("epochs", "learned_epoch", "gradient_norms")
        )
        self.reliability = {
            epoch: Bins(**{name: np.array(column) for name, column in bins.items()})
            for epoch, bins in state["reliability"].items()
        }

    def write(self, folder: Path, samples: Samples) -> None:
        """The rows and the reliability to history.json, what there is of each training sample to samples.npz."""
        rows = [{key: x if isfinite(x) else None for key, x in row.items()} for row in self.epochs]
        reliability = {epoch: _lists(bins) for epoch, bins in self.reliability.items()}
        with replacing(folder / "history.json") as stream:
            stream.write(json.dumps({"epochs": rows, "reliability": reliability}, indent=1).encode())
        columns: dict[str, Any] = {
            f"gradient_norm_{epoch}": norms.numpy() for epoch, norms in self.gradient_norms.items()
        }
        if self.learned_epoch is not None:
            columns["learned_epoch"] = self.learned_epoch.numpy()
        if columns:
            with replacing(folder / "samples.npz") as stream:
                np.savez(stream, ids=samples.index.numpy(), **columns)


def _lists(bins: Bins) -> dict[str, list[float]]:
    return {name: column.tolist() for name, column in asdict(bins).items()}
