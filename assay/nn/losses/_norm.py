"""Revisiting explicit regularization in neural networks for well-calibrated predictive uncertainty (Joo & Chung, 2020).

The norm of the logits, as compared in zhu2022 and wang2021.
"""

from __future__ import annotations

import torch
from torch import Tensor

from assay.nn.losses._cross_entropy import cross_entropy
from assay.nn.losses._softmax import at_least_single


def norm_regularized(logits: Tensor, labels: Tensor, *, alpha: float = 0.01, p: float = 1.0) -> Tensor:
    """Cross-entropy + alpha mean_i (sum_k |z_ik|^p)^(1/p), p >= 1; alpha = 0 is cross-entropy."""
    norm: Tensor = torch.linalg.vector_norm(at_least_single(logits), p, dim=1)
    return cross_entropy(logits, labels) + alpha * norm.mean()
