"""Regularizing neural networks by penalizing confident output distributions (Pereyra et al., ICLR workshop 2017)."""

from __future__ import annotations

from torch import Tensor

from assay.nn.losses._cross_entropy import cross_entropy
from assay.nn.losses._softmax import entropies, log_probabilities


def entropy_regularized(logits: Tensor, labels: Tensor, *, beta: float = 0.1) -> Tensor:
    """Cross-entropy - beta H, H the mean entropy of the answers (singh2021, eq 10); beta = 0 is cross-entropy.

    Code that averages -p log p over classes too has, for the same effect, a beta K times as large.
    """
    return cross_entropy(logits, labels) - beta * entropies(log_probabilities(logits)).mean()
