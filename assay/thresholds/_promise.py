"""The rows that a promise is about."""

from __future__ import annotations

from dataclasses import replace

from assay import metrics
from assay._core.arrays import InputError
from assay.predictions import Outcomes, Predictions
from assay.thresholds._positive import PositiveThreshold
from assay.thresholds._records import Threshold


def decided_by(rows: Predictions | Outcomes, threshold: Threshold | PositiveThreshold) -> Outcomes:
    """Outcomes whose confidence is what the threshold is compared with."""
    if isinstance(threshold, Threshold):
        return rows.outcomes()
    if not isinstance(rows, Predictions) or rows.n_classes != 2:
        raise InputError("the threshold is one of class 1, and needs predictions of two classes")
    return metrics.positive_class(rows)


def promised_rows(rows: Predictions | Outcomes, threshold: Threshold | PositiveThreshold) -> Outcomes:
    """The rows that the promise is about, right where they keep it.

    Accepted answers, or rows answered 1 for a precision, that are right; for a recall rows of class 1 answered so.
    """
    outcomes = decided_by(rows, threshold)
    above = outcomes.confidence >= threshold.value
    if isinstance(threshold, Threshold) or threshold.goal == "precision":
        return outcomes[above]
    if threshold.goal == "recall":
        return replace(outcomes, correct=above)[outcomes.correct]
    raise InputError("a bound on the cost is not tested on new rows; choose the threshold again, by --costs")
