"""Maps on disk: JSON to read, safetensors for large ones. A file appears whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from assay._core.arrays import Array, Floats, InputError
from assay._core.lookup import lookup
from assay._core.reading import require_file
from assay._core.records import record
from assay._core.writing import replacing
from assay.maps._applying import Map, Sequence
from assay.maps._confidence import Curve, Logistic, ScoreLogistic, Steps
from assay.maps._kinds import Candidate, Fit, Fitted
from assay.maps._logits import Affine, Ensemble, OneVsRest, Temperature

RECORDS: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        *(Temperature, Affine, Ensemble, OneVsRest),
        *(Steps, Curve, Logistic, ScoreLogistic),
        *(Sequence, Fit, Candidate),
    )
}
ARRAYS = ("tensor", "floats")  # what an array is called in a file: the first is written, both are read


def save(mapping: Map, file: str | Path) -> None:
    """Write a map as .json or .safetensors, by the ending of the name."""
    path = Path(file)
    if path.suffix == ".safetensors":
        from safetensors.numpy import save as as_bytes

        arrays: dict[str, Array] = {}

        def put(array: Floats) -> str:
            arrays[str(len(arrays))] = np.ascontiguousarray(array)
            return str(len(arrays) - 1)

        written = {"map": json.dumps(_plain(mapping, put))}
        # Of no arrays at all, safetensors up to 0.4.3 writes a header that it cannot read.
        content = as_bytes(arrays or {"none": np.zeros(0)}, metadata=written)
    elif path.suffix == ".json":
        content = to_json(mapping).encode()
    else:
        raise InputError(f"{path}: a map is saved as .json or .safetensors")
    with replacing(path) as stream:
        stream.write(content)


def load(file: str | Path) -> Map:
    """Read a map back, equal to the one that was saved."""
    path = Path(file)
    require_file(path, f"; `assay calibrate HELD_OUT --save {path}` writes a map")
    try:
        return _from_safetensors(path) if path.suffix == ".safetensors" else from_json(path.read_text(encoding="utf-8"))
    except RecursionError as problem:
        raise InputError(f"{path}: is no calibration map: it is nested too deeply") from problem
    except (OSError, ValueError, KeyError, TypeError, OverflowError) as problem:
        raise InputError(f"{path}: is no calibration map: {problem}") from problem


def to_json(mapping: Map) -> str:
    """The map as JSON text."""
    return json.dumps(_plain(mapping, lambda array: array.tolist()), indent=1)


def from_json(text: str) -> Map:
    """The map that `to_json` wrote."""
    return _map(_restored(json.loads(text), _numbers))


def _numbers(listed: Any) -> Floats:
    """An array of the numbers in a JSON list, or in a list of lists."""
    flat = [item for row in listed for item in (row if isinstance(row, list) else [row])]
    if not all(isinstance(item, int | float) and not isinstance(item, bool) for item in flat):
        raise ValueError("an array must be a list of numbers")
    return np.array(listed, dtype=np.float64)


def _map(found: Any) -> Map:
    if not isinstance(found, Fitted):
        raise ValueError(f"it holds a {type(found).__name__}")
    return found  # type: ignore[return-value]


def _from_safetensors(path: Path) -> Map:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as opened:
            return _map(_restored(json.loads((opened.metadata() or {})["map"]), lambda name: _floats(opened, name)))
    except SafetensorError as problem:
        raise ValueError(problem) from problem


def _floats(opened: Any, name: object) -> Floats:
    return np.asarray(opened.get_tensor(str(name)), dtype=np.float64)


def _plain(value: Any, put: Callable[[Floats], Any]) -> Any:
    """Records as dictionaries that name their kind, arrays as `put` returns them."""
    if isinstance(value, np.ndarray):
        return {ARRAYS[0]: put(value)}
    if is_dataclass(value):
        return {"kind": type(value).__name__} | {f.name: _plain(getattr(value, f.name), put) for f in fields(value)}
    return [_plain(item, put) for item in value] if isinstance(value, tuple) else value


def _restored(value: Any, get: Callable[[Any], Floats]) -> Any:
    if isinstance(value, list):
        return tuple(_restored(item, get) for item in value)
    if not isinstance(value, dict):
        return value
    for name in ARRAYS:
        if name in value:
            return get(value[name])
    kind = lookup("kind of map", str(value.get("kind")), RECORDS)
    return record(kind, {name: _restored(item, get) for name, item in value.items() if name != "kind"})
