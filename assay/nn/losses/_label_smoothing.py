"""Rethinking the inception architecture for computer vision (Szegedy et al., CVPR 2016): label smoothing.

Studied for calibration in When does label smoothing help? (Müller, Kornblith & Hinton, NeurIPS 2019).
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from assay.nn.losses._softmax import log_probabilities


def label_smoothing(logits: Tensor, labels: Tensor, *, epsilon: float = 0.05) -> Tensor:
    """Cross-entropy against (1 - epsilon) onehot + epsilon / K: the true class keeps 1 - epsilon + epsilon / K.

    The convention of singh2021 and wang2021 and of zhu2022's code; epsilon = 0 is cross-entropy.
    """
    log_p = log_probabilities(logits)
    return (1 - epsilon) * F.nll_loss(log_p, labels) - epsilon * log_p.mean()


def label_smoothing_of_others(logits: Tensor, labels: Tensor, *, epsilon: float = 0.05) -> Tensor:
    """Cross-entropy against 1 - epsilon for the true class and epsilon / (K - 1) for each other.

    The convention printed in zhu2022 (eq 8); it is `label_smoothing` with epsilon K / (K - 1).
    """
    n_classes = logits.shape[1]
    return label_smoothing(logits, labels, epsilon=epsilon * n_classes / (n_classes - 1))
