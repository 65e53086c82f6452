"""Optimizers, weight averaging and learning-rate schedules, each usable alone in anybody's loop."""

from assay.nn.optim._averaging import WeightAverage, ema, recompute_batch_norm, swa
from assay.nn.optim._modes import modes_kept
from assay.nn.optim._sam import SAM, climbed, frozen_statistics, gradients
from assay.nn.optim._scaling import scaled_step
from assay.nn.optim._schedules import (
    Schedule,
    by_epoch,
    constant,
    cosine,
    cosine_then_swa,
    cyclical,
    epoch_at,
    linear_to_swa,
    multistep,
)

__all__ = [
    "SAM",
    "Schedule",
    "WeightAverage",
    "by_epoch",
    "climbed",
    "constant",
    "cosine",
    "cosine_then_swa",
    "cyclical",
    "ema",
    "epoch_at",
    "frozen_statistics",
    "gradients",
    "linear_to_swa",
    "modes_kept",
    "multistep",
    "recompute_batch_norm",
    "scaled_step",
    "swa",
]
