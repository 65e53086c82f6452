"""Soft calibration objectives for neural networks (Karandikar et al., NeurIPS 2021; karandikar2021): soft-binned ECE.

Bins are sums over the batch. Under DDP each process has its own part of the batch and gradients are averaged: the mean
of the parts' errors is minimized, not the error of the whole batch.
"""

from __future__ import annotations

import torch
from torch import Tensor

from assay.nn.losses._softmax import log_probabilities, top_class


def sb_ece_bin(
    logits: Tensor,
    labels: Tensor,
    *,
    norm: float = 2.0,
    n_bins: int = 15,
    temperature: float = 0.01,
    lowest: float = 0.0,
) -> Tensor:
    """SB-ECE of a batch, binned form: `soft_binned_ece` of the confidence."""
    log_c, correct = top_class(log_probabilities(logits), labels)
    return soft_binned_ece(log_c.exp(), correct, norm=norm, n_bins=n_bins, temperature=temperature, lowest=lowest)


def sb_ece_lb(
    logits: Tensor,
    labels: Tensor,
    *,
    norm: float = 2.0,
    n_bins: int = 15,
    temperature: float = 0.01,
    lowest: float = 0.0,
) -> Tensor:
    """SB-ECE of a batch, label-binned form, which karandikar2021 trains with.

    The public code has no root and centers on [1 / K, 1]: theirs is `sb_ece_lb(..., lowest=1 / K) ** 2`.
    """
    log_c, correct = top_class(log_probabilities(logits), labels)
    return soft_label_binned_ece(log_c.exp(), correct, norm=norm, n_bins=n_bins, temperature=temperature, lowest=lowest)


def soft_binned_ece(
    confidence: Tensor,
    correct: Tensor,
    *,
    norm: float = 2.0,
    n_bins: int = 15,
    temperature: float = 0.01,
    lowest: float = 0.0,
) -> Tensor:
    """(sum_j S_j / N |A_j - C_j|^p)^(1/p), p the `norm`, over soft bins (karandikar2021, eq 11).

    S, A, C are size, accuracy and mean confidence of a bin; the hard ECE as the temperature falls to 0.
    """
    u = soft_membership(confidence, n_bins=n_bins, temperature=temperature, lowest=lowest)
    size = _sizes(u)
    gap = (u * (correct.to(u.dtype) - confidence)[:, None]).sum(0) / size
    return _root((size * gap.abs() ** norm).sum() / len(u), norm)


def soft_label_binned_ece(
    confidence: Tensor,
    correct: Tensor,
    *,
    norm: float = 2.0,
    n_bins: int = 15,
    temperature: float = 0.01,
    lowest: float = 0.0,
) -> Tensor:
    """(1 / N sum_i sum_j u_j(c_i) |A_j - c_i|^p)^(1/p), p the `norm` (karandikar2021, eq 12); never below the binned
    form."""
    u = soft_membership(confidence, n_bins=n_bins, temperature=temperature, lowest=lowest)
    accuracy = (u * correct.to(u.dtype)[:, None]).sum(0) / _sizes(u)
    return _root((u * (accuracy - confidence[:, None]).abs() ** norm).sum() / len(u), norm)


def soft_membership(confidence: Tensor, *, n_bins: int = 15, temperature: float = 0.01, lowest: float = 0.0) -> Tensor:
    """u_j(c) = softmax_j(-(c - center_j)^2 / temperature) over bins of equal width on [lowest, 1], [n, n_bins].

    karandikar2021, fig 3. The paper tunes the temperature and prints none.

    >>> soft_membership(torch.tensor([0.5, 0.9]), n_bins=3, temperature=0.1)
    tensor([[0.1985, 0.6030, 0.1985],
            [0.0040, 0.1736, 0.8224]])
    """
    center = torch.arange(n_bins, dtype=confidence.dtype, device=confidence.device).add(0.5) / n_bins
    center = lowest + (1 - lowest) * center
    return torch.softmax(-((confidence[:, None] - center) ** 2) / temperature, 1)


def _sizes(u: Tensor) -> Tensor:
    # The membership of a bin far from every confidence underflows to 0: the bin is empty, its mean does not matter.
    return u.sum(0).clamp(min=torch.finfo(u.dtype).tiny)


def _root(x: Tensor, norm: float) -> Tensor:
    # A sum of |gap|^p vanishes with the gaps, so the slope of its root is bounded down to 0.
    return x.clamp(min=torch.finfo(x.dtype).tiny) ** (1 / norm)
