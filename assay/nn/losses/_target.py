"""What a loss compares a batch with, and how the losses of its samples become one number, as in torch's own losses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

Reduction = Literal["mean", "sum", "none"]


@dataclass(frozen=True, eq=False)
class Target:
    """Labels [n], or soft targets: shares of the classes [n, k]."""

    labels: Tensor  # [n] class indices, 0 for an ignored sample; or [n, k] shares
    counts: Tensor | None  # [n] bool: which samples are not ignored; None for all
    n_classes: int

    def of_true_class(self, log_p: Tensor, loss: Callable[[Tensor], Tensor]) -> Tensor:
        """`loss` of the log-probability of the true class, [n]; of soft targets the mean over their classes."""
        if self.labels.dim() == 2:
            return (self.labels * loss(log_p)).sum(1)
        return loss(log_p.gather(1, self.labels[:, None]).squeeze(1))

    def shares(self, dtype: torch.dtype) -> Tensor:
        """The target as shares of the classes, [n, k]."""
        return self.labels if self.labels.dim() == 2 else F.one_hot(self.labels, self.n_classes).to(dtype)

    def reduced(self, values: Tensor, reduction: Reduction, weight: Tensor | None) -> Tensor:
        """The losses [n] of the samples, each times the weight of its class: their mean over the weights, sum, or all.

        An ignored sample counts nothing.
        """
        share = torch.ones_like(values)
        if weight is not None:
            if weight.shape != (self.n_classes,):
                raise ValueError(f"weight must have one number a class, [{self.n_classes}], got {list(weight.shape)}")
            share = (self.labels * weight).sum(1) if self.labels.dim() == 2 else weight.to(values.dtype)[self.labels]
        if self.counts is not None:
            share = share * self.counts
            values = torch.where(self.counts, values, 0)
        if reduction == "none":
            return values * share
        if reduction not in ("mean", "sum"):
            raise ValueError(f"reduction must be mean, sum or none, got {reduction!r}")
        total = (values * share).sum()
        return total if reduction == "sum" else total / share.sum()


def target_of(logits: Tensor, labels: Tensor, ignore_index: int | None = None) -> Target:
    """The target of a primary loss, after a check of shapes and values."""
    n, k = _shape(logits)
    if labels.is_floating_point():
        if labels.shape != logits.shape:
            raise ValueError(f"soft targets must have the shape {[n, k]} of the logits, got {list(labels.shape)}")
        if ignore_index is not None:
            raise ValueError("ignore_index needs labels that are class indices, these are soft targets")
        return Target(labels, None, k)
    if ignore_index is None:
        return Target(checked_labels(logits, labels), None, k)
    counts = labels != ignore_index
    return Target(checked_labels(logits, torch.where(counts, labels, 0)), counts, k)


def checked_labels(logits: Tensor, labels: Tensor) -> Tensor:
    """Labels [n] after a check of shapes and, where that costs no synchronization, of values."""
    n, k = _shape(logits)
    if labels.shape != (n,) or labels.is_floating_point():
        kind = str(labels.dtype).removeprefix("torch.")
        raise ValueError(f"labels must be {n} class indices, [{n}], got {kind} of shape {list(labels.shape)}")
    if labels.device.type == "cpu" and not torch.compiler.is_compiling() and n:
        wrong = (labels < 0) | (labels >= k)
        if wrong.any():
            row = int(wrong.int().argmax())
            raise ValueError(f"row {row}: label {int(labels[row])} is outside 0..{k - 1}")
    return labels


def _shape(logits: Tensor) -> tuple[int, int]:
    if logits.dim() != 2 or logits.shape[1] < 2:
        hint = "; of two classes give both, or [0, z] for one logit z" if logits.shape[-1:] == (1,) else ""
        raise ValueError(f"logits must be [n, k] with k >= 2, got {list(logits.shape)}{hint}")
    return logits.shape[0], logits.shape[1]
