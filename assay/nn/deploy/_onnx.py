"""One ONNX file with network, map and threshold inside, checked before it is saved."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import assay
from assay._core.arrays import InputError, Mask
from assay._core.writing import replacing
from assay.maps import ConfidenceMap, LogitMap, Map, OneVsRest, Sequence, Steps, answer, parts
from assay.nn.deploy._module import Output, calibrated
from assay.thresholds import Threshold

NAMES = list(Output._fields)
TOLERANCE = 1e-5
EDGE = 1e-6
OLDEST_OPSET = 18


def export_onnx(
    model: nn.Module,
    mapping: Map | None,
    file: str | Path,
    *,
    example: Tensor,
    threshold: Threshold | float | None = None,
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write the calibrated model as one ONNX file with outputs logits, probabilities, confidence and accept.

    `example` is a batch of inputs; the file takes batches of any size. Before the file is saved it is run in
    onnxruntime on the example, and its probabilities must agree with torch's to 1e-5; for a map with steps, rows within
    1e-6 of an edge are left out.
    """
    whole = calibrated(model, mapping, threshold).eval()
    with torch.no_grad():
        expected = whole(example)
        raw = model.eval()(example)
    with TemporaryDirectory() as folder:
        draft = Path(folder) / "model.onnx"
        _torch_to_onnx(whole, example, draft)
        about = _about(mapping, whole.threshold, metadata)
        _keep(draft, Path(file), {"input": example.numpy()}, expected, mapping, raw, about)


