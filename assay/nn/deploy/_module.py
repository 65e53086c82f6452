"""A network with its map and its threshold inside."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils._pytree import _register_namedtuple

from assay._core.outputs import logits_of
from assay.maps import Map, from_json, to_json
from assay.nn.maps import answer
from assay.thresholds import PositiveThreshold, Threshold, threshold_under


class Output(NamedTuple):
    """What a calibrated network says about a batch; the label is the highest logit."""

    logits: Tensor  # [n, k]
    probabilities: Tensor  # [n, k]
    confidence: Tensor  # [n]
    accept: Tensor  # [n] bool; of a threshold of class 1, whether to answer class 1


_register_namedtuple(Output, serialized_type_name="assay.nn.deploy.Output")  # for torch.export.save


class Calibrated(nn.Module):
    """A network that gives logits [n, k], followed by a map and a threshold, both part of its `state_dict`."""

    def __init__(
        self,
        model: nn.Module,
        mapping: Map | None,
        threshold: float,
        logits: Callable[[Any], Tensor] = logits_of,
        *,
        of_class_1: bool = False,
    ):
        super().__init__()
        self.model, self.mapping, self.threshold, self.logits = model, mapping, threshold, logits
        self.of_class_1 = of_class_1

    def forward(self, *inputs: Any, **named: Any) -> Output:
        raw = self.logits(self.model(*inputs, **named))
        given = answer(self.mapping, raw)
        # Decided in double precision: confidences near 1 cannot be told apart in single.
        decides = given.confidence
        if self.of_class_1:
            decides = torch.where(given.logits.argmax(1) == 1, decides, 1 - decides)
        accept = decides >= self.threshold
        return Output(given.logits, given.probabilities, given.confidence.to(raw.dtype), accept)

    def get_extra_state(self) -> Tensor:
        """Map and threshold as bytes of JSON: a tensor, so that safetensors can hold it too."""
        mapping = None if self.mapping is None else to_json(self.mapping)
        content = {"map": mapping, "threshold": self.threshold, "of_class_1": self.of_class_1}
        return torch.tensor(list(json.dumps(content).encode()), dtype=torch.uint8)

    def set_extra_state(self, state: Tensor) -> None:
        """Take map and threshold from a `state_dict`."""
        content = json.loads(bytes(state.tolist()))
        self.mapping = None if content["map"] is None else from_json(content["map"])
        self.threshold, self.of_class_1 = content["threshold"], content["of_class_1"]


def calibrated(
    model: nn.Module,
    mapping: Map | None,
    threshold: Threshold | PositiveThreshold | float | None = None,
    *,
    logits: Callable[[Any], Tensor] = logits_of,
) -> Calibrated:
    """A module that gives calibrated logits, probabilities and confidence, and whether to accept each answer.

    Without a threshold every answer is accepted; one that was chosen under another map is refused. By a threshold of
    class 1, `accept` says whether to answer class 1. The module takes what `model` takes. `logits` picks them from what
    the model returns, by default an array or whatever is called `logits`.

    >>> import assay.examples
    >>> from assay.calibrators import temperature
    >>> mapping = temperature(assay.examples.load(split="held_out"))
    >>> module = calibrated(nn.Identity(), mapping, threshold=0.9)
    >>> module(torch.tensor(assay.examples.load().logits[:4])).accept
    tensor([False, False,  True, False])
    """
    of_class_1 = isinstance(threshold, PositiveThreshold)
    return Calibrated(model, mapping, threshold_under(mapping, threshold), logits, of_class_1=of_class_1)
