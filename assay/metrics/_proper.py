"""Stable reliability diagrams (Dimitriadis, Gneiting & Jordan, PNAS 2021): proper scores in two parts.

The score is that of the top-label event, "the answer is right", forecast by the confidence: (c - a)^2 and the binary
log loss. Recalibrating by isotonic regression on the same samples leaves its refinement, a function of the ranking
alone; what that gained was its calibration error. Both are slightly in favor of refinement, being fitted in sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from assay._core import loops
from assay.metrics._tables import Rankable, isotonic, once, ranking


@dataclass(frozen=True)
class Decomposition:
    """calibration + refinement = score of the top-label event."""

    calibration: float
    refinement: float


def brier_decomposition(x: Rankable) -> Decomposition:
    """Calibration and refinement of the squared error."""
    return once(x, _brier)


def nll_decomposition(x: Rankable) -> Decomposition:
    """Calibration and refinement of the log loss; the former is infinite where a sure answer was wrong."""
    return once(x, _nll)


def brier_calibration(x: Rankable) -> float:
    """Top-label squared error that isotonic recalibration removes."""
    return brier_decomposition(x).calibration


def brier_refinement(x: Rankable) -> float:
    """Top-label squared error left after isotonic recalibration."""
    return brier_decomposition(x).refinement


def nll_calibration(x: Rankable) -> float:
    """Top-label log loss that isotonic recalibration removes."""
    return nll_decomposition(x).calibration


def nll_refinement(x: Rankable) -> float:
    """Top-label log loss left after isotonic recalibration."""
    return nll_decomposition(x).refinement


def _brier(x: Rankable) -> Decomposition:
    r, fit = ranking(x), isotonic(x)
    score = r.areas.squared_claims - 2 * r.areas.claims_of_hits + float(r.right[-1])
    refinement = float((fit.hits * fit.misses / (fit.hits + fit.misses)).sum())
    return Decomposition((score - refinement) / r.n, refinement / r.n)


def _nll(x: Rankable) -> Decomposition:
    from scipy.special import xlogy

    r, fit = ranking(x), isotonic(x)
    accuracy = fit.accuracy
    refinement = -float((xlogy(fit.hits, accuracy) + xlogy(fit.misses, 1 - accuracy)).sum())
    # Only the first row can have confidence 1, only the last 0.
    if (r.score[0] == 1 and r.wrong[1]) or (r.score[-1] == 0 and r.right[-1] > r.right[-2]):
        return Decomposition(inf, refinement / r.n)
    score = -loops.log_likelihood(r.score, r.kept, r.wrong)
    return Decomposition((score - refinement) / r.n, refinement / r.n)
