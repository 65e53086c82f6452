"""Regularizing neural networks by penalizing confident output distributions (Pereyra et al., ICLR workshop 2017)."""

from __future__ import annotations

from torch import Tensor

from assay.nn.losses._softmax import entropies, log_probabilities
from assay.nn.losses._target import Reduction, target_of


def entropy_regularized(
    logits: Tensor,
    labels: Tensor,
    *,
    beta: float = 0.1,
    reduction: Reduction = "mean",
    weight: Tensor | None = None,
    ignore_index: int | None = None,
) -> Tensor:
    """Cross-entropy - beta H, H the mean entropy of the answers (singh2021, eq 10); beta = 0 is cross-entropy.

    Code that averages -p log p over classes too has, for the same effect, a beta K times as large.
    """
    target, log_p = target_of(logits, labels, ignore_index), log_probabilities(logits)
    return target.reduced(target.of_true_class(log_p, Tensor.neg) - beta * entropies(log_p), reduction, weight)
