"""What fits of the top label share: a loss before and after."""

from __future__ import annotations

from collections.abc import Callable
from math import nan
from typing import TypeVar

from torch import Tensor

from assay.maps import ConfidenceMap, Fit
from assay.predictions import Outcomes

Fitted = TypeVar("Fitted", bound=ConfidenceMap)


def brier(confidence: Tensor, correct: Tensor) -> float:
    return float((confidence - correct.double()).square().mean())


def log_loss(confidence: Tensor, correct: Tensor) -> float:
    return -float(confidence.where(correct, 1 - confidence).log().mean())


LOSSES: dict[Callable[[Tensor, Tensor], float], str] = {brier: "top-label Brier", log_loss: "top-label NLL"}


def fitted(
    outcomes: Outcomes,
    loss: Callable[[Tensor, Tensor], float],
    make: Callable[[Fit], Fitted],
    *,
    iterations: int = 1,
) -> Fitted:
    """A map with the report of its fit; a score that is no probability has no loss before."""
    before = loss(outcomes.confidence, outcomes.correct) if outcomes.is_probability else None
    report = Fit(LOSSES[loss], before, nan, iterations, len(outcomes))
    after = loss(make(report)(outcomes.confidence), outcomes.correct)
    return make(Fit(report.objective, before, after, iterations, len(outcomes)))
