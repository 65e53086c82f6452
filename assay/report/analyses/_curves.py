"""Losses as functions of a probability (wang2021, fig 6 a; mukhoti2020, fig 4 a; karandikar2021, figs 3 and 4)."""

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
SETTINGS = ((0.3, 0.1), (0.5, 0.1), (0.5, 0.5), (0.5, 1.0), (0.7, 0.1))  # kappa and temperature


def loss_curves(losses: Mapping[str, Loss] | None = None) -> list[Line]:
    """The loss of one sample of two classes at each probability of the true one; by default of the focal family."""
    needs("torch")
    from assay.nn.losses import FOCAL_FAMILY, at_probabilities

    p = _probabilities()
    return [_line(name, p, at_probabilities(loss, p)) for name, loss in (losses or FOCAL_FAMILY).items()]


def gradient_factors(gammas: Sequence[float] = (0.0, 1.0, 2.0, 3.0, 5.0, 7.0, 10.0)) -> list[Line]:
    """g(p, gamma), the factor between the gradients of focal loss and of cross-entropy."""
    needs("torch")
    from assay.nn.losses import gradient_factors_at

    p = _probabilities()
    return [_line(f"γ = {gamma:g}", p, gradient_factors_at(p, gamma)) for gamma in gammas]


def soft_memberships(*, n_bins: int = 5, temperature: float = 0.01) -> list[Line]:
    """The membership of a confidence in each soft bin of SB-ECE (karandikar2021, fig 3)."""
    needs("torch")
    from assay.nn.losses import soft_memberships_at

    p = _probabilities()
    columns = soft_memberships_at(p, n_bins=n_bins, temperature=temperature).T
    return [_line(f"bin {j}", p, column) for j, column in enumerate(columns, start=1)]


def soft_uncertainties(settings: Sequence[tuple[float, float]] = SETTINGS) -> list[Line]:
    """The soft threshold of S-AvUC at each normalized entropy, by (kappa, temperature) (karandikar2021, fig 4)."""
    needs("torch")
    from assay.nn.losses import soft_uncertainties_at

    h = _probabilities()
    return [
        _line(f"κ = {kappa:g}, T = {t:g}", h, soft_uncertainties_at(h, kappa=kappa, temperature=t))
        for kappa, t in settings
    ]


def _probabilities() -> Floats:
    """Between 0 and 1, without the ends."""
    return np.arange(1, PROBABILITIES + 1) / (PROBABILITIES + 1)


def _line(name: str, p: Floats, values: Floats) -> Line:
    return Line(name, tuple(p.tolist()), tuple(values.tolist()), (0.0,) * len(p))
