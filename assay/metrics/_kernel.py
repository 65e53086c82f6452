"""Calibration without bins: the kernel error of Kumar et al. (2018), the smooth error of Błasiok & Nakkiran (2024)."""

from math import sqrt

import numpy as np

from assay._core import loops
from assay.metrics._tables import Rankable, ranking


def mmce(x: Rankable, *, width: float = 0.4) -> float:
    """Maximum mean calibration error, root of mean_ij d_i d_j exp(-|c_i - c_j| / width) with d = correct - confidence.

    exp(-|a - b|) is exp(-a) exp(b) once a >= b, so after the sort one cumulative sum replaces the n x n kernel.
    """
    r = ranking(x)
    if max(abs(r.score[0]), abs(r.score[-1])) > 700 * width:
        raise ValueError(f"a kernel of width {width} is too narrow for scores between {r.score[-1]} and {r.score[0]}")
    square = loops.laplacian(r.score, r.kept, r.wrong, width)
    return sqrt(max(square, 0.0)) / r.n


def smooth_ece(x: Rankable, *, grid: int = 4096) -> float:
    """smECE: the residual d = confidence - correct smoothed by a Gaussian of width s, in l1, at the s equal to it.

    The kernel is reflected at 0 and 1, so it only damps the cosines of the residual's histogram: one cosine transform
    serves every width. The smoothed error falls as s rises, so it equals s once, where Brent's method finds it.
    """
    from scipy.fft import dct, idct
    from scipy.optimize import brentq

    r = ranking(x)
    cosines = dct(loops.residuals(r.score, r.kept, r.wrong, grid) / r.n, norm="ortho")
    frequency = np.pi * np.arange(grid)

    def excess(width: float) -> float:
        smoothed = idct(cosines * np.exp(-0.5 * (width * frequency) ** 2), norm="ortho")
        return float(np.abs(smoothed).sum()) - width

    return brentq(excess, 0, 1, xtol=1e-12) if excess(1) < 0 else 1.0
