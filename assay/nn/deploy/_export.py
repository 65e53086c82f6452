"""A model, its map and its threshold as one ONNX file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from assay._core.arrays import InputError
from assay._core.outputs import logits_of
from assay.maps import Map
from assay.nn.deploy._estimator import export_estimator
from assay.nn.deploy._module import calibrated
from assay.nn.deploy._onnx import described, expected_of, given, keep, torch_to_onnx
from assay.selective import Estimator
from assay.thresholds import PositiveThreshold, Threshold

Example = Tensor | Sequence[Tensor] | Mapping[str, Tensor]


def export_onnx(
    model: nn.Module | Estimator,
    mapping: Map | None,
    file: str | Path,
    *,
    example: Any,
    threshold: Threshold | PositiveThreshold | float | None = None,
    logits: Callable[[Any], Tensor] = logits_of,
    input_names: Sequence[str] | None = None,
    opset: int | None = None,
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write the calibrated model as one ONNX file with outputs logits, probabilities, confidence and accept.

    `example` is a batch: one tensor, several, or a dict of those that the model takes by name, whose names the inputs
    of the file then have. The file takes batches of any size. `logits` picks them from what the model returns.

    A fitted scikit-learn classifier or pipeline, also a `CalibratedClassifier`, takes the `example` that its
    `predict_proba` takes. The map is then of those probabilities, or of margins if it has none.

    Before the file is saved it is run in onnxruntime on the example, and what it says must agree with the map applied
    by numpy to what the model gives, to 1e-5; for a map with steps, rows within 1e-6 of an edge are left out.
    """
    if not isinstance(model, nn.Module):
        export_estimator(model, mapping, file, example=example, threshold=threshold, opset=opset, metadata=metadata)
        return
    tensors = _named(example, input_names)
    positional = _ByName(model, list(tensors)) if isinstance(example, Mapping) else model
    whole = calibrated(positional, mapping, threshold, logits=logits).eval()
    with torch.no_grad():
        output = positional(*tensors.values())
    expected = expected_of(mapping, given(logits(output).numpy(), "logits", "the model"))
    inputs = {name: x.numpy() for name, x in tensors.items()}
    about = described(mapping, whole, metadata)
    keep(torch_to_onnx(whole, tensors, opset=opset), Path(file), inputs, expected, about)


class _ByName(nn.Module):
    """A model whose inputs come in an order: ONNX has no arguments by name."""

    def __init__(self, model: nn.Module, names: list[str]):
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *inputs: Tensor) -> Any:
        return self.model(**dict(zip(self.names, inputs, strict=True)))


def _named(example: Example, names: Sequence[str] | None) -> dict[str, Tensor]:
    """The tensors of an example by the names of the file's inputs."""
    if isinstance(example, Mapping):
        if names is not None:
            raise InputError("the inputs of a dict have its names; leave input_names out")
        return dict(example)
    tensors = [example] if isinstance(example, Tensor) else list(example)
    default = ["input"] if len(tensors) == 1 else [f"input_{i}" for i in range(len(tensors))]
    if names is not None and len(names) != len(tensors):
        raise InputError(f"{len(names)} input_names for {len(tensors)} inputs")
    return dict(zip(names or default, tensors, strict=True))
