"""Soft calibration objectives for neural networks (Karandikar et al., NeurIPS 2021; karandikar2021): TS-SB-ECE."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, sqrt

import numpy as np

from assay._core.arrays import Floats, row_chunks
from assay.calibrators._temperature import outcomes_at
from assay.calibrators._weights import weights_of
from assay.maps import Fit, Temperature
from assay.predictions import Outcomes, Predictions

N_BINS = 15
GRID = np.geomspace(0.05, 20, 61)  # the error has several valleys: the search starts from the best of these


def temperature_by_sb_ece_bin(held_out: Predictions, *, softness: float = 0.01) -> Temperature:
    """The temperature of least soft-binned ECE (l2, 15 bins), binned form; `softness` is that of the bins."""
    return _least(held_out, "SB-ECE (bin)", lambda o: soft_binned_ece(o, softness))


def temperature_by_sb_ece_lb(held_out: Predictions, *, softness: float = 0.01) -> Temperature:
    """The temperature of least soft-binned ECE (l2, 15 bins), label-binned form, the one karandikar2021 trains with."""
    return _least(held_out, "SB-ECE (lb)", lambda o: soft_label_binned_ece(o, softness))


def _least(held_out: Predictions, objective: str, loss: Callable[[Outcomes], float]) -> Temperature:
    from scipy.optimize import minimize_scalar

    outcomes = outcomes_at(held_out)

    def at(log_t: float) -> float:
        return loss(outcomes(exp(log_t)))

    grid = np.log(GRID)
    best = int(np.argmin([at(x) for x in grid]))
    between = (grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)])
    found = minimize_scalar(at, bounds=between, method="bounded", options={"xatol": 1e-7})
    steps, at_bound = len(grid) + int(found.nfev), best in (0, len(grid) - 1)
    fit = Fit(objective, at(0.0), float(found.fun), steps, len(held_out), at_bound)
    return Temperature(fit, exp(found.x), held_out.n_classes)


def soft_binned_ece(outcomes: Outcomes, softness: float) -> float:
    """sqrt(sum_j S_j / N (A_j - C_j)^2) over soft bins of size S, accuracy A and mean confidence C (eq 11)."""
    size, hits, claims, _ = _soft_bins(outcomes, softness)
    return sqrt(float(((hits - claims) ** 2 / size).sum()) / len(outcomes))


def soft_label_binned_ece(outcomes: Outcomes, softness: float) -> float:
    """sqrt(1 / N sum_i sum_j u_j(c_i) (A_j - c_i)^2) over soft bins of accuracy A and membership u (eq 12)."""
    size, hits, claims, squares = _soft_bins(outcomes, softness)
    # The binned form, and the spread of the confidences in each bin, which rounding may take below 0.
    spread = np.maximum(squares - claims**2 / size, 0)
    return sqrt(float(((hits - claims) ** 2 / size + spread).sum()) / len(outcomes))


def _soft_bins(outcomes: Outcomes, softness: float) -> Floats:
    """Sums over soft bins, each sample weighted by its membership: of 1, correct, c and c^2, [4, b].

    The membership of c is softmax_j(-(c - center_j)^2 / softness) over the centers of bins of equal width.
    """
    center = (np.arange(N_BINS)[:, None] + 0.5) / N_BINS
    sums, weights = np.zeros((4, N_BINS)), weights_of(outcomes)
    for rows in row_chunks(len(outcomes), 4 * N_BINS):
        c = outcomes.confidence[rows]
        distance = (c - center) ** 2
        u = np.exp((distance.min(0) - distance) / softness)
        u /= u.sum(0) if weights is None else u.sum(0) / weights[rows]
        sums += np.stack([np.ones_like(c), outcomes.correct[rows], c, c * c]) @ u.T
    # Far from every confidence a bin's membership underflows to 0; the bin is then empty.
    sums[0] = np.maximum(sums[0], np.finfo(np.float64).tiny)
    return sums
