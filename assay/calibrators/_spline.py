"""Calibration of neural networks using splines (Gupta et al., ICLR 2021)."""

from __future__ import annotations

import numpy as np

from assay import metrics
from assay.calibrators._top_label import brier, fitted
from assay.maps import Curve
from assay.predictions import Outcomes, Predictions

POINTS = 1000  # that the curve is stored by


def spline(held_out: Predictions | Outcomes, *, n_knots: int = 6) -> Curve:
    """The slope of a natural cubic spline through the cumulative accuracy minus confidence, plus the confidence.

    The spline runs over the rank of the sample, has knots at equal ranks and is fitted by least squares. Of a score
    that is no probability the accuracy alone is cumulated.
    """
    from scipy.interpolate import CubicSpline

    outcomes = held_out.outcomes()
    r = metrics.ranking(outcomes)
    score, size = r.score[::-1], r.size[::-1]
    claimed = score if outcomes.is_probability else np.zeros_like(score)
    rank = np.cumsum(size) / r.n
    excess = np.cumsum(r.hits[::-1] - claimed * size) / r.n
    basis = CubicSpline(np.linspace(0, 1, n_knots), np.eye(n_knots), bc_type="natural")
    # The cumulated sum starts from 0, so the first knot is there too.
    columns, weight = basis(rank)[:, 1:], np.sqrt(size)
    heights = np.linalg.lstsq(columns * weight[:, None], excess * weight, rcond=None)[0]
    slope = basis(rank - size / r.n / 2, 1)[:, 1:] @ heights
    shown = np.unique(np.linspace(0, len(score) - 1, POINTS).round().astype(int))
    x, y = score[shown].tolist(), np.clip(claimed + slope, 0, 1)[shown].tolist()
    return fitted(outcomes, brier, lambda fit: Curve(fit, tuple(x), tuple(y)))
