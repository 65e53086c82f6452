"""Verification of forecasts expressed in terms of probability (Brier, Monthly Weather Review 1950)."""

from __future__ import annotations

from torch import Tensor

from assay.nn.losses._softmax import log_probabilities
from assay.nn.losses._target import Reduction, target_of


def brier(
    logits: Tensor,
    labels: Tensor,
    *,
    reduction: Reduction = "mean",
    weight: Tensor | None = None,
    ignore_index: int | None = None,
) -> Tensor:
    """Sum over classes of (p_k - onehot_k)^2, mean over the batch (mukhoti2020's Brier loss)."""
    target = target_of(logits, labels, ignore_index)
    p = log_probabilities(logits).exp()
    return target.reduced((p - target.shares(p.dtype)).square().sum(1), reduction, weight)


def mse(
    logits: Tensor,
    labels: Tensor,
    *,
    reduction: Reduction = "mean",
    weight: Tensor | None = None,
    ignore_index: int | None = None,
) -> Tensor:
    """Mean over batch and classes of (p_k - onehot_k)^2: Brier loss over K, the third primary loss of
    karandikar2021."""
    total = brier(logits, labels, reduction=reduction, weight=weight, ignore_index=ignore_index)
    return total / logits.shape[1]
