"""Verified uncertainty calibration (Kumar, Liang & Ma, NeurIPS 2019): the scaling-binning calibrator."""

from __future__ import annotations

from dataclasses import replace

import torch

from assay import metrics
from assay.calibrators._histogram import histogram_mass
from assay.calibrators._logistic import platt
from assay.calibrators._top_label import brier, fitted
from assay.maps import Steps
from assay.predictions import Outcomes, Predictions


def scaling_binning(held_out: Predictions | Outcomes, *, n_bins: int = 15) -> Steps:
    """Platt scaling, then the mean of its values in each of `n_bins` bins of equal mass.

    The bin's mean of a smooth map varies less than the bin's accuracy, which histogram binning takes. The paper splits
    the held-out set into parts for the scaling and for the bins; all of it serves for both here, as in its code.
    """
    outcomes = held_out.outcomes()
    smooth = platt(outcomes)(outcomes.confidence)
    steps = histogram_mass(outcomes, n_bins=n_bins)
    index = torch.bucketize(outcomes.confidence, torch.tensor(steps.upper[:-1], dtype=torch.float64))
    total, count = (metrics.tally(index.numpy(), w, len(steps.value)) for w in (smooth.numpy(), None))
    return fitted(outcomes, brier, lambda fit: replace(steps, fit=fit, value=tuple((total / count).tolist())))
