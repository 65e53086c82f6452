"""Obtaining calibrated probability estimates from decision trees and naive Bayesian classifiers (Zadrozny & Elkan, ICML
2001): histogram binning, of the confidence in the predicted class."""

from __future__ import annotations

import numpy as np

from assay import metrics
from assay._core.arrays import InputError
from assay.calibrators._top_label import brier, fitted
from assay.maps import Steps
from assay.metrics import Bins
from assay.predictions import Outcomes, Predictions


def histogram(held_out: Predictions | Outcomes, *, n_bins: int = 15) -> Steps:
    """The accuracy of each of `n_bins` bins of equal width, as in wang2021; an empty bin gives its middle."""
    outcomes = held_out.outcomes()
    if not outcomes.is_probability:
        raise InputError("bins of equal width need a confidence in [0, 1]; for other scores use histogram_mass")
    bins = metrics.equal_width(outcomes, n_bins)
    middle = bins.upper - 0.5 / n_bins
    return _steps(outcomes, bins, np.where(bins.count > 0, bins.accuracy, middle))


def histogram_mass(held_out: Predictions | Outcomes, *, n_bins: int = 15) -> Steps:
    """The accuracy of each of `n_bins` bins of equal mass; edges lie midway between neighbors, tied bins are one."""
    outcomes = held_out.outcomes()
    bins = metrics.equal_mass(metrics.ranking(outcomes), n_bins)
    kept = bins.count > 0
    bins = Bins(*(column[kept] for column in (bins.upper, bins.count, bins.confidence, bins.correct)))
    score = np.unique(outcomes.confidence.cpu().numpy())
    above = score[np.minimum(np.searchsorted(score, bins.upper, side="right"), len(score) - 1)]
    return _steps(outcomes, Bins((bins.upper + above) / 2, bins.count, bins.confidence, bins.correct), bins.accuracy)


def _steps(outcomes: Outcomes, bins: Bins, value: metrics.Floats) -> Steps:
    upper, levels = tuple(bins.upper.tolist()), tuple(value.tolist())
    return fitted(outcomes, brier, lambda fit: Steps(fit, upper, levels))
