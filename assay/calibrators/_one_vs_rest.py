"""Transforming classifier scores into accurate multiclass probability estimates (Zadrozny & Elkan, KDD 2002): each
class against the rest, then normalized."""

from __future__ import annotations

from collections.abc import Callable

import torch

from assay import metrics
from assay._core import arrays
from assay.calibrators._histogram import histogram_mass
from assay.calibrators._isotonic import isotonic
from assay.maps import ConfidenceMap, Fit, OneVsRest, Steps
from assay.predictions import Outcomes, Predictions

OBJECTIVE = "Brier before rows are normalized"


def histogram_one_vs_rest(held_out: Predictions, *, n_bins: int = 15) -> OneVsRest:
    """How often each class was true in each of `n_bins` bins of equal width of its probability; rows sum to 1 again.

    An empty bin gives its middle.
    """
    # Few entries of a row exceed 1 / n_bins, and only those are binned; the first bin is what remains of the column.
    tally = metrics.class_tally(held_out, n_bins, 1 / n_bins)
    outcomes = held_out.outcomes(tally)
    bins = tally.bins()
    count, correct = bins.count.clone(), bins.correct.clone()
    count[:, 0], correct[:, 0] = bins.n - count[:, 1:].sum(1), correct[:, 0] + bins.rest_correct
    upper = torch.arange(1, n_bins + 1, dtype=torch.float64, device=count.device) / n_bins
    value = torch.where(count > 0, correct / count.clamp(min=1), upper - 0.5 / n_bins)
    assert outcomes.brier is not None
    after = float((correct * (1 - value)).sum() / bins.n)  # of hits (1 - v)^2 and of the others v^2, v their share
    fit = Fit(OBJECTIVE, float(outcomes.brier.mean()), after, 1, bins.n)
    edges = tuple(upper.tolist())
    return OneVsRest(fit, tuple(Steps(fit, edges, tuple(row)) for row in value.tolist()))


def histogram_mass_one_vs_rest(held_out: Predictions, *, n_bins: int = 15) -> OneVsRest:
    """How often each class was true in each of `n_bins` bins of equal mass of its probability; rows sum to 1 again."""
    return _each_class(held_out, lambda outcomes: histogram_mass(outcomes, n_bins=n_bins))


def isotonic_one_vs_rest(held_out: Predictions) -> OneVsRest:
    """For each class the non-decreasing frequency nearest to whether it was true; rows sum to 1 again."""
    return _each_class(held_out, isotonic)


def _each_class(held_out: Predictions, calibrator: Callable[[Outcomes], ConfidenceMap]) -> OneVsRest:
    n, k = held_out.values.shape
    columns = torch.empty(k, n, dtype=held_out.values.dtype, device=held_out.values.device)
    for rows in arrays.row_chunks(n, k, device=columns.device):
        columns[:, rows] = held_out[rows].probabilities.T
    maps = tuple(calibrator(Outcomes(p.double(), held_out.labels == i)) for i, p in enumerate(columns))
    before, after = sum(m.fit.before or 0.0 for m in maps), sum(m.fit.after for m in maps)
    return OneVsRest(Fit(OBJECTIVE, before, after, 1, len(held_out)), maps)
