"""Losses as functions of the probability of the true class (wang2021, fig 6 a; mukhoti2020, fig 4 a)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from assay._core.arrays import Floats
from assay._core.lookup import needs
from assay.report.statistics import Line

if TYPE_CHECKING:
    from assay.nn.losses import Loss

PROBABILITIES = 199


def loss_curves(losses: Mapping[str, Loss] | None = None) -> list[Line]:
    """The loss of one sample of two classes at each probability of the true one; by default of the focal family."""
    needs("torch")
    from assay.nn.losses import FOCAL_FAMILY, at_probabilities

    p = _probabilities()
    return [_line(name, p, at_probabilities(loss, p)) for name, loss in (losses or FOCAL_FAMILY).items()]


def gradient_factors(gammas: Sequence[float] = (0.0, 1.0, 2.0, 3.0, 5.0)) -> list[Line]:
    """g(p, gamma), the factor between the gradients of focal loss and of cross-entropy."""
    needs("torch")
    from assay.nn.losses import gradient_factors_at

    p = _probabilities()
    return [_line(f"γ = {gamma:g}", p, gradient_factors_at(p, gamma)) for gamma in gammas]


def _probabilities() -> Floats:
    """Between 0 and 1, without the ends."""
    return np.arange(1, PROBABILITIES + 1) / (PROBABILITIES + 1)


def _line(name: str, p: Floats, values: Floats) -> Line:
    return Line(name, tuple(p.tolist()), tuple(values.tolist()), (0.0,) * len(p))
