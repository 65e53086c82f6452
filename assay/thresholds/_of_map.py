"""A threshold belongs to the map under which it was chosen: the check, and thresholds from files."""

from __future__ import annotations

import json
from dataclasses import fields
from math import inf, isnan, nan
from pathlib import Path
from typing import Any

from assay import maps
from assay._core.arrays import InputError
from assay._core.reading import require_file
from assay._core.records import record
from assay.maps import Map
from assay.predictions import Outcomes, Predictions
from assay.thresholds._positive import PositiveThreshold
from assay.thresholds._records import Threshold

NESTED = ("instead", "broken")  # what a file has for people to read
MOST = 2**53  # rows, which a double counts exactly


def threshold_under(mapping: Map | None, threshold: Threshold | PositiveThreshold | float | None) -> float:
    """The number to compare confidences with, -inf for no threshold; raises if it was chosen under another map.

    That of a threshold of class 1 is to be compared with probabilities of class 1. A bare number is taken as it is.
    """
    if not isinstance(threshold, Threshold | PositiveThreshold):
        return -inf if threshold is None else float(threshold)
    if threshold.map_digest not in (None, maps.digest(mapping)):
        chosen = f"after map {threshold.map_digest}" if threshold.map_digest else "without a map"
        used = f"after map {maps.digest(mapping)}" if maps.digest(mapping) else "without one"
        hint = "choose it on predictions under the map that it will be used with"
        raise InputError(f"the threshold was chosen {chosen} and is used {used}: its promise does not hold; {hint}")
    return threshold.value


def refuse_other_rows(rows: Predictions | Outcomes, threshold: Threshold | PositiveThreshold) -> None:
    """Raise if the threshold was chosen under another map than the one that these rows have."""
    if threshold.map_digest not in (None, rows.map_digest):
        raise InputError("the threshold was chosen under another map than these predictions have; apply its map first")


def load_threshold(file: str | Path) -> Threshold | PositiveThreshold:
    """Read a threshold back from JSON, as `assay threshold --json` writes it."""
    path = Path(file)
    require_file(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        found = _of_class_1(content) if "goal" in content else _of_confidence(content)
    except (OSError, ValueError, TypeError, LookupError, OverflowError, RecursionError) as problem:
        raise InputError(f"{path}: is no threshold, as `assay threshold --json` writes it: {problem}") from problem
    return found


def _of_confidence(content: dict[str, Any]) -> Threshold:
    known = {f.name: content[f.name] for f in fields(Threshold) if f.name in content and f.name not in NESTED}
    by_weight = known.get("weighted")
    known["weighted"] = None if by_weight is None else (float(by_weight[0]), float(by_weight[1]))
    found = record(Threshold, known | {"value": float(known["value"])})  # infinity is written as text
    promise = 0 < found.guaranteed_risk <= 1 or not found.accepted
    _refuse_impossible(found, promise and 0 <= found.wrong <= found.accepted)
    return found


def _of_class_1(content: dict[str, Any]) -> PositiveThreshold:
    known = {f.name: content[f.name] for f in fields(PositiveThreshold) if f.name in content and f.name not in NESTED}
    cost = nan if known.get("cost") is None else known["cost"]
    by_weight = known.get("weighted")
    if by_weight is not None:
        answered, precision, recall = (nan if x is None else float(x) for x in by_weight)
        known["weighted"] = (answered, precision, recall)
    found = record(PositiveThreshold, known | {"value": float(known["value"]), "cost": cost})
    counts = 0 <= found.hits <= min(found.flagged, found.positives) and found.positives <= found.n
    share = found.goal == "cost" or (found.goal in ("precision", "recall") and 0 < found.promised < 1)
    _refuse_impossible(found, counts and share)
    return found


def _refuse_impossible(found: Threshold | PositiveThreshold, otherwise_possible: bool) -> None:
    counts = found.accepted <= found.n and 0 < found.n <= MOST
    if not (otherwise_possible and counts and 0 < found.confidence < 1 and not isnan(found.value)):
        raise InputError("its numbers cannot be")
