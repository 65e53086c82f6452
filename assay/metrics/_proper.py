"""Stable reliability diagrams (Dimitriadis, Gneiting & Jordan, PNAS 2021): proper scores in two parts.

The score is that of the top-label event, "the answer is right", forecast by the confidence: (c - a)^2 and the binary
log loss. Recalibrating by isotonic regression on the same samples leaves its refinement, a function of the ranking
alone; what that gained was its calibration error. Both are slightly in favor of refinement, being fitted in sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from sys import float_info

import numpy as np
from numpy.typing import NDArray

from assay._core import arrays, loops
from assay.metrics._ranking import Floats, Ranking, last_of_runs


@dataclass(frozen=True)
class Decomposition:
    """calibration + refinement = score of the top-label event."""

    calibration: float
    refinement: float


@dataclass(frozen=True, eq=False)
class Isotonic:
    """Runs of the ranking, most confident first, that isotonic regression gives one accuracy."""

    hits: Floats  # [s] right answers in the run
    misses: Floats  # [s] errors
    last: NDArray[np.int64]  # [s] its last row in the ranking

    @property
    def accuracy(self) -> Floats:
        return self.hits / (self.hits + self.misses)


def isotonic(r: Ranking) -> Isotonic:
    """Least-squares accuracy that never rises down the ranking: neighbors out of order are pooled."""
    ends = loops.majorant(r.kept, r.right) if loops.AVAILABLE else _pooled(r)
    right, wrong = r.right[ends], r.wrong[ends]
    return Isotonic(right[1:] - right[:-1], wrong[1:] - wrong[:-1], ends[1:] - 1)


def _pooled(r: Ranking) -> NDArray[np.int64]:
    """Where pooled runs begin, and the end of the last: corners of the concave majorant of right against kept."""
    from scipy.optimize import isotonic_regression

    accuracy = r.hits / r.size
    # Neighbors of equal accuracy are pooled in any case; without them there is far less to fit.
    last = last_of_runs(accuracy)
    ends = np.append(0, last + 1)
    fit = isotonic_regression(accuracy[last], weights=np.diff(r.kept[ends]), increasing=False)
    return np.asarray(ends[fit.blocks])


def brier_decomposition(r: Ranking, fit: Isotonic | None = None) -> Decomposition:
    """Calibration and refinement of the squared error; `fit` spares a second isotonic regression."""
    fit = fit or isotonic(r)
    score = float(r.score @ r.claims - 2 * (r.score @ r.hits) + r.right[-1])
    refinement = float((fit.hits * fit.misses / (fit.hits + fit.misses)).sum())
    return Decomposition((score - refinement) / r.n, refinement / r.n)


def nll_decomposition(r: Ranking, fit: Isotonic | None = None) -> Decomposition:
    """Calibration and refinement of the log loss; the former is infinite where a sure answer was wrong."""
    from scipy.special import xlogy

    fit = fit or isotonic(r)
    accuracy = fit.accuracy
    refinement = -float((xlogy(fit.hits, accuracy) + xlogy(fit.misses, 1 - accuracy)).sum())
    # Only the first row can have confidence 1, only the last 0.
    if (r.score[0] == 1 and r.misses[0]) or (r.score[-1] == 0 and r.hits[-1]):
        return Decomposition(inf, refinement / r.n)
    normal = float_info.min <= r.score[-1] and r.score[0] <= 1
    score = -(loops.log_likelihood if loops.AVAILABLE and normal else _log_likelihood)(r.score, r.hits, r.misses)
    return Decomposition((score - refinement) / r.n, refinement / r.n)


def _log_likelihood(score: Floats, hits: Floats, misses: Floats) -> float:
    """Of right answers log c, of errors log(1 - c)."""
    some, wrong = len(score) - int(score[-1] == 0), np.flatnonzero(misses > 0)
    return float(arrays.log(score[:some]) @ hits[:some] + np.log1p(-score[wrong]) @ misses[wrong])
