"""Figures of an epoch, and which of them a run records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import nan
from typing import Literal

import numpy as np

from assay._core.arrays import Floats, InputError, Mask
from assay.metrics import METRICS, Tables, Unit, ece
from assay.predictions import Outcomes, Predictions

Split = Literal["train", "held_out", "test"]
OPTIMAL_STEP = 0.01  # of the temperatures that wang2021 searches
CLEAN = "clean_"  # before the figures of the training set by a pass of its own, such as clean_train_ece
AVERAGED = "averaged_"  # before the figures of averaged weights, such as averaged_test_ece


def optimal_ece(tables: Tables) -> float:
    """ECE at the best temperature of .01 to 10 for these very samples (wang2021, fig 4): a bound, not a method.

    No calibrator that chooses among these temperatures, as `temperature_ece` does, can be below it.
    """
    from assay.calibrators import temperature_optimal_on_test

    assert isinstance(tables.source, Predictions), "a network gives logits"

    def loss(outcomes: Outcomes) -> float:
        return ece(outcomes)

    return temperature_optimal_on_test(tables.source, loss, step=OPTIMAL_STEP).fit.after


def _nll(tables: Tables) -> Floats:
    assert tables.outcomes.nll is not None, "predictions always have one"
    return tables.outcomes.nll


def _entropy(tables: Tables) -> Floats:
    assert tables.outcomes.entropy is not None, "predictions always have one"
    return tables.outcomes.entropy


def _true_class(tables: Tables) -> Floats:
    """Probability of the true class."""
    return np.exp(-_nll(tables))


def _right(tables: Tables) -> Mask:
    return tables.outcomes.correct


def _wrong(tables: Tables) -> Mask:
    return ~tables.outcomes.correct


OfTables = Callable[[Tables], float]


@dataclass(frozen=True)
class EpochFigure:
    """A figure of an epoch: how it is computed, and how it is shown."""

    title: str
    unit: Unit
    of: OfTables
    better: str = "-"  # higher, lower, or - if neither is

    def __call__(self, tables: Tables) -> float:
        return self.of(tables)


def _mean(column: Callable[[Tables], Floats], rows: Callable[[Tables], Mask] | None = None) -> OfTables:
    """The mean of a column over some rows; nan if there are none."""

    def mean(tables: Tables) -> float:
        values = column(tables) if rows is None else column(tables)[rows(tables)]
        return float(values.mean()) if len(values) else nan

    return mean


def _metric(key: str) -> EpochFigure:
    metric = METRICS[key]
    return EpochFigure(metric.title, metric.unit, metric.of, metric.better)


SHARE, NATS = METRICS["accuracy"].unit, METRICS["nll"].unit
FIGURES: dict[str, EpochFigure] = {
    "accuracy": _metric("accuracy"),
    "nll": _metric("nll"),
    "nll_correct": EpochFigure("NLL of right answers", NATS, _mean(_nll, _right)),
    "nll_wrong": EpochFigure("NLL of wrong answers", NATS, _mean(_nll, _wrong)),
    "entropy_correct": EpochFigure("entropy of right answers", NATS, _mean(_entropy, _right)),
    "entropy_wrong": EpochFigure("entropy of wrong answers", NATS, _mean(_entropy, _wrong)),
    "true_class": EpochFigure("probability of the true class", SHARE, _mean(_true_class)),
    "true_class_correct": EpochFigure("p(true class) of right answers", SHARE, _mean(_true_class, _right)),
    "true_class_wrong": EpochFigure("p(true class) of wrong answers", SHARE, _mean(_true_class, _wrong)),
    "ece": _metric("ece"),
    "auroc": _metric("auroc"),
    "aurc": _metric("aurc"),
    "optimal_ece": EpochFigure("ECE at the best temperature", SHARE, optimal_ece),
}
CHEAP = tuple(name for name in FIGURES if name != "optimal_ece")  # that one tries a thousand temperatures


@dataclass(frozen=True)
class Record:
    """What a run records; loss and learning rate are always recorded.

    Figures of the training set come from the training pass itself: from the first evaluation of each sample, before
    the step, in train mode, augmented and, under mixup, mixed; of trees, from the roots. They take the memory of the
    logits of the training set.

    Parameters
    ----------
    figures
        Figures of each epoch: accuracy, nll, ece, auroc, aurc, ...
    on
        Splits to compute them on.
    weight_norm
        Record the norm of the last layer's weights after each epoch.
    learned_epochs
        Record for each training sample the epoch from which its answer stays right to the end.
    gradient_norms_at
        Epochs, from 0, at which to record the norm of each training sample's gradient in the last layer.
    reliability_at
        Epochs, from 0, at which to record the reliability of the training set.
    reliability_bins
        Number of bins of that reliability.
    clean_train
        Also record figures of the training set by a pass of its own, in eval mode and without augmentation:
        clean_train_ece and so on.
    of_average
        Where weights are averaged, as in SWA and FMFP, also record held-out and test figures of the average so far,
        with BatchNorm recomputed: averaged_test_ece and so on. It takes a pass over the training set each epoch.
    """

    figures: tuple[str, ...] = CHEAP
    on: tuple[Split, ...] = ("train", "held_out")
    weight_norm: bool = True
    learned_epochs: bool = True
    gradient_norms_at: tuple[int, ...] = ()
    reliability_at: tuple[int, ...] = ()
    reliability_bins: int = 15
    clean_train: bool = False
    of_average: bool = True

    def __post_init__(self) -> None:
        unknown = [name for name in self.figures if name not in FIGURES]
        if unknown:
            raise InputError(f"unknown figure '{unknown[0]}'; there are {', '.join(FIGURES)}")
        if self.reliability_bins < 1:
            raise InputError(f"reliability_bins must be at least 1, got {self.reliability_bins}")

    def refuse_beyond(self, epochs: int) -> None:
        """Raise if an epoch to record is not one of the training."""
        for epoch in (*self.gradient_norms_at, *self.reliability_at):
            if not 0 <= epoch < epochs:
                raise InputError(f"epoch {epoch} is to be recorded, but epochs are 0 to {epochs - 1}")


NOTHING = Record((), (), weight_norm=False, learned_epochs=False, of_average=False)
"""Only loss and learning rate."""
