"""Quantities that losses compute from a batch of logits, always in single precision or better."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from assay.nn.losses._target import checked_labels


def at_least_single(logits: Tensor) -> Tensor:
    """The logits; half precision, as under autocast, becomes single."""
    return logits.float() if logits.element_size() < 4 else logits


def log_probabilities(logits: Tensor) -> Tensor:
    """Log-softmax [n, k] in single precision or better."""
    return F.log_softmax(at_least_single(logits), 1)


def complement(log_p: Tensor) -> Tensor:
    """1 - p, exact near p = 1 and never 0: there a power below 1 has an infinite slope."""
    return (-torch.expm1(log_p)).clamp(min=torch.finfo(log_p.dtype).tiny)


def top_class(log_p: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Log-probability of the answer [n], through which gradients flow, and whether it is the label [n] bool."""
    highest, answer = log_p.max(1)
    # By gather, which refuses labels out of range also where `checked_labels` does not look at values.
    chosen = torch.arange(log_p.shape[1], device=answer.device) == answer[:, None]
    return highest, chosen.gather(1, checked_labels(log_p, labels)[:, None]).squeeze(1)


def entropies(log_p: Tensor) -> Tensor:
    """-sum_k p_k log p_k in nats, [n]."""
    return -(log_p.exp() * log_p).sum(1)
