"""Losses as functions of the probability of the true class (wang2021, fig 6 a; mukhoti2020, fig 4 a)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import torch

from assay.nn.losses import Loss, cross_entropy, focal, focal_gradient_factor, inverse_focal
from assay.report.statistics import Line

POINTS = 199
FAMILY: dict[str, Loss] = {
    "focal, γ = 3": partial(focal, gamma=3.0),
    "focal, γ = 1": partial(focal, gamma=1.0),
    "cross-entropy": cross_entropy,
    "inverse focal, γ = 1": partial(inverse_focal, gamma=1.0),
    "inverse focal, γ = 2": partial(inverse_focal, gamma=2.0),
    "inverse focal, γ = 3": partial(inverse_focal, gamma=3.0),
}


def loss_curves(losses: Mapping[str, Loss] = FAMILY) -> list[Line]:
    """The loss of one sample of two classes at each probability of the true one."""
    p = _probabilities()
    logits, label = torch.stack([p.logit(), torch.zeros_like(p)], 1), torch.tensor([0])
    return [_line(name, p, torch.stack([loss(row[None], label) for row in logits])) for name, loss in losses.items()]


def gradient_factors(gammas: Sequence[float] = (0.0, 1.0, 2.0, 3.0, 5.0)) -> list[Line]:
    """g(p, gamma), by which focal loss multiplies the gradient of cross-entropy."""
    p = _probabilities()
    return [_line(f"γ = {gamma:g}", p, focal_gradient_factor(p, gamma)) for gamma in gammas]


def _probabilities() -> torch.Tensor:
    """Between 0 and 1, without the ends."""
    return torch.arange(1, POINTS + 1, dtype=torch.float64) / (POINTS + 1)


def _line(name: str, p: torch.Tensor, values: torch.Tensor) -> Line:
    return Line(name, tuple(p.tolist()), tuple(values.tolist()), (0.0,) * len(p))
