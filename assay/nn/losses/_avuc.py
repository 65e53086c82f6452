"""Improving model calibration with accuracy versus uncertainty optimization (Krishnan & Tickoo, NeurIPS 2020).

In the form of karandikar2021, eqs 13 and 14. The ratio is one of sums over the batch: under DDP each process has its
own part of the batch and gradients are averaged, so what is minimized is the mean of the parts' losses, not that of the
whole.
"""

from __future__ import annotations

import torch
from torch import Tensor

from assay.nn.losses._softmax import complement, entropies, log_probabilities, top_class

FLOOR = 1e-5  # of the denominator: a batch may have no answer that is right and certain or wrong and uncertain


def avuc(logits: Tensor, labels: Tensor, *, kappa: float = 1.0) -> Tensor:
    """log(1 + (n_AU + n_IC) / (n_AC + n_IU)): accurate answers should be certain, inaccurate ones uncertain.

    Certain is an entropy h of at most `kappa` nats: 1 is where the authors' code starts, karandikar2021 tunes it.
    Accurate answers count c (1 - tanh h) if certain and c tanh h if not, inaccurate ones the same with 1 - c for c.
    """
    log_p = log_probabilities(logits)
    log_c, correct = top_class(log_p, labels)
    return _avuc(log_c, correct, entropies(log_p), kappa)


def avuc_gs(logits: Tensor, labels: Tensor, *, kappa: float = 1.0) -> Tensor:
    """`avuc` with the gradient stopped in c and 1 - c (karandikar2021, appendix D): same value, better incentive.

    Through c, AvUC rewards more confidence in certain wrong answers and less in uncertain right ones.
    """
    log_p = log_probabilities(logits)
    log_c, correct = top_class(log_p, labels)
    return _avuc(log_c.detach(), correct, entropies(log_p), kappa)


def accuracy_versus_uncertainty(correct: Tensor, certain: Tensor, uncertain: Tensor) -> Tensor:
    """log(1 + (n_AU + n_IC) / (n_AC + n_IU)) of the weight of each answer as certain and as uncertain, [n] each."""
    opposed = torch.where(correct, uncertain, certain).sum()
    agreed = torch.where(correct, certain, uncertain).sum()
    return torch.log1p(opposed / agreed.clamp(min=FLOOR))


def _avuc(log_c: Tensor, correct: Tensor, entropy: Tensor, kappa: float) -> Tensor:
    weight = torch.where(correct, log_c.exp(), complement(log_c))
    tanh = entropy.tanh()
    certain = entropy <= kappa
    return accuracy_versus_uncertainty(correct, weight * (1 - tanh) * certain, weight * tanh * ~certain)
