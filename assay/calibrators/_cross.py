"""Judging a calibrator without a second set: fit on some folds, apply to the others."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from assay._core.arrays import Floats, InputError
from assay.maps import Map, apply
from assay.predictions import Outcomes, Predictions


def cross_validated(
    held_out: Predictions | Outcomes, calibrator: Callable[[Any], Map], *, folds: int = 5, seed: int = 0
) -> Outcomes:
    """Outcomes of each row under a map that was fitted without it, in the order of the file."""
    if len(held_out) < 2 * folds:
        raise InputError(f"{len(held_out)} rows are too few for {folds} folds")
    fold = np.random.default_rng(seed).permutation(len(held_out)) % folds
    parts = [apply(calibrator(held_out[fold != i]), held_out[fold == i]).outcomes() for i in range(folds)]
    order = np.argsort(fold, kind="stable")
    return reduce(add, parts)[order.argsort()]


def simplest(losses: Floats) -> int:
    """Of columns [n, m], simplest first, the first within one standard error of the best; rows are folds or samples."""
    behind = losses - losses[:, [losses.mean(0).argmin()]]
    error = behind.std(0, ddof=1) / np.sqrt(len(losses)) if len(losses) > 1 else 0 * behind[0]
    return int((behind.mean(0) <= error).argmax())
