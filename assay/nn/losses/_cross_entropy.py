"""Cross-entropy: the baseline, and the limit of every other primary loss."""

from __future__ import annotations

from torch import Tensor

from assay.nn.losses._softmax import log_probabilities
from assay.nn.losses._target import Reduction, target_of


def cross_entropy(
    logits: Tensor,
    labels: Tensor,
    *,
    reduction: Reduction = "mean",
    weight: Tensor | None = None,
    ignore_index: int | None = None,
) -> Tensor:
    """-log p of the true class, mean over the batch; half-precision logits are converted to single precision.

    As in torch, `labels` may be soft targets [n, k], `weight` [k] is that of each class and `ignore_index` a label that
    does not count.
    """
    target = target_of(logits, labels, ignore_index)
    return target.reduced(target.of_true_class(log_probabilities(logits), Tensor.neg), reduction, weight)
