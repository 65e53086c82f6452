"""Judging a calibrator without a second set: fit on some folds, apply to the others."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from assay._core.arrays import Floats, InputError, Labels
from assay.maps import Map, apply
from assay.predictions import Outcomes, Predictions


def cross_validated(
    held_out: Predictions | Outcomes, calibrator: Callable[[Any], Map], *, folds: int = 5, seed: int = 0
) -> Outcomes:
    """Outcomes of each row under a map that was fitted without it, in the order of the file."""
    fold = fold_of(held_out, folds, seed)
    parts = [apply(calibrator(held_out[fold != i]), held_out[fold == i]).outcomes() for i in range(folds)]
    order = np.argsort(fold, kind="stable")
    return reduce(add, parts)[order.argsort()]


def fold_of(held_out: Predictions | Outcomes, folds: int, seed: int) -> Labels:
    """The fold of each row [n], at random; rows of one cluster share a fold."""
    rng, what, member = np.random.default_rng(seed), "rows", None
    n = len(held_out)
    if held_out.cluster is not None:
        names, member = np.unique(held_out.cluster, return_inverse=True)
        n, what = len(names), "clusters"
    if n < 2 * folds:
        raise InputError(f"{n} {what} are too few for {folds} folds")
    fold = rng.permutation(n) % folds
    return fold if member is None else np.asarray(fold[member])


def simplest(losses: Floats) -> int:
    """Of columns [n, m], simplest first, the first within one standard error of the best; rows are folds or samples."""
    behind = losses - losses[:, [losses.mean(0).argmin()]]
    error = behind.std(0, ddof=1) / np.sqrt(len(losses)) if len(losses) > 1 else 0 * behind[0]
    return int((behind.mean(0) <= error).argmax())
