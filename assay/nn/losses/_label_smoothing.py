"""Rethinking the inception architecture for computer vision (Szegedy et al., CVPR 2016): label smoothing.

Studied for calibration in When does label smoothing help? (Müller, Kornblith & Hinton, NeurIPS 2019).
"""

from __future__ import annotations

from torch import Tensor

from assay.nn.losses._softmax import log_probabilities
from assay.nn.losses._target import Reduction, target_of


def label_smoothing(
    logits: Tensor,
    labels: Tensor,
    *,
    epsilon: float = 0.05,
    reduction: Reduction = "mean",
    weight: Tensor | None = None,
    ignore_index: int | None = None,
) -> Tensor:
    """Cross-entropy against (1 - epsilon) onehot + epsilon / K: the true class keeps 1 - epsilon + epsilon / K.

    The convention of singh2021 and wang2021 and of zhu2022's code; epsilon = 0 is cross-entropy.
    """
    target, log_p = target_of(logits, labels, ignore_index), log_probabilities(logits)
    values = (1 - epsilon) * target.of_true_class(log_p, Tensor.neg) - epsilon * log_p.mean(1)
    return target.reduced(values, reduction, weight)


def label_smoothing_of_others(
    logits: Tensor,
    labels: Tensor,
    *,
    epsilon: float = 0.05,
    reduction: Reduction = "mean",
    weight: Tensor | None = None,
    ignore_index: int | None = None,
) -> Tensor:
    """Cross-entropy against 1 - epsilon for the true class and epsilon / (K - 1) for each other.

    The convention printed in zhu2022 (eq 8); it is `label_smoothing` with epsilon K / (K - 1).
    """
    spread = epsilon * logits.shape[1] / max(logits.shape[1] - 1, 1)
    return label_smoothing(
        logits, labels, epsilon=spread, reduction=reduction, weight=weight, ignore_index=ignore_index
    )
