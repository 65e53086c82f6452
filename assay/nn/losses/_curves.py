"""Losses as functions of the probability of the true class, in numpy."""

from __future__ import annotations

from functools import partial

import torch

from assay._core.arrays import Floats
from assay.nn.losses._composite import Loss
from assay.nn.losses._cross_entropy import cross_entropy
from assay.nn.losses._focal import focal, focal_gradient_factor
from assay.nn.losses._inverse_focal import inverse_focal
from assay.nn.losses._s_avuc import soft_uncertainty
from assay.nn.losses._sb_ece import soft_membership

FOCAL_FAMILY: dict[str, Loss] = {
    "focal, γ = 3": partial(focal, gamma=3.0),
    "focal, γ = 1": partial(focal, gamma=1.0),
    "cross-entropy": cross_entropy,
    "inverse focal, γ = 1": partial(inverse_focal, gamma=1.0),
    "inverse focal, γ = 2": partial(inverse_focal, gamma=2.0),
    "inverse focal, γ = 3": partial(inverse_focal, gamma=3.0),
}
"""The losses of wang2021, fig 6 a."""


def at_probabilities(loss: Loss, p: Floats) -> Floats:
    """The loss of one sample of two classes at each probability p [n] of the true class, [n]."""
    logit = torch.tensor(p).logit()
    rows, label = torch.stack([logit, torch.zeros_like(logit)], 1), torch.tensor([0])
    values: Floats = torch.stack([loss(row[None], label) for row in rows]).numpy()
    return values


def gradient_factors_at(p: Floats, gamma: float) -> Floats:
    """`focal_gradient_factor` at each probability p [n], [n]."""
    values: Floats = focal_gradient_factor(torch.tensor(p), gamma).numpy()
    return values


def soft_memberships_at(confidence: Floats, *, n_bins: int, temperature: float) -> Floats:
    """`soft_membership` of each confidence [n], [n, n_bins]."""
    values: Floats = soft_membership(torch.tensor(confidence), n_bins=n_bins, temperature=temperature).numpy()
    return values


def soft_uncertainties_at(entropy: Floats, *, kappa: float, temperature: float) -> Floats:
    """`soft_uncertainty` of each normalized entropy [n], [n]."""
    values: Floats = soft_uncertainty(torch.tensor(entropy), kappa=kappa, temperature=temperature).numpy()
    return values
