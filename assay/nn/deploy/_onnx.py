"""What every ONNX file here goes through: export by torch, a check against numpy, and its metadata."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import Any, Literal
from warnings import catch_warnings, simplefilter

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import assay
from assay._core.arrays import InputError, Mask
from assay._core.writing import replacing
from assay.maps import ConfidenceMap, Curve, LogitMap, Map, OneVsRest, Sequence, Steps, answer, digest, parts
from assay.nn.deploy._module import Calibrated, Output
from assay.predictions import Predictions

NAMES = list(Output._fields)
TOLERANCE = 1e-5
EDGE = 1e-6

Kind = Literal["logits", "probabilities"]
"""What a model gives."""


def given(values: NDArray[Any], kind: Kind, whose: str) -> Predictions:
    """What a model gave for the example, checked to be what it is said to be; the labels mean nothing."""
    if values.ndim != 2:
        raise InputError(f"{whose} has shape {list(values.shape)}; {kind} are [n, k]")
    if kind == "logits" and (values >= 0).all() and np.allclose(values.sum(1), 1, atol=1e-3):
        raise InputError(f"{whose} gives probabilities, not logits: no number is negative and each row sums to 1")
    make = Predictions.from_logits if kind == "logits" else Predictions.from_probabilities
    try:
        return make(values, np.zeros(len(values), dtype=np.int64))
    except InputError as problem:
        raise InputError(f"{whose}: {problem}") from problem


def torch_to_onnx(module: nn.Module, example: Mapping[str, Tensor], *, opset: int | None = None) -> Any:
    """A module of `*inputs` as an ONNX model; the first axis of each input is the batch, of any size."""
    batch = {0: torch.export.Dim("batch")}
    with _quiet():
        program = torch.onnx.export(
            module,
            tuple(example.values()),
            dynamo=True,
            input_names=list(example),
            output_names=NAMES,
            dynamic_shapes={"inputs": (batch,) * len(example)},
            opset_version=opset,
            verbose=False,
        )
    assert program is not None, "dynamo=True returns it"
    return program.model_proto


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


def described(mapping: Map | None, tail: Calibrated, more: Mapping[str, str] | None) -> dict[str, str]:
    """The metadata of a file."""
    accepts = {} if tail.threshold == -inf else {"threshold": repr(tail.threshold)}
    accepts |= {"threshold_of": "probability of class 1"} if tail.of_class_1 else {}
    fit = {} if mapping is None else {"fit": str(mapping.fit), "map_digest": digest(mapping)}
    return {"map": str(mapping or "unchanged"), **fit, **accepts, "assay_version": assay.__version__, **(more or {})}


def keep(
    model: Any,
    file: Path,
    inputs: dict[str, NDArray[Any]],
    expected: NDArray[Any],
    about: dict[str, str],
) -> None:
    """Compare the probabilities of an ONNX model with the expected ones, fill in its metadata, and save it."""
    import onnx

    model.producer_name = "assay"
    onnx.helper.set_model_props(model, about)
    onnx.checker.check_model(model)
    content = model.SerializeToString()
    found = run(content, inputs, NAMES)[1]
    sure = ~np.isnan(expected).any(1)
    apart = np.abs(found - expected)[sure].max(initial=0)
    if not apart <= TOLERANCE:  # also if it is nan
        raise InputError(f"onnxruntime and the map differ by {apart:.2g} in the probabilities; {file} was not written")
    with replacing(file) as stream:
        stream.write(content)


def expected_of(mapping: Map | None, raw: Predictions) -> NDArray[Any]:
    """Probabilities [n, k] that numpy computes from what a model gave; nan in rows that are near an edge."""
    found = answer(mapping, raw.logits).probabilities
    return np.where(near_an_edge(mapping, raw.logits)[:, None], np.nan, found)


def near_an_edge(mapping: Map | None, raw: NDArray[Any]) -> Mask:
    """Rows with a probability so close to a step, or on so steep a line, that rounding moves the result."""
    near = np.zeros(len(raw), dtype=np.bool_)
    before: tuple[LogitMap | ConfidenceMap, ...] = ()
    for part in parts(mapping):
        so_far = answer(Sequence(part.fit, before), raw)
        columns = so_far.probabilities.astype(np.float64).T if isinstance(part, OneVsRest) else so_far.confidence[None]
        for steep, column in zip(part.maps if isinstance(part, OneVsRest) else (part,), columns, strict=True):
            if isinstance(steep, Steps | Curve):
                near |= np.abs(steep(column + EDGE) - steep(column - EDGE)) > TOLERANCE
        before = (*before, part)
    return near


def run(model: str | bytes, inputs: Mapping[str, NDArray[Any]], outputs: list[str]) -> list[NDArray[Any]]:
    """What onnxruntime gives for these inputs."""
    from onnxruntime import InferenceSession

    session = InferenceSession(model, providers=["CPUExecutionProvider"])
    return list(session.run(outputs, dict(inputs)))
