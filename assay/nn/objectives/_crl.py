"""Confidence-aware learning for deep neural networks (Moon, Kim, Shin & Hwang, ICML 2020): correctness ranking loss."""

from __future__ import annotations

from collections.abc import Callable
from math import log

import torch
import torch.nn.functional as F
from torch import Tensor, distributed, nn

from assay.nn.losses import cross_entropy, log_probabilities
from assay.nn.objectives._objective import Batch, Task


def max_probability(logits: Tensor) -> Tensor:
    """The highest probability, [n]."""
    return log_probabilities(logits).amax(1).exp()


def margin(logits: Tensor) -> Tensor:
    """The highest probability minus the second, [n]."""
    first, second = log_probabilities(logits).topk(2, 1).values.exp().unbind(1)
    return first - second


def negative_entropy(logits: Tensor) -> Tensor:
    """sum_k p_k log p_k / log K, [n] between -1 and 0."""
    log_p = log_probabilities(logits)
    return (log_p.exp() * log_p).sum(1) / log(logits.shape[1])


def ranking_loss(confidence: Tensor, history: Tensor) -> Tensor:
    """max(0, |s_i - s_j| - sign(s_i - s_j) (k_i - k_j)) of confidence k and history s, mean over the pairs of a batch.

    Each sample is paired with the next of the batch, the last with the first; pairs of equal history have no loss.
    """
    asked = history - history.roll(-1)
    return F.relu(asked.abs() - asked.sign() * (confidence - confidence.roll(-1))).mean()


def crl(
    *, weight: float = 1.0, confidence: Callable[[Tensor], Tensor] = max_probability
) -> Callable[[Task], CorrectnessRanking]:
    """Cross-entropy + weight * `ranking_loss`: a sample that was right more often should be more confident."""
    return lambda task: CorrectnessRanking(task, weight=weight, confidence=confidence)


class CorrectnessRanking:
    """CRL's objective and its memory: how often each training sample was right, in train mode, in the epochs before.

    A sample's history is (count - lowest) / (epochs before - lowest) over the whole set. The authors' code divides 0 by
    0 if all counts are equal; here there is no loss. The code also updates the lowest count within an epoch: here the
    history changes only between epochs, so that a second evaluation of a batch, as by SAM, uses the same history. The
    first evaluation of a sample in an epoch is the one that counts.

    Under torch.distributed, as in DDP, one process sees a sample in an epoch and all remember it.
    """

    def __init__(self, task: Task, *, weight: float, confidence: Callable[[Tensor], Tensor]) -> None:
        self.weight = weight
        self.confidence = confidence
        self.epoch = 0
        self.epochs = 0  # epochs before this one
        self.count = torch.zeros(task.n_samples, dtype=torch.int32)  # right answers in the epochs before
        self.seen = torch.zeros(task.n_samples, dtype=torch.bool)  # in this epoch
        self.right = torch.zeros(task.n_samples, dtype=torch.bool)  # at the first evaluation

    def __call__(self, model: nn.Module, batch: Batch) -> Tensor:
        epoch = batch.known_epoch("CRL")
        if epoch != self.epoch:
            self._turn_to(epoch, batch.x.device)
        logits = model(batch.x)
        index = batch.index.to(self.count.device)
        ranking = ranking_loss(self.confidence(logits), self.history(index).to(logits.device))
        self._remember(index, (logits.argmax(1) == batch.y).to(index.device))
        return cross_entropy(logits, batch.y) + self.weight * ranking

    def history(self, index: Tensor) -> Tensor:
        """How often the samples were right in the epochs before, from 0 for the least of the set to 1 for always."""
        lowest = int(self.count.min())
        return (self.count[index] - lowest) / max(self.epochs - lowest, 1)

    def state_dict(self) -> dict[str, Tensor | int]:
        """The state that a resumed run needs."""
        return {"epoch": self.epoch, "epochs": self.epochs, "count": self.count, "seen": self.seen, "right": self.right}

    def load_state_dict(self, state: dict[str, Tensor | int]) -> None:
        """Continue from a `state_dict`."""
        self.epoch, self.epochs = int(state["epoch"]), int(state["epochs"])
        for name in ("count", "seen", "right"):
            getattr(self, name).copy_(state[name])

    def _turn_to(self, epoch: int, device: torch.device) -> None:
        right = self.right.to(device, torch.int32)  # NCCL reduces only tensors on the device
        if distributed.is_available() and distributed.is_initialized():
            distributed.all_reduce(right)
        self.count += right.to(self.count.device)
        self.epochs += bool(self.seen.any())
        self.seen.zero_()
        self.right.zero_()
        self.epoch = epoch

    def _remember(self, index: Tensor, right: Tensor) -> None:
        self.right[index] = torch.where(self.seen[index], self.right[index], right)
        self.seen[index] = True
