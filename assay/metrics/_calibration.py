"""Calibration: how far confidence is from accuracy. Every metric is a line on a table of bins."""

from __future__ import annotations

from math import sqrt

import numpy as np

from assay.metrics._ranking import ROUNDING
from assay.metrics._tables import N_BINS, Binnable, Rankable, equal_mass, equal_width, mass_bins, ranking


def ece(x: Binnable, n_bins: int = N_BINS, *, norm: float = 1) -> float:
    """Expected calibration error over equal-width bins: (sum of weight * |gap|^norm)^(1/norm).

    >>> from assay import Outcomes
    >>> round(ece(Outcomes.from_scores([0.9, 0.8, 0.7, 0.6], [True, True, False, True])), 3)
    0.35
    """
    bins = equal_width(x, n_bins)
    if norm == 1:
        return float(bins.weight @ np.abs(bins.gap))
    return float((bins.weight @ np.abs(bins.gap) ** norm) ** (1 / norm))


def rmsce(x: Binnable, n_bins: int = N_BINS) -> float:
    """Root mean squared calibration error over equal-width bins."""
    return ece(x, n_bins, norm=2)


def ada_ece(x: Binnable, n_bins: int = N_BINS, *, norm: float = 1) -> float:
    """AdaECE: the expected calibration error over equal-mass bins."""
    return ece(equal_mass(x, n_bins), norm=norm)


def ece_l2_mass(x: Binnable, n_bins: int = N_BINS) -> float:
    """The l2 calibration error over equal-mass bins (karandikar2021)."""
    return ada_ece(x, n_bins, norm=2)


def mce(x: Binnable, n_bins: int = N_BINS) -> float:
    """Maximum calibration error: the gap of the worst equal-width bin."""
    return float(np.abs(equal_width(x, n_bins).gap).max())


def oe(x: Binnable, n_bins: int = N_BINS) -> float:
    """Overconfidence error: sum of weight * confidence * (gap where positive) (Thulasidasan et al. 2019)."""
    bins = equal_width(x, n_bins)
    return float(bins.confidence @ np.maximum(bins.gap, 0) / bins.count.sum())


def debiased_ece(x: Binnable, n_bins: int = N_BINS) -> float:
    """l2 calibration error without what noise adds (Kumar et al. 2019), at least 0; a bin of one sample counts 0."""
    return sqrt(max(squared_ce(x, n_bins), 0.0))


def squared_ce(x: Binnable, n_bins: int = N_BINS) -> float:
    """Unbiased square of the l2 error over equal-mass bins; negative where noise would have added more than is seen."""
    bins = equal_mass(x, n_bins)
    noise = bins.accuracy * (1 - bins.accuracy) / np.maximum(bins.samples - 1, 1)
    return float(bins.weight @ ((bins.gap**2 - noise) * (bins.samples > 1 + ROUNDING)))


def ece_lb(x: Rankable, n_bins: int = N_BINS, *, norm: float = 1) -> float:
    """Label-binned ECE: each confidence against the accuracy of its equal-mass bin (karandikar2021, eq 7); norm 1 or 2.

    It is never below the binned form.
    """
    if norm not in (1, 2):
        raise ValueError(f"norm must be 1 or 2, got {norm}")
    n, mass = ranking(x).n, mass_bins(x, n_bins)
    return mass.gaps / n if norm == 1 else sqrt(mass.squares / n)


def ece_lb_l1(x: Rankable) -> float:
    """Label-binned ECE, l1."""
    return ece_lb(x)


def ece_lb_l2(x: Rankable) -> float:
    """Label-binned ECE, l2."""
    return ece_lb(x, norm=2)
