"""Audits and comparisons as JSON, in natural units; what is undefined is null, what is infinite says so."""

from __future__ import annotations

import json
from dataclasses import asdict
from math import isinf, isnan
from pathlib import Path

from assay.auditing import Audit
from assay.comparing import Comparison
from assay.files import replacing
from assay.thresholds import Threshold


def write_json(results: dict[str, Audit] | Comparison | Threshold, file: Path) -> None:
    """Write one comparison, one threshold, or audits by the name of their model."""
    if isinstance(results, Threshold):
        derived = {"coverage": results.coverage, "observed_risk": results.observed_risk, "workload": results.workload}
        content = asdict(results) | derived | {"verdict": str(results)}
    elif isinstance(results, Comparison):
        content = asdict(results) | {"verdict": str(results)}
        for key, difference in results.differences.items():
            content["differences"][key]["difference"] = difference.value
    else:
        content = {name: asdict(audit) | {"verdict": str(audit)} for name, audit in results.items()}
    with replacing(file) as stream:
        stream.write(json.dumps(plain(content), indent=1, allow_nan=False).encode())


def plain(value: object) -> object:
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and (isnan(value) or isinf(value)):
        return None if isnan(value) else str(value)
    return value
