"""Judging a calibrator without a second set: fit on some folds, apply to the other."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from hashlib import blake2b
from operator import add
from typing import Any

import numpy as np
import torch

from assay._core.arrays import InputError
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
    """How many rows of the second were in the first, by what they hold: ids are often counted from 0 in either set.

    Rows that may be alike by chance, with a probability of exactly 1 or with nothing but a confidence of six digits or
    fewer, are counted where their ids agree too, or where the two sets are alike in all rows.
    """
    scores = isinstance(fitted_on, Predictions) and isinstance(judged_on, Predictions)
    with_ids = fitted_on.ids is not None and judged_on.ids is not None
    first, second = (_fingerprints(rows if scores else rows.outcomes(), with_ids) for rows in (fitted_on, judged_on))
    if len(first) == len(second) and sorted(first) == sorted(second):
        return len(judged_on)
    seen = {row for row, telling in first if telling}
    return sum(row in seen for row, _ in second)


def rows_digest(rows: Predictions | Outcomes) -> str:
    """The same for the same rows in any order."""
    return blake2b(
        b"".join(sorted(content for (content, _), _ in _fingerprints(rows, False))), digest_size=8
    ).hexdigest()


def _fingerprints(rows: Predictions | Outcomes, with_ids: bool) -> list[tuple[tuple[bytes, str], bool]]:
    """Hash of each row's content, with its id where that is needed to tell it from others, and whether they do."""
    if isinstance(rows, Predictions):
        content, beside = rows.values.float(), rows.labels
        telling = content.amax(1) < 1 if rows.normalized else torch.ones(len(rows), dtype=torch.bool)
    else:
        content, beside = rows.confidence, rows.correct
        telling = (rows.confidence - rows.confidence.round(decimals=6)).abs() > 1e-12
    ids = rows.ids.astype(str).tolist() if with_ids and rows.ids is not None else [""] * len(rows)
    columns = (content.cpu().numpy(), beside.cpu().numpy(), ids, telling.tolist())
    return [
        ((blake2b(row.tobytes() + label.tobytes(), digest_size=16).digest(), "" if tells else name), tells or with_ids)
        for row, label, name, tells in zip(*columns, strict=True)
    ]
