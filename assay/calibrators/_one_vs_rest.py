"""Transforming classifier scores into accurate multiclass probability estimates (Zadrozny & Elkan, KDD 2002): each
class against the rest, then normalized."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from assay import metrics
from assay._core.arrays import row_chunks, single
from assay.calibrators._top_label import histogram_mass, pooled
from assay.calibrators._weights import mean, weights_of
from assay.maps import ConfidenceMap, Fit, OneVsRest, Steps
from assay.predictions import Outcomes, Predictions

ROUNDING = 1e-9  # by which a sum of weights may miss 0
OBJECTIVE = "Brier before rows are normalized"


def histogram_one_vs_rest(held_out: Predictions, *, n_bins: int = 15) -> OneVsRest:
    """How often each class was true in each of `n_bins` bins of equal width of its probability; rows sum to 1 again.

    An empty bin gives its middle.
    """
    # Few entries of a row exceed 1 / n_bins, and only those are binned; the first bin is the rest of the column.
    bins, outcomes = metrics.class_bins(held_out, n_bins, 1 / n_bins), held_out.outcomes()
    count, correct = bins.count.copy(), bins.correct.copy()
    count[:, 0], correct[:, 0] = bins.n - count[:, 1:].sum(1), correct[:, 0] + bins.rest_correct
    upper = np.arange(1, n_bins + 1) / n_bins
    value = np.where(count > ROUNDING, correct / np.maximum(count, ROUNDING), upper - 0.5 / n_bins)
    assert outcomes.brier is not None, "predictions always have it"
    # A hit costs (1 - v)^2 and any other sample v^2, v being the share of hits.
    after = float((correct * (1 - value)).sum()) / bins.n
    fit = Fit(OBJECTIVE, mean(outcomes.brier, held_out.weights), after, 1, bins.n)
    return OneVsRest(fit, tuple(Steps(fit, upper, row) for row in value))


def histogram_mass_one_vs_rest(held_out: Predictions, *, n_bins: int = 15) -> OneVsRest:
    """How often each class was true in each of `n_bins` bins of equal mass of its probability; rows sum to 1 again."""
    return _each_class(held_out, lambda outcomes: histogram_mass(outcomes, n_bins=n_bins))


def isotonic_one_vs_rest(held_out: Predictions) -> OneVsRest:
    """For each class the non-decreasing frequency nearest to whether it was true; rows sum to 1 again."""
    return _each_class(held_out, lambda outcomes: pooled(outcomes, sure=True))


def _each_class(held_out: Predictions, calibrator: Callable[[Outcomes], ConfidenceMap]) -> OneVsRest:
    n, k = held_out.values.shape
    columns = np.empty((k, n), dtype=single(held_out.values[:0]).dtype)
    for rows in row_chunks(n, k):
        columns[:, rows] = held_out[rows].probabilities.T
    weights = weights_of(held_out)
    maps = tuple(
        calibrator(Outcomes(p.astype(np.float64), held_out.labels == i, weights=weights)) for i, p in enumerate(columns)
    )
    before, after = sum(m.fit.before or 0.0 for m in maps), sum(m.fit.after for m in maps)
    return OneVsRest(Fit(OBJECTIVE, before, after, 1, n), maps)
