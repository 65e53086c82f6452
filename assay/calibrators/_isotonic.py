"""Transforming classifier scores into accurate multiclass probability estimates (Zadrozny & Elkan, KDD 2002): isotonic
regression, of the correctness on the confidence in the predicted class."""

from __future__ import annotations

from assay import metrics
from assay.calibrators._top_label import brier, fitted
from assay.maps import Curve
from assay.predictions import Outcomes, Predictions


def isotonic(held_out: Predictions | Outcomes) -> Curve:
    """The non-decreasing accuracy nearest to the answers, with straight lines between its steps."""
    outcomes = held_out.outcomes()
    r = metrics.ranking(outcomes)
    runs = metrics.isotonic(r)
    points: list[tuple[float, float]] = []
    first = 0
    for last, accuracy in zip(runs.last.tolist(), runs.accuracy.tolist(), strict=True):
        # A run of the ranking is flat between its highest score and its lowest.
        points += [(float(r.score[first]), accuracy)] + ([(float(r.score[last]), accuracy)] if last > first else [])
        first = last + 1
    x, y = zip(*reversed(points), strict=True)
    return fitted(outcomes, brier, lambda fit: Curve(fit, x, y))
