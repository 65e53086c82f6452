"""Calibrating deep neural networks using focal loss (Mukhoti et al., NeurIPS 2020; mukhoti2020).

The loss itself is from Focal loss for dense object detection (Lin et al., ICCV 2017).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log, log1p

import torch
from torch import Tensor

from assay.nn.losses._softmax import complement, log_probabilities
from assay.nn.losses._target import Reduction, target_of


def focal(
    logits: Tensor,
    labels: Tensor,
    *,
    gamma: float = 3.0,
    detach_weight: bool = False,
    reduction: Reduction = "mean",
    weight: Tensor | None = None,
    ignore_index: int | None = None,
) -> Tensor:
    """-(1 - p)^gamma log p of the true class, mean over the batch; gamma = 0 is cross-entropy.

    With `detach_weight` no gradient flows through (1 - p)^gamma, as in the code of wang2021: the update is then that
    of cross-entropy weighted by (1 - p)^gamma, not by `focal_gradient_factor`. (mukhoti2020's code sums over the
    batch.)
    """

    def loss(log_p: Tensor) -> Tensor:
        factor = complement(log_p) ** gamma
        return -(factor.detach() if detach_weight else factor) * log_p

    target = target_of(logits, labels, ignore_index)
    return target.reduced(target.of_true_class(log_probabilities(logits), loss), reduction, weight)


def focal_sample_wise(
    logits: Tensor,
    labels: Tensor,
    *,
    gammas: Sequence[float] = (5.0, 3.0),
    cuts: Sequence[float] = (0.19,),
    reduction: Reduction = "mean",
    weight: Tensor | None = None,
    ignore_index: int | None = None,
) -> Tensor:
    """Focal loss whose gamma depends on the sample: gammas[0] for p <= cuts[0], gammas[1] up to cuts[1], and so on.

    The default is FLSD-53 as printed; 5-3-2 is gammas (5, 3, 2), cuts (.19, .5). mukhoti2020's code cuts at .2 instead
    of .19: the factor g(p, 5) is 1 at p = .1968. No gradient flows through the choice.
    """
    if len(gammas) != len(cuts) + 1:
        raise ValueError(f"{len(cuts)} cuts make {len(cuts) + 1} ranges, got {len(gammas)} gammas")

    def loss(log_p: Tensor) -> Tensor:
        which = torch.bucketize(log_p.detach().exp(), log_p.new_tensor(cuts))
        return -(complement(log_p) ** log_p.new_tensor(gammas)[which] * log_p)

    target = target_of(logits, labels, ignore_index)
    return target.reduced(target.of_true_class(log_probabilities(logits), loss), reduction, weight)


def focal_gradient_factor(p: Tensor, gamma: float) -> Tensor:
    """g(p, gamma) = (1 - p)^gamma - gamma p (1 - p)^(gamma - 1) log p: focal's gradient over that of cross-entropy.

    mukhoti2020, proposition 1. Above 1 the gradient is larger than that of cross-entropy, below 1 smaller.
    """
    rest = (1 - p).clamp(min=torch.finfo(p.dtype).tiny)
    return rest**gamma - gamma * torch.xlogy(p, p) * rest ** (gamma - 1)


def gamma_for(p0: float) -> float:
    """The gamma at which g(p0, gamma) = 1: samples above p0 have smaller gradients, those below larger ones.

    mukhoti2020, proposition 2: a / b + W(-a^(1 - a / b) log(a) / b) / log a with a = 1 - p0, b = p0 log p0 and W the
    lower branch of Lambert's function. From p0 = .5 on only gamma = 0 remains.

    >>> round(gamma_for(0.2), 5)
    4.85055
    """
    if not 0 < p0 < 1:
        raise ValueError(f"p0 must be between 0 and 1, got {p0}")
    if p0 >= 0.5:
        return 0.0
    from scipy.special import lambertw

    log_a, b = log1p(-p0), p0 * log(p0)
    ratio = (1 - p0) / b
    w = lambertw(-exp((1 - ratio) * log_a) * log_a / b, -1)
    return float(ratio + w.real / log_a)
