"""Which calibrator? The simplest that is as good as the best where it was not fitted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf, sqrt
from typing import Any

import torch
from torch import Tensor

from assay._core.arrays import InputError
from assay.calibrators._cross import cross_validated
from assay.calibrators._ensemble import ensemble_temperature
from assay.calibrators._isotonic import isotonic
from assay.calibrators._logistic import beta, platt
from assay.calibrators._matrix import dirichlet, matrix
from assay.calibrators._spline import spline
from assay.calibrators._temperature import temperature
from assay.calibrators._vector import vector
from assay.maps import Candidate, Fit, Map, Sequence
from assay.predictions import Outcomes, Predictions

# Simplest first, and those that may change a label after those that cannot.
OF_CONFIDENCE: tuple[Callable[[Any], Map], ...] = (platt, beta, spline, isotonic)
FAMILY: tuple[Callable[[Any], Map], ...] = (
    *(temperature, ensemble_temperature),
    *OF_CONFIDENCE,
    *(vector, dirichlet, matrix),
)


def auto(held_out: Predictions | Outcomes, *, folds: int = 5, seed: int = 0) -> Map:
    """The simplest calibrator within one standard error of the least cross-validated NLL; none, if that is enough.

    The standard error is that of the difference to the best, sample by sample. What a map of the confidence leaves to
    the other classes is shared out in their proportion; of confidences alone the top-label log loss is taken. The
    table of candidates is in the map's `fit.chosen_from`.
    """
    before = held_out.outcomes()
    losses = {"unchanged": _loss(before, before)} if before.is_probability else {}
    refused: InputError | None = None
    family = FAMILY if isinstance(held_out, Predictions) else OF_CONFIDENCE
    for calibrator in family:
        try:
            losses[calibrator.__name__] = _loss(before, cross_validated(held_out, calibrator, folds=folds, seed=seed))
        except InputError as error:  # these rows do not allow it
            refused = error
            losses[calibrator.__name__] = torch.full_like(before.confidence, inf)
    best = min(losses.values(), key=lambda loss: float(loss.mean()))
    table = tuple(_candidate(name, loss, best) for name, loss in losses.items())
    # Where every loss is infinite, or there is but one row, the first is as good as any.
    chosen = next((candidate for candidate in table if candidate.behind <= candidate.error), table[0])
    if refused is not None and chosen.loss == inf and not before.is_probability:
        raise refused
    by_name = {calibrator.__name__: calibrator for calibrator in family}
    if chosen.name not in by_name:
        value = float(losses["unchanged"].mean())
        return Sequence(Fit("NLL", value, value, 0, len(held_out), chosen_from=table), ())
    mapping = by_name[chosen.name](held_out)
    return replace(mapping, fit=replace(mapping.fit, chosen_from=table))


def _loss(before: Outcomes, after: Outcomes) -> Tensor:
    """NLL of each row [n]."""
    if after.nll is not None:
        return after.nll
    right, c = after.correct, after.confidence
    if before.nll is None:
        return -c.where(right, 1 - c).log()
    # Of what the others had, the true class had its part: no more than all, also where rounding left them nothing.
    part = (-before.nll - torch.log1p(-before.confidence)).nan_to_num(nan=-inf, neginf=-inf).clamp(max=0)
    return -c.log().where(right, torch.log1p(-c) + part)


def _candidate(name: str, loss: Tensor, best: Tensor) -> Candidate:
    mean = float(loss.mean())
    if mean == inf:
        return Candidate(name, inf, inf, 0.0)
    behind = loss - best
    return Candidate(name, mean, float(behind.mean()), float(behind.std()) / sqrt(len(loss)))
