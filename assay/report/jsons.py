"""Audits, comparisons and thresholds as JSON, in natural units; nan is null, infinity is "inf"."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from math import isinf, isnan
from pathlib import Path
from typing import TYPE_CHECKING

from assay._core.writing import replacing
from assay.auditing import Audit
from assay.comparing import Comparison
from assay.judging import Judged
from assay.rechecking import Drift, Recheck
from assay.side_by_side import Pair
from assay.thresholds import GroupThresholds, PositiveThreshold, Threshold

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Result = (
    dict[str, Audit]
    | dict[str, Comparison]
    | Comparison
    | Threshold
    | GroupThresholds
    | PositiveThreshold
    | Recheck
    | Drift
    | Judged
)


def write_json(results: Result, file: Path, pairs: Sequence[Pair] = ()) -> None:
    """Write one comparison, threshold, recheck or judge, thresholds by group, or audits by the name of their model.

    Of audits of several confidences each names the `pairs` that it is in.
    """
    if isinstance(results, Threshold):
        content = _threshold(results)
    elif isinstance(results, PositiveThreshold):
        content = _positive(results)
    elif isinstance(results, GroupThresholds):
        groups = {name: _threshold(t) for name, t in results.groups.items()}
        content = _record(results) | {"groups": groups, "coverage": results.coverage, "verdict": str(results)}
    elif isinstance(results, Comparison):
        content = _comparison(results)
    elif isinstance(results, Recheck):
        words = {"promise": results.promise, "recalibrate": results.recalibrate}
        content = _record(results) | words | {"verdict": str(results)}
    elif isinstance(results, Drift | Judged):
        content = _record(results) | {"verdict": str(results)}
    else:
        content = {name: _each(name, each, pairs) for name, each in results.items()}
    with replacing(file) as stream:
        stream.write(json.dumps(jsonable(content), indent=1, allow_nan=False).encode())


def jsonable(value: object) -> object:
    """Records, dicts, lists and numbers as JSON has them."""
    if is_dataclass(value) and not isinstance(value, type):
        return _record(value)
    if isinstance(value, dict):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    if isinstance(value, float) and (isnan(value) or isinf(value)):
        return None if isnan(value) else str(value)
    return value


def _each(name: str, result: Audit | Comparison, pairs: Sequence[Pair]) -> dict[str, object]:
    return _comparison(result) if isinstance(result, Comparison) else _audit(name, result, pairs)


def _audit(name: str, audit: Audit, pairs: Sequence[Pair]) -> dict[str, object]:
    own = [_record(pair) | {"better": pair.better, "verdict": str(pair)} for pair in pairs if name in _names(pair)]
    return _record(audit) | {"verdict": str(audit)} | ({"pairs": own} if own else {})


def _names(pair: Pair) -> tuple[str, str]:
    return pair.first, pair.second


def _comparison(results: Comparison) -> dict[str, object]:
    differences = {key: _record(d) | {"difference": d.value} for key, d in results.differences.items()}
    return _record(results) | {"differences": differences, "verdict": str(results)}


def _threshold(t: Threshold) -> dict[str, object]:
    derived = {"coverage": t.coverage, "observed_risk": t.observed_risk, "workload": t.workload, "verdict": str(t)}
    return _record(t) | derived | ({"instead": _threshold(t.instead)} if t.instead else {})


def _positive(t: PositiveThreshold) -> dict[str, object]:
    derived = {"precision": t.precision, "recall": t.recall, "verdict": str(t)}
    return _record(t) | derived | ({"instead": _positive(t.instead)} if t.instead else {})


def _record(value: DataclassInstance) -> dict[str, object]:
    """The fields of a record, without the tables that it was computed from."""
    return {f.name: jsonable(getattr(value, f.name)) for f in fields(value) if f.name != "tables"}
