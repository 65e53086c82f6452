"""What a report says of summaries, whose rows are not in memory: how exact their numbers are, and what needs rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from assay.auditing import Audit
from assay.metrics import Tables, is_summary
from assay.report.quantities import BRIEF, quantity

NEEDS_ROWS = "This is read from a summary: single mistakes, their pictures and the answers by class need the rows."


def promisable(t: Tables) -> bool:
    """Whether a threshold can come with a promise: a summary of weighted rows says too little for one."""
    return t.summary is None or t.ranking.weighing is None


def exactness(bounds: Mapping[str, float | None], how: str = "") -> str:
    """How far metrics of a summary can be from those of the rows; `how` says more about the way they were read."""
    off, unknown = _off(bounds), [key for key, bound in bounds.items() if bound is None]
    if not off and not unknown:
        return "every number is exact."
    parts = ["read on a grid of confidence", how]
    parts += [f"off by at most {off}"] if off else []
    parts += [f"without a known bound: {', '.join(unknown)}"] if unknown else []
    return f"{'; '.join(part for part in parts if part)}; all others are exact."


def exactness_of(models: Mapping[str, object], keys: Collection[str]) -> list[str]:
    """The same in a line for each model that is a summary, of these metrics."""
    bounds = {name: rows.bounds() for name, rows in models.items() if is_summary(rows)}
    return [f"{name}: {exactness({key: off.get(key) for key in keys})}" for name, off in bounds.items()]


def within_groups(found: Audit) -> str:
    """How far the metrics of groups can be off, in the table of all groups; nothing if they are exact."""
    groups = found.groups.values()
    worst = {key: max((g[key].bound or 0.0 for g in groups if key in g.measurements), default=0.0) for key in BRIEF}
    return f"within groups off by at most {_off(worst)}" if _off(worst) else ""


def note(found: Audit) -> str:
    """What the page of a summary says at its head."""
    if all(m.bound == 0 for m in found.measurements.values()):
        return f"{NEEDS_ROWS} Every number is exact."
    parts = ["read on a grid of confidence", within_groups(found), "the table of every metric has its bound"]
    return f"{NEEDS_ROWS} Numbers are {'; '.join(part for part in parts if part)}."


def bound_in_words(key: str, bound: float | None) -> str:
    """A bound in the unit of its metric."""
    unit = quantity(key).unit
    return "not known" if bound is None else f"{unit.factor * bound:.1g}{unit.sign}" if bound else "exact"


def _off(bounds: Mapping[str, float | None]) -> str:
    return ", ".join(f"{bound:.1g} ({key})" for key, bound in bounds.items() if bound)
