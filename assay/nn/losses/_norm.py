"""Revisiting explicit regularization in neural networks for well-calibrated predictive uncertainty (Joo & Chung, 2020).

The norm of the logits, as compared in zhu2022 and wang2021.
"""

from __future__ import annotations

import torch
from torch import Tensor

from assay.nn.losses._softmax import at_least_single, log_probabilities
from assay.nn.losses._target import Reduction, target_of


def norm_regularized(
    logits: Tensor,
    labels: Tensor,
    *,
    alpha: float = 0.01,
    p: float = 1.0,
    reduction: Reduction = "mean",
    weight: Tensor | None = None,
    ignore_index: int | None = None,
) -> Tensor:
    """Cross-entropy + alpha mean_i (sum_k |z_ik|^p)^(1/p), p >= 1; alpha = 0 is cross-entropy."""
    norm: Tensor = torch.linalg.vector_norm(at_least_single(logits), p, dim=1)
    target = target_of(logits, labels, ignore_index)
    return target.reduced(target.of_true_class(log_probabilities(logits), Tensor.neg) + alpha * norm, reduction, weight)