def calibrate_onnx(
    source: str | Path,
    mapping: Map | None,
    file: str | Path,
    *,
    example: Mapping[str, NDArray[Any]],
    output: str | None = None,
    threshold: Threshold | float | None = None,
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Add map and threshold to an ONNX model that gives logits, and check the result as `export_onnx` does.

    `output` names the logits if the model has several outputs; `example` holds a batch for each input.
    """
    import onnx
    from onnx import compose

    network = _read(source)
    names = [found.name for found in network.graph.output]
    if not names:
        raise InputError(f"{source}: has no output")
    if output is None and len(names) > 1:
        raise InputError(f"{source}: has several outputs, {', '.join(names)}; say which holds the logits")
    logits = names[0] if output is None else output
    if logits not in names:
        raise InputError(f"{source}: has no output '{logits}'; there are {', '.join(names)}")
    try:
        raw = torch.from_numpy(_run(str(source), example, [logits])[0])
    except Exception as problem:  # onnxruntime's own kinds have no base but this
        shapes = ", ".join(f"{name} {list(x.shape)}" for name, x in example.items())
        raise InputError(f"{source}: cannot be run on {shapes}: {str(problem).splitlines()[0]}") from problem
    if raw.dim() != 2:
        raise InputError(f"{source}: '{logits}' has shape {list(raw.shape)}; logits are [n, k]")
    tail = calibrated(nn.Identity(), mapping, threshold).eval()
    expected = tail(raw)
    network = _modern(network, source)
    opset = next(found.version for found in network.opset_import if found.domain in ("", "ai.onnx"))
    with TemporaryDirectory() as folder:
        draft = Path(folder) / "tail.onnx"
        _torch_to_onnx(tail, raw, draft, opset=opset)
        end = compose.add_prefix(onnx.load(str(draft)), "calibrated/")
        network.ir_version = end.ir_version = max(network.ir_version, end.ir_version)
        merged = compose.merge_models(network, end, io_map=[(logits, "calibrated/input")])
        _rename_outputs(merged)
        onnx.save(merged, str(draft))
        _keep(draft, Path(file), dict(example), expected, mapping, raw, _about(mapping, tail.threshold, metadata))


def random_inputs(source: str | Path, *, batch: int = 32, seed: int = 0) -> dict[str, NDArray[Any]]:
    """A batch of noise for each input of an ONNX model, to check the calibrated model on.

    Floats are normal, integers 0 or 1; axes of any length, other than the first, have length 1.
    """
    import onnx

    rng = np.random.default_rng(seed)
    inputs = {}
    for found in _read(source).graph.input:
        described = found.type.tensor_type
        kind = onnx.helper.tensor_dtype_to_np_dtype(described.elem_type)
        fixed = [axis.dim_value or 1 for axis in described.shape.dim][1:]
        first = described.shape.dim[0].dim_value or batch
        noise = rng.normal(size=(first, *fixed)) if kind.kind == "f" else rng.integers(0, 2, (first, *fixed))
        inputs[found.name] = noise.astype(kind)
    return inputs


def _read(source: str | Path) -> Any:
    import onnx
    from google.protobuf.message import DecodeError

    try:
        return onnx.load(str(source))
    except (OSError, DecodeError) as problem:
        raise InputError(f"{source}: is no ONNX model: {problem}") from problem


def _modern(network: Any, source: str | Path) -> Any:
    """The network in the oldest opset that torch exports to, or in its own if that is newer."""
    from onnx import version_converter

    opset = next(found.version for found in network.opset_import if found.domain in ("", "ai.onnx"))
    if opset >= OLDEST_OPSET:
        return network
    try:
        return version_converter.convert_version(network, OLDEST_OPSET)
    except Exception as problem:  # the converter's own kinds have no base but this
        raise InputError(f"{source}: cannot be raised from opset {opset} to {OLDEST_OPSET}: {problem}") from problem


def _rename_outputs(model: Any) -> None:
    """Remove the prefix from the outputs of the tail, and rename nodes of the network that have these names."""
    for name in NAMES:
        for node in model.graph.node:
            for names in (node.input, node.output):
                for i, found in enumerate(names):
                    if found == name:
                        names[i] = f"network/{name}"
                    elif found == f"calibrated/{name}":
                        names[i] = name
    for out in model.graph.output:
        out.name = out.name.removeprefix("calibrated/")


def _torch_to_onnx(module: nn.Module, example: Tensor, file: Path, *, opset: int | None = None) -> None:
    with _quiet():
        torch.onnx.export(
            module,
            (example,),
            str(file),
            dynamo=True,
            external_data=False,
            input_names=["input"],
            output_names=NAMES,
            dynamic_shapes=({0: torch.export.Dim("batch")},),
            opset_version=opset,
            verbose=False,
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence torch's exporter, which warns of its own deprecations and of missing torchvision."""
    chatter = logging.getLogger("torch.onnx._internal.exporter._registration")
    level = chatter.level
    chatter.setLevel(logging.ERROR)
    try:
        with catch_warnings():
            simplefilter("ignore")
            yield
    finally:
        chatter.setLevel(level)


def _about(mapping: Map | None, threshold: float, more: Mapping[str, str] | None) -> dict[str, str]:
    accepts = {} if threshold == -inf else {"threshold": repr(threshold)}
    fit = {} if mapping is None else {"fit": str(mapping.fit)}
    return {"map": str(mapping or "unchanged"), **fit, **accepts, "assay_version": assay.__version__, **(more or {})}


def _keep(
    draft: Path,
    file: Path,
    inputs: dict[str, NDArray[Any]],
    expected: Output,
    mapping: Map | None,
    raw: Tensor,
    about: dict[str, str],
) -> None:
    """Compare the draft with torch, fill in its metadata, and save it."""
    import onnx

    model = onnx.load(str(draft))
    model.producer_name = "assay"
    onnx.helper.set_model_props(model, about)
    onnx.checker.check_model(model)
    content = model.SerializeToString()
    found = _run(content, inputs, NAMES)
    rows = ~_near_an_edge(mapping, raw.numpy())
    apart = np.abs(found[1] - expected.probabilities.numpy()).max(1)[rows].max(initial=0)
    if apart > TOLERANCE:
        raise InputError(f"onnxruntime and torch differ by {apart:.2g} in the probabilities; {file} was not written")
    with replacing(file) as stream:
        stream.write(content)


def _near_an_edge(mapping: Map | None, raw: NDArray[Any]) -> Mask:
    """Rows with a probability so close to the edge of a step that rounding may move it to the other side."""
    near = np.zeros(len(raw), dtype=np.bool_)
    before: tuple[LogitMap | ConfidenceMap, ...] = ()
    for part in parts(mapping):
        given = answer(Sequence(part.fit, before), raw)
        columns = given.probabilities.astype(np.float64).T if isinstance(part, OneVsRest) else given.confidence[None]
        for steps, column in zip(part.maps if isinstance(part, OneVsRest) else (part,), columns, strict=True):
            if isinstance(steps, Steps) and len(steps.upper) > 1:
                near |= np.abs(column[:, None] - steps.upper[:-1]).min(1) <= EDGE
        before = (*before, part)
    return near


def _run(model: str | bytes, inputs: Mapping[str, NDArray[Any]], outputs: list[str]) -> list[NDArray[Any]]:
    from onnxruntime import InferenceSession

    session = InferenceSession(model, providers=["CPUExecutionProvider"])
    return list(session.run(outputs, dict(inputs)))
