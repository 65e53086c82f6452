"""Maps on disk: JSON to read, safetensors for large ones. A file appears whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from assay._core.arrays import InputError
from assay.files import replacing
from assay.maps._confidence import Curve, Logistic, ScoreLogistic, Steps
from assay.maps._kinds import Candidate, Fit, Fitted
from assay.maps._logits import Affine, Ensemble, OneVsRest, Temperature
from assay.maps._sequence import Map, Sequence

RECORDS: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        *(Temperature, Affine, Ensemble, OneVsRest),
        *(Steps, Curve, Logistic, ScoreLogistic),
        *(Sequence, Fit, Candidate),
    )
}


def save(mapping: Map, file: str | Path) -> None:
    """Write a map, by the ending of the name as .json or .safetensors."""
    path = Path(file)
    if path.suffix == ".safetensors":
        from safetensors.torch import save as as_bytes

        tensors: dict[str, Tensor] = {}

        def put(tensor: Tensor) -> dict[str, Any]:
            tensors[str(len(tensors))] = tensor.contiguous()
            return {"tensor": str(len(tensors) - 1)}

        content = as_bytes(tensors, metadata={"map": json.dumps(_plain(mapping, put))})
    elif path.suffix == ".json":
        content = json.dumps(_plain(mapping, lambda tensor: {"tensor": tensor.tolist()}), indent=1).encode()
    else:
        raise InputError(f"{path}: a map is saved as .json or .safetensors")
    with replacing(path) as stream:
        stream.write(content)


def load(file: str | Path) -> Map:
    """Read a map back, equal to the one that was saved."""
    path = Path(file)
    try:
        if path.suffix == ".safetensors":
            from safetensors import SafetensorError, safe_open

            try:
                with safe_open(path, framework="pt") as opened:
                    content = json.loads(opened.metadata()["map"])
                    found = _restored(content, opened.get_tensor)
            except SafetensorError as problem:
                raise ValueError(problem) from problem
        else:
            found = _restored(json.loads(path.read_text()), lambda x: torch.tensor(x, dtype=torch.float64))
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise InputError(f"{path}: is no calibration map: {problem}") from problem
    if not isinstance(found, Fitted):
        raise InputError(f"{path}: is no calibration map")
    return found  # type: ignore[return-value]


def _plain(value: Any, put: Callable[[Tensor], dict[str, Any]]) -> Any:
    """Records as dictionaries that name their kind, tensors as `put` has them."""
    if isinstance(value, Tensor):
        return put(value)
    if is_dataclass(value):
        return {"kind": type(value).__name__} | {f.name: _plain(getattr(value, f.name), put) for f in fields(value)}
    if isinstance(value, tuple):
        if value and all(isinstance(item, float) for item in value):
            return {"floats": put(torch.tensor(value, dtype=torch.float64))["tensor"]}
        return [_plain(item, put) for item in value]
    return value


def _restored(value: Any, get: Callable[[Any], Tensor]) -> Any:
    if isinstance(value, list):
        return tuple(_restored(item, get) for item in value)
    if not isinstance(value, dict):
        return value
    if "tensor" in value:
        return get(value["tensor"])
    if "floats" in value:
        return tuple(get(value["floats"]).tolist())
    kind = RECORDS[value["kind"]]
    return kind(**{name: _restored(item, get) for name, item in value.items() if name != "kind"})
