"""Judging a calibrator without a second set: fit on some folds, apply to the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
    parts = [part.outcomes() for part in _applied(held_out, calibrator, fold)]
    return reduce(add, parts)[_back(fold)]


def cross_applied(
    held_out: Predictions, calibrator: Callable[[Any], Map], *, folds: int = 5, seed: int = 0
) -> Predictions | Outcomes:
    """The same with the probabilities of all classes, if each fold's map leaves them."""
    fold = fold_of(held_out, folds, seed)
    parts = list(_applied(held_out, calibrator, fold))
    whole = [part for part in parts if isinstance(part, Predictions)]
    if len(whole) < folds or len({part.normalized for part in whole}) > 1:
        return reduce(add, [part.outcomes() for part in parts])[_back(fold)]
    return reduce(add, whole)[_back(fold)]


def _applied(
    held_out: Predictions | Outcomes, calibrator: Callable[[Any], Map], fold: Labels
) -> Iterator[Predictions | Outcomes]:
    """Each fold under the map that was fitted on the others."""
    for i in range(int(fold.max()) + 1):
        yield apply(calibrator(held_out[fold != i]), held_out[fold == i])


def _back(fold: Labels) -> Labels:
    """Where each row of the file stands among the rows fold by fold."""
    return np.argsort(np.argsort(fold, kind="stable"))


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
