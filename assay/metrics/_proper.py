"""Stable reliability diagrams (Dimitriadis, Gneiting & Jordan, PNAS 2021): proper scores in two parts.

The score is that of the top-label event, "the answer is right", forecast by the confidence: (c - a)^2 and the binary
log loss. Recalibrating by isotonic regression on the same samples leaves its refinement, a function of the ranking
alone; what that gained was its calibration error. Both are slightly in favor of refinement, being fitted in sample.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from assay.metrics._ranking import Ranking


@dataclass(frozen=True)
class Decomposition:
    """calibration + refinement = score of the top-label event."""

    calibration: float
    refinement: float


def isotonic(r: Ranking) -> Tensor:
    """Accuracy at each distinct score, [t], made non-increasing down the ranking by least squares."""
    from scipy.optimize import isotonic_regression

    size = r.kept.diff()
    fit = isotonic_regression((r.right.diff() / size).cpu().numpy(), weights=size.cpu().numpy(), increasing=False)
    return torch.as_tensor(fit.x.copy(), device=size.device)


def brier_decomposition(r: Ranking, recalibrated: Tensor | None = None) -> Decomposition:
    """Calibration and refinement of the squared error; `recalibrated` spares a second isotonic fit."""
    return _decomposition(r, recalibrated, lambda p, right, wrong: right * (1 - p) ** 2 + wrong * p**2)


def nll_decomposition(r: Ranking, recalibrated: Tensor | None = None) -> Decomposition:
    """Calibration and refinement of the log loss; the former is infinite where an error had confidence 1."""
    return _decomposition(r, recalibrated, lambda p, right, wrong: -torch.xlogy(right, p) - torch.xlogy(wrong, 1 - p))


def _decomposition(
    r: Ranking, recalibrated: Tensor | None, loss: Callable[[Tensor, Tensor, Tensor], Tensor]
) -> Decomposition:
    right, wrong = r.right.diff(), r.wrong.diff()
    score = float(loss(r.score, right, wrong).sum()) / r.n
    refinement = float(loss(isotonic(r) if recalibrated is None else recalibrated, right, wrong).sum()) / r.n
    return Decomposition(score - refinement, refinement)
