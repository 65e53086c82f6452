"""A fitted scikit-learn classifier, its map and its threshold as one ONNX file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from assay._core.arrays import InputError
from assay._core.lookup import needs
from assay.maps import Map, refuse_probabilities
from assay.nn.deploy._module import calibrated
from assay.nn.deploy._onnx import described, expected_of, given, keep, near_an_edge, run
from assay.nn.deploy._tail import Log, with_tail
from assay.nn.maps import answer
from assay.predictions import Predictions
from assay.thresholds import PositiveThreshold, Threshold

OPSET = {"": 18, "ai.onnx.ml": 3}  # the oldest that torch exports to, and the newest for trees that runtimes share


class OneMargin(nn.Module):
    """Logits [0, z] of two classes whose margin z is the last column."""

    def forward(self, margins: Tensor) -> Tensor:
        z = margins[:, -1:]
        return torch.cat([torch.zeros_like(z), z], 1)


class Floored(nn.Module):
    """Logits of probabilities to each of which the floor is added, as `CalibratedClassifier` does."""

    def __init__(self, floor: float) -> None:
        super().__init__()
        self.floor = floor

    def forward(self, probabilities: Tensor) -> Tensor:
        p = probabilities.double() + self.floor
        return (p / p.sum(1, keepdim=True)).log()


class Mapped(nn.Module):
    """Logarithms of the probabilities that a map gives."""

    def __init__(self, mapping: Map) -> None:
        super().__init__()
        self.mapping = mapping

    def forward(self, logits: Tensor) -> Tensor:
        return answer(self.mapping, logits).probabilities.log()


def export_estimator(
    model: Any,
    mapping: Map | None,
    file: str | Path,
    *,
    example: Any,
    threshold: Threshold | PositiveThreshold | float | None = None,
    opset: int | None = None,
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write a fitted classifier, also a `CalibratedClassifier`, with a map and a threshold behind it.

    The map takes what `Predictions.from_probabilities(model.predict_proba(X), y)` holds, or the margins of a classifier
    that has no probabilities. The inputs of the file have the types of `example`. Its metadata name the classes.
    """
    raw = _predicted(model, example)
    if raw.normalized:
        refuse_probabilities(mapping)
    expected = expected_of(mapping, raw)
    base, logits, inner = _within(model)
    network = _converted(base, example, opset)
    inputs = _inputs(network, example)
    chosen = network.graph.output[0].name
    scores = run(network.SerializeToString(), inputs, [chosen])[0]
    if inner is not None:
        expected[near_an_edge(inner, logits(torch.from_numpy(scores)).numpy())] = np.nan
        logits = nn.Sequential(logits, Mapped(inner))
    tail = calibrated(logits, mapping, threshold).eval()
    shown = ", then ".join(str(each) for each in (inner, mapping) if each is not None) or "unchanged"
    about = {"map": shown, "classes": json.dumps(np.asarray(model.classes_).tolist()), **(metadata or {})}
    about = described(mapping, tail, about)
    try:
        keep(with_tail(network, chosen, scores, tail), Path(file), inputs, expected, about)
    except InputError as problem:
        hint = "trees that follow a scaler agree only in float32: give such an example"
        raise InputError(f"{problem}; {hint}") from problem


def _within(model: Any) -> tuple[Any, nn.Module, Map | None]:
    """The estimator that is converted, how its scores become logits, and the map of a `CalibratedClassifier`."""
    from assay.sklearn import CalibratedClassifier

    if isinstance(model, CalibratedClassifier):
        if len(model.members_) > 1:
            raise InputError("an ensemble of estimators is no single model to export; fit with ensemble=False")
        base, inner = model.estimator_, model.map_
        return base, Floored(model.floor_) if hasattr(base, "predict_proba") else _margins(base), inner
    return model, Log() if hasattr(model, "predict_proba") else _margins(model), None


def _margins(estimator: Any) -> nn.Module:
    return OneMargin() if len(estimator.classes_) == 2 else nn.Identity()


def _predicted(model: Any, example: Any) -> Predictions:
    """What scikit-learn gives for the example."""
    name = type(model).__name__
    if hasattr(model, "predict_proba"):
        return given(np.asarray(model.predict_proba(example)), "probabilities", name)
    margins = np.asarray(model.decision_function(example))
    of_all = np.column_stack([np.zeros_like(margins), margins]) if margins.ndim == 1 else margins
    return given(of_all, "logits", name)


def _converted(estimator: Any, example: Any, opset: int | None) -> Any:
    """The estimator as an ONNX model whose only output are its probabilities or margins."""
    skl2onnx = needs("skl2onnx")
    last = estimator[-1] if hasattr(estimator, "steps") else estimator
    options = {"zipmap": False} if hasattr(estimator, "predict_proba") else {"raw_scores": True}
    target = OPSET if opset is None else OPSET | {"": opset}
    try:
        network = skl2onnx.to_onnx(estimator, example, options={id(last): options}, target_opset=target)
    except Exception as problem:  # skl2onnx raises whatever its converters raise
        name = type(estimator).__name__
        raise InputError(f"{name} cannot be converted by skl2onnx: {str(problem).strip().splitlines()[0]}") from problem
    del network.graph.output[0]  # the estimator's own labels: the map may change them
    network.graph.output[0].type.tensor_type.shape.dim[1].Clear()  # of two classes it may say 1 and give 2
    return network


def _inputs(network: Any, example: Any) -> dict[str, NDArray[Any]]:
    """The example by the names of the inputs: an array is one, a data frame has one a column."""
    names = [found.name for found in network.graph.input]
    if not hasattr(example, "columns"):
        return {names[0]: np.asarray(example)}
    return {name: np.asarray(example[[column]]) for name, column in zip(names, example.columns, strict=True)}
