"""Soft calibration objectives for neural networks (Karandikar et al., NeurIPS 2021; karandikar2021): soft AvUC.

The loss is a ratio of sums over the batch. Under DDP each process has its own part of the batch and gradients are
averaged: the mean of the parts' losses is minimized, not the loss of the whole batch.
"""

from __future__ import annotations

from math import log

import torch
from torch import Tensor

from assay.nn.losses._avuc import accuracy_versus_uncertainty
from assay.nn.losses._softmax import entropies, log_probabilities, top_class


def s_avuc(logits: Tensor, labels: Tensor, *, kappa: float = 0.5, temperature: float = 1.0) -> Tensor:
    """AvUC with a soft threshold and without the confidence (karandikar2021, eqs 15 and 16).

    An answer of entropy h counts (1 - t)(1 - tanh h) as certain and t tanh h as uncertain, t the `soft_uncertainty` of
    h / log K. The paper tunes kappa and temperature and prints neither.
    """
    log_p = log_probabilities(logits)
    _, correct = top_class(log_p, labels)
    entropy = entropies(log_p)
    t, tanh = soft_uncertainty(entropy / log(logits.shape[1]), kappa=kappa, temperature=temperature), entropy.tanh()
    return accuracy_versus_uncertainty(correct, (1 - t) * (1 - tanh), t * tanh)


def soft_uncertainty(entropy: Tensor, *, kappa: float = 0.5, temperature: float = 1.0) -> Tensor:
    """t(h) = logistic(log(h (1 - kappa) / ((1 - h) kappa)) / temperature) of an entropy h in [0, 1] (karandikar2021,
    fig 4).

    The identity at kappa = .5, temperature = 1; a step at kappa as the temperature falls to 0.

    >>> soft_uncertainty(torch.tensor([0.0, 0.3, 0.5, 1.0]), kappa=0.3, temperature=0.1)
    tensor([0.0000, 0.5000, 0.9998, 1.0000])
    """
    odds = torch.logit(entropy, eps=torch.finfo(entropy.dtype).eps)
    return torch.sigmoid((odds - log(kappa / (1 - kappa))) / temperature)
