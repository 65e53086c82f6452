"""Regularizing class-wise predictions via self-knowledge distillation (Yun, Park, Lee & Shin, CVPR 2020)."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from assay.nn.losses import cross_entropy, log_probabilities
from assay.nn.objectives._objective import Batch, Objective, Task


def with_partners(index: Tensor, labels: Tensor, generator: torch.Generator) -> Tensor:
    """The samples of a batch, then a random sample of the same label for each, possibly itself, [2b].

    A sampler: `index` [b] are positions in the training set, `labels` [n] are all its labels, both on the CPU.
    """
    # Sorted by label, each class is one run; in int16 the sort takes a third of the time.
    narrow = labels.short() if labels.max() < 2**15 else labels
    by_class, size = narrow.argsort(stable=True), labels.bincount()
    first = size.cumsum(0) - size
    own = labels[index]
    place = (torch.rand(len(index), generator=generator, dtype=torch.float64) * size[own]).long()
    return torch.cat([index, by_class[first[own] + place]])


def cs_kd(*, weight: float = 1.0, temperature: float = 4.0) -> Callable[[Task], Objective]:
    """Cross-entropy + weight * `distillation` from the answers to other samples of the same labels.

    Batches come from the sampler `with_partners`: samples, then their partners. Cross-entropy is of the samples alone.
    The partners are evaluated in train mode, so that BatchNorm sees them, but without gradient. weight = 0 is
    cross-entropy.
    """

    def objective(model: nn.Module, batch: Batch) -> Tensor:
        half = len(batch.y) // 2
        if not torch.equal(batch.y[:half], batch.y[half:]):
            raise ValueError("CS-KD needs batches of samples and then partners of the same labels: see with_partners")
        student = model(batch.x[:half])
        with torch.no_grad():
            teacher = model(batch.x[half:])
        return cross_entropy(student, batch.y[:half]) + weight * distillation(student, teacher, temperature=temperature)

    return lambda task: objective


def distillation(student: Tensor, teacher: Tensor, *, temperature: float = 4.0) -> Tensor:
    """T^2 KL(softmax(teacher / T) || softmax(student / T)), mean over the rows of the logits."""
    q, p = log_probabilities(student / temperature), log_probabilities(teacher / temperature)
    return temperature**2 * F.kl_div(q, p, reduction="batchmean", log_target=True)
