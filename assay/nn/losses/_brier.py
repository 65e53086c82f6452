"""Verification of forecasts expressed in terms of probability (Brier, Monthly Weather Review 1950)."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from assay.nn.losses._softmax import log_probabilities


def brier(logits: Tensor, labels: Tensor) -> Tensor:
    """Sum over classes of (p_k - onehot_k)^2, mean over the batch (mukhoti2020's Brier loss)."""
    p = log_probabilities(logits).exp()
    return (p - F.one_hot(labels, p.shape[1])).square().sum(1).mean()


def mse(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean over batch and classes of (p_k - onehot_k)^2: Brier loss over K, the third primary loss of
    karandikar2021."""
    return brier(logits, labels) / logits.shape[1]
