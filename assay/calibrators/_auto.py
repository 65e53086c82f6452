"""Which calibrator? The simplest that is as good as the best on rows it was not fitted on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf, sqrt
from typing import Any

import numpy as np

from assay._core.arrays import Floats, InputError, log
from assay.calibrators._cross import cross_validated
from assay.calibrators._ensemble import ensemble_temperature
from assay.calibrators._matrix import dirichlet, matrix
from assay.calibrators._temperature import temperature
from assay.calibrators._top_label import beta, isotonic, platt, spline
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
    the other classes is shared out in their proportion; for confidences alone the top-label log loss is used. The
    candidates are in the map's `fit.chosen_from`.
    """
    before = held_out.outcomes()
    losses = {"unchanged": _loss(before, before)} if before.is_probability else {}
    refused: InputError | None = None
    family = FAMILY if isinstance(held_out, Predictions) else OF_CONFIDENCE
    for calibrator in family:
        try:
            losses[calibrator.__name__] = _loss(before, cross_validated(held_out, calibrator, folds=folds, seed=seed))
        except InputError as error:  # the calibrator cannot be fitted on these rows
            refused = error
            losses[calibrator.__name__] = np.full(len(before), inf)
    best = min(losses.values(), key=lambda loss: float(loss.mean()))
    table = tuple(_candidate(name, loss, best) for name, loss in losses.items())
    # If every loss is infinite, the first is as good as any.
    chosen = next((candidate for candidate in table if candidate.behind <= candidate.error), table[0])
    if refused is not None and chosen.loss == inf and not before.is_probability:
        raise refused
    by_name = {calibrator.__name__: calibrator for calibrator in family}
    if chosen.name not in by_name:
        value = float(losses["unchanged"].mean())
        return Sequence(Fit("NLL", value, value, 0, len(held_out), chosen_from=table), ())
    mapping = by_name[chosen.name](held_out)
    return replace(mapping, fit=replace(mapping.fit, chosen_from=table))


def _loss(before: Outcomes, after: Outcomes) -> Floats:
    """NLL of each row [n]."""
    if after.nll is not None:
        return after.nll
    right, c = after.correct, after.confidence
    if before.nll is None:
        return -log(np.where(right, c, 1 - c))
    # The true class keeps its share of what the others have: at most all of it, also where rounding left them nothing.
    with np.errstate(divide="ignore", invalid="ignore"):
        share = -before.nll - np.log1p(-before.confidence)
        share = np.minimum(np.nan_to_num(share, nan=-inf, posinf=0, neginf=-inf), 0)
        return -np.where(right, np.log(c), np.log1p(-c) + share)


def _candidate(name: str, loss: Floats, best: Floats) -> Candidate:
    mean = float(loss.mean())
    if mean == inf:
        return Candidate(name, inf, inf, 0.0)
    behind = loss - best
    error = float(behind.std(ddof=1)) / sqrt(len(loss)) if len(loss) > 1 else 0.0
    return Candidate(name, mean, float(behind.mean()), error)
