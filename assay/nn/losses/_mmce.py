"""Trainable calibration measures for neural networks from kernel mean embeddings (Kumar, Sarawagi & Jain, ICML 2018).

Both losses are computed over the pairs of a batch. Under DDP each process has its own part of the batch and gradients
are averaged: the mean of the parts' errors is minimized, not the error of the whole batch. The weighted form of a part
without a wrong answer is 0.
"""

from __future__ import annotations

import torch
from torch import Tensor

from assay.nn.losses._softmax import log_probabilities, top_class

FLOOR = 1e-10  # of the square, as in both public codes: the slope of the root is infinite at 0


def mmce(logits: Tensor, labels: Tensor, *, width: float = 0.4) -> Tensor:
    """Root of mean_ij d_i d_j exp(-|c_i - c_j| / width), d = correct - confidence c; a secondary loss.

    Both public codes leave out the root: theirs is the square of this.
    """
    confidence, residual, _ = _residuals(logits, labels)
    return _kernel_norm(residual / len(residual), confidence, width)


def mmce_weighted(logits: Tensor, labels: Tensor, *, width: float = 0.4, normalized_twice: bool = False) -> Tensor:
    """MMCE in which the m right answers weigh as much as the n wrong ones: d_i / m and d_i / n, not d_i / (m + n).

    Without right or without wrong answers it is 0. With `normalized_twice` the weights are d_i / m^2 and d_i / n^2, as
    in both public codes: the lambda of 2 (images) and 8 (text) of mukhoti2020 belongs to that scale.
    """
    confidence, residual, correct = _residuals(logits, labels)
    right = correct.sum().to(residual.dtype)
    count = torch.where(correct, right, len(correct) - right)
    if normalized_twice:
        count = count * (count**2 + 1e-5).sqrt()  # the codes' guard, kept for their values
    both = (right > 0) & (right < len(correct))
    return _kernel_norm(residual / count, confidence, width) * both


def _residuals(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Confidence, correct - confidence and correct, each [n]."""
    log_c, correct = top_class(log_probabilities(logits), labels)
    # expm1 keeps the digits of 1 - c if c is close to 1.
    return log_c.exp(), torch.where(correct, -torch.expm1(log_c), -log_c.exp()), correct


def _kernel_norm(weight: Tensor, confidence: Tensor, width: float) -> Tensor:
    """Root of sum_ij w_i w_j k(c_i, c_j)."""
    kernel = torch.exp(-(confidence[:, None] - confidence).abs() / width)
    # No matrix product: autocast would calculate it in half precision.
    return (weight[:, None] * weight * kernel).sum().clamp(min=FLOOR).sqrt()
