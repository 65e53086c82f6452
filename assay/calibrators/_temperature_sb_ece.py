"""Soft calibration objectives for neural networks (Karandikar et al., NeurIPS 2021; karandikar2021): TS-SB-ECE."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, log

import numpy as np
from torch import Tensor

from assay.calibrators._temperature import outcomes_at
from assay.maps import Fit, Temperature
from assay.nn.losses import soft_binned_ece, soft_label_binned_ece
from assay.predictions import Predictions

GRID = np.geomspace(0.05, 20, 61)  # the error has several valleys: the best of these is where the descent starts


def temperature_by_sb_ece_bin(held_out: Predictions, *, softness: float = 0.01) -> Temperature:
    """The temperature of least soft-binned ECE (l2, 15 bins), binned form; `softness` is that of the bins."""
    return _least(held_out, "SB-ECE (bin)", lambda c, right: soft_binned_ece(c, right, temperature=softness))


def temperature_by_sb_ece_lb(held_out: Predictions, *, softness: float = 0.01) -> Temperature:
    """The temperature of least soft-binned ECE (l2, 15 bins), label-binned form, the one karandikar2021 trains with."""
    return _least(held_out, "SB-ECE (lb)", lambda c, right: soft_label_binned_ece(c, right, temperature=softness))


def _least(held_out: Predictions, objective: str, loss: Callable[[Tensor, Tensor], Tensor]) -> Temperature:
    from scipy.optimize import minimize_scalar

    outcomes = outcomes_at(held_out)

    def at(log_t: float) -> float:
        o = outcomes(exp(log_t))
        return float(loss(o.confidence, o.correct))

    grid = np.log(GRID)
    best = int(np.argmin([at(x) for x in grid]))
    between = (grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)])
    found = minimize_scalar(at, bounds=between, method="bounded", options={"xatol": 1e-7})
    steps, at_bound = len(grid) + int(found.nfev), best in (0, len(grid) - 1)
    fit = Fit(objective, at(log(1.0)), float(found.fun), steps, len(held_out), at_bound)
    return Temperature(fit, exp(found.x), held_out.n_classes)
