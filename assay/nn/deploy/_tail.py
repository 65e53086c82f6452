"""Map and threshold added to a finished ONNX model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from assay._core.arrays import InputError
from assay._core.reading import require_file
from assay.maps import Map, refuse_probabilities
from assay.nn.deploy._module import Calibrated, calibrated
from assay.nn.deploy._onnx import NAMES, Kind, described, expected_of, given, keep, run, torch_to_onnx
from assay.thresholds import PositiveThreshold, Threshold

OLDEST_OPSET = 18
LARGEST = 10**8  # numbers of a batch of noise


class Log(nn.Module):
    """Logits of probabilities: their logarithms."""

    def forward(self, probabilities: Tensor) -> Tensor:
        return probabilities.log()


def calibrate_onnx(
    source: str | Path,
    mapping: Map | None,
    file: str | Path,
    *,
    example: Mapping[str, NDArray[Any]],
    output: str | None = None,
    gives: Kind = "logits",
    threshold: Threshold | PositiveThreshold | float | None = None,
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Add map and threshold to an ONNX model, and check the result as `export_onnx` does.

    `output` names the logits, or the probabilities if that is what the model `gives`; it can be left out if there is
    only one output. `example` holds a batch for each input.
    """
    network = _read(source)
    names = [found.name for found in network.graph.output]
    if output is None and len(names) > 1:
        raise InputError(f"{source}: has several outputs, {', '.join(names)}; say which holds the {gives}")
    chosen = names[0] if output is None else output
    if chosen not in names:
        raise InputError(f"{source}: has no output '{chosen}'; there are {', '.join(names)}")
    try:
        values = np.asarray(run(str(source), example, [chosen])[0])
    except Exception as problem:  # onnxruntime's own kinds have no base but this
        shapes = ", ".join(f"{name} {list(x.shape)}" for name, x in example.items())
        raise InputError(f"{source}: cannot be run on {shapes}: {_first_line(problem)}") from problem
    if gives == "probabilities":
        refuse_probabilities(mapping)
    expected = expected_of(mapping, given(values, gives, f"{source}: '{chosen}'"))
    tail = calibrated(nn.Identity() if gives == "logits" else Log(), mapping, threshold).eval()
    with _reasons(source):
        whole = with_tail(_modern(network, source), chosen, values, tail)
        keep(whole, Path(file), dict(example), expected, described(mapping, tail, metadata))


def with_tail(network: Any, chosen: str, values: NDArray[Any], tail: Calibrated) -> Any:
    """The ONNX model with a module behind its output `chosen`, which `values` are an example of."""
    import onnx
    from onnx import compose

    end = torch_to_onnx(tail, {"input": torch.from_numpy(values)}, opset=_opset(network))
    end = compose.add_prefix(end, "calibrated/")
    network.ir_version = end.ir_version = max(network.ir_version, end.ir_version)
    merged: onnx.ModelProto = compose.merge_models(network, end, io_map=[(chosen, "calibrated/input")])
    _rename_outputs(merged)
    return merged


def random_inputs(source: str | Path, *, batch: int = 32, seed: int = 0) -> dict[str, NDArray[Any]]:
    """A batch of noise for each input of an ONNX model, to check the calibrated model on.

    Floats are normal, integers 0 or 1; axes of any length, other than the first, have length 1.
    """
    import onnx

    rng = np.random.default_rng(seed)
    inputs = {}
    for found in _read(source).graph.input:
        described = found.type.tensor_type
        shape = [axis.dim_value for axis in described.shape.dim]
        if not shape or np.prod([float(size or 1) for size in shape]) > LARGEST:
            raise InputError(f"{source}: input '{found.name}' has no shape to draw noise of; give an example")
        with _reasons(source):
            kind = onnx.helper.tensor_dtype_to_np_dtype(described.elem_type)
        size = (shape[0] or batch, *(length or 1 for length in shape[1:]))
        noise = rng.normal(size=size) if kind.kind == "f" else rng.integers(0, 2, size)
        inputs[found.name] = noise.astype(kind)
    return inputs


def _read(source: str | Path) -> Any:
    """The model, if something goes in and comes out that can have the names of a calibrated model."""
    import onnx

    require_file(Path(source))
    try:
        network = onnx.load(str(source))
        _opset(network)
    except Exception as problem:  # what protobuf, its checks and missing external data raise have no base but this
        raise InputError(f"{source}: is no ONNX model: {_first_line(problem)}") from problem
    for what in ("input", "output"):
        if not getattr(network.graph, what):
            raise InputError(f"{source}: has no {what}")
    for found in network.graph.input:
        if found.name in NAMES:
            raise InputError(f"{source}: has an input called '{found.name}', as an output will be; rename it")
    return network


def _opset(network: Any) -> int:
    return next(int(found.version) for found in network.opset_import if found.domain in ("", "ai.onnx"))


@contextmanager
def _reasons(source: str | Path) -> Iterator[None]:
    """Errors that name the model, whatever onnx, torch and onnxruntime raise of it."""
    try:
        yield
    except InputError:
        raise
    except Exception as problem:
        raise InputError(f"{source}: cannot be calibrated: {_first_line(problem)}") from problem


def _first_line(problem: Exception) -> str:
    return (str(problem).strip() or type(problem).__name__).splitlines()[0]


def _modern(network: Any, source: str | Path) -> Any:
    """The network in the oldest opset that torch exports to, or in its own if that is newer."""
    from onnx import version_converter

    opset = _opset(network)
    if opset >= OLDEST_OPSET:
        return network
    try:
        return version_converter.convert_version(network, OLDEST_OPSET)
    except Exception as problem:  # the converter's own kinds have no base but this
        raise InputError(f"{source}: cannot be raised from opset {opset} to {OLDEST_OPSET}: {problem}") from problem


def _rename_outputs(model: Any) -> None:
    """Remove the prefix from the outputs of the tail, and rename nodes of the network that have these names."""
    for name in NAMES:
        for weights in model.graph.initializer:
            if weights.name == name:
                weights.name = f"network/{name}"
        for node in model.graph.node:
            for names in (node.input, node.output):
                for i, found in enumerate(names):
                    if found == name:
                        names[i] = f"network/{name}"
                    elif found == f"calibrated/{name}":
                        names[i] = name
    for out in model.graph.output:
        out.name = out.name.removeprefix("calibrated/")
