"""Weights of rows in a fit: the mean weight counts as one row, whatever the unit."""

from __future__ import annotations

from assay._core.arrays import Floats
from assay.predictions import Outcomes, Predictions


def weights_of(held_out: Predictions | Outcomes) -> Floats | None:
    """Weights [n] with a mean of 1; None where all rows count alike."""
    return None if held_out.weights is None else held_out.weights / held_out.weights.mean()


def mean(column: Floats, weights: Floats | None) -> float:
    """The mean of a column [n] by its weights."""
    return float(column.mean() if weights is None else weights @ column / weights.sum())
