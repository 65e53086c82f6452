"""Judging a calibrator without a second set: fit on some folds, apply to the other."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import torch

from assay.arrays import InputError
from assay.maps import Map, apply
from assay.metrics import Floats
from assay.predictions import Outcomes, Predictions


def cross_validated(
    held_out: Predictions | Outcomes, calibrator: Callable[[Any], Map], *, folds: int = 5, seed: int = 0
) -> Outcomes:
    """Outcomes of each row under a map that was fitted without it, in the order of the file."""
    if len(held_out) < 2 * folds:
        raise InputError(f"{len(held_out)} rows are too few for {folds} folds")
    fold = torch.from_numpy(np.random.default_rng(seed).permutation(len(held_out)) % folds)
    parts = [apply(calibrator(held_out[fold != i]), held_out[fold == i]).outcomes() for i in range(folds)]
    order = torch.cat([(fold == i).nonzero().squeeze(1) for i in range(folds)])
    return reduce(add, parts)[order.argsort()]


def simplest(losses: Floats) -> int:
    """Of columns [n, m], simplest first, the first within one standard error of the best; rows are folds or samples."""
    behind = losses - losses[:, [losses.mean(0).argmin()]]
    error = behind.std(0, ddof=1) / np.sqrt(len(losses)) if len(losses) > 1 else 0 * behind[0]
    return int((behind.mean(0) <= error).argmax())


def shared_rows(fitted_on: Predictions | Outcomes, judged_on: Predictions | Outcomes) -> int:
    """How many rows of the second were in the first: by ids, or else by what the rows hold.

    Rows that any sure model could share by chance, a probability of exactly 1, are not counted.
    """
    if fitted_on.ids is not None and judged_on.ids is not None:
        return int(np.isin(judged_on.ids.astype(str), fitted_on.ids.astype(str)).sum())
    if isinstance(fitted_on, Predictions) and isinstance(judged_on, Predictions):
        seen = set(_fingerprints(fitted_on))
        return sum(row in seen for row in _fingerprints(judged_on))
    same = torch.equal(fitted_on.outcomes().confidence, judged_on.outcomes().confidence)
    return len(judged_on) if same else 0


def _fingerprints(predictions: Predictions) -> list[bytes]:
    values = predictions.values.float()
    telling = values.amax(1) < 1 if predictions.normalized else torch.ones(len(values), dtype=torch.bool)
    return [row.tobytes() for row in values[telling].cpu().numpy()]
