"""Cross-entropy: the baseline, and the limit of every other primary loss."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from assay.nn.losses._softmax import log_probabilities


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """-log p of the true class, mean over the batch; half-precision logits are converted to single precision."""
    return F.nll_loss(log_probabilities(logits), labels)
