"""HELM: the `per_instance_stats.json` of a run, one row an instance and trial."""

from __future__ import annotations

from collections.abc import Mapping

from assay._core.arrays import InputError
from assay.files._records import Record

CONFIDENCE, CORRECT = "max_prob", "exact_match"


def recognized(content: object) -> bool:
    first = content[0] if isinstance(content, list) and content else None
    return isinstance(first, Mapping) and {"instance_id", "stats"} <= set(first)


def records(content: object) -> list[Record]:
    """The statistics `max_prob` and `exact_match` of each instance; perturbed instances are groups of their own."""
    if not recognized(content) or not isinstance(content, list):
        raise InputError("is no file of HELM statistics: it has no rows with 'instance_id' and 'stats'")
    found: list[Record] = [_row(row, i) for i, row in enumerate(content)]
    perturbed = {row["group"] for row in found} != {"none"}
    return found if perturbed else [{k: v for k, v in row.items() if k != "group"} for row in found]


def _row(row: Record, i: int) -> dict[str, object]:
    stats = row.get("stats")
    if not isinstance(stats, list):
        raise InputError(f"row {i}: 'stats' must be a list")
    means = {stat["name"]["name"]: stat.get("mean") for stat in stats}
    if CORRECT not in means:
        raise InputError(f"row {i} has no statistic '{CORRECT}'")
    perturbation = row.get("perturbation")
    group = str(perturbation.get("name")) if isinstance(perturbation, Mapping) else "none"
    trial = row.get("train_trial_index", 0)
    return {
        "ids": f"{row.get('instance_id')} trial {trial} {group}" if trial or group != "none" else row["instance_id"],
        "confidence": means.get(CONFIDENCE),
        "correct": means[CORRECT],
        "group": group,
    }
