"""A network with its map and its threshold inside."""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple

from torch import Tensor, nn

from assay.maps import Map
from assay.nn.maps import answer
from assay.thresholds import Threshold


class Output(NamedTuple):
    """What a calibrated network says about a batch; the label is the highest logit."""

    logits: Tensor  # [n, k]
    probabilities: Tensor  # [n, k]
    confidence: Tensor  # [n]
    accept: Tensor  # [n] bool


class Calibrated(nn.Module):
    """A network that gives logits [n, k], followed by a map and a threshold."""

    def __init__(self, model: nn.Module, mapping: Map | None, threshold: float):
        super().__init__()
        self.model, self.mapping, self.threshold = model, mapping, threshold

    def forward(self, x: Any) -> Output:
        raw = self.model(x)
        given = answer(self.mapping, raw)
        # Decided in double precision: confidences near 1 cannot be told apart in single.
        accept = given.confidence >= self.threshold
        return Output(given.logits, given.probabilities, given.confidence.to(raw.dtype), accept)


def calibrated(model: nn.Module, mapping: Map | None, threshold: Threshold | float | None = None) -> Calibrated:
    """A module that gives calibrated logits, probabilities and confidence, and whether to accept each answer.

    Without a threshold every answer is accepted.

    >>> import torch, assay.examples
    >>> from assay.calibrators import temperature
    >>> mapping = temperature(assay.examples.load(split="held_out"))
    >>> module = calibrated(nn.Identity(), mapping, threshold=0.9)
    >>> module(torch.tensor(assay.examples.load().logits[:4])).accept
    tensor([False, False,  True, False])
    """
    value = threshold.value if isinstance(threshold, Threshold) else -inf if threshold is None else float(threshold)
    return Calibrated(model, mapping, value)
