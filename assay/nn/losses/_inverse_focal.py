"""Rethinking calibration of deep neural networks: do not be afraid of overconfidence (Wang et al., NeurIPS 2021).

wang2021: easy samples weigh more, so that a post-hoc map of the high confidence separates right from wrong answers.
"""

from __future__ import annotations

from torch import Tensor

from assay.nn.losses._softmax import log_probabilities
from assay.nn.losses._target import Reduction, target_of


def inverse_focal(
    logits: Tensor,
    labels: Tensor,
    *,
    gamma: float = 2.0,
    detach_weight: bool = False,
    reduction: Reduction = "mean",
    weight: Tensor | None = None,
    ignore_index: int | None = None,
) -> Tensor:
    """-(1 + p)^gamma log p of the true class, mean over the batch (wang2021, eq 4); gamma = 0 is cross-entropy.

    The paper shows gamma of 1, 2 and 3. With `detach_weight` no gradient flows through (1 + p)^gamma, as in its code's
    focal loss; the code of inverse focal is not public.
    """

    def loss(log_p: Tensor) -> Tensor:
        factor = (1 + log_p.exp()) ** gamma
        return -(factor.detach() if detach_weight else factor) * log_p

    target = target_of(logits, labels, ignore_index)
    return target.reduced(target.of_true_class(log_probabilities(logits), loss), reduction, weight)
