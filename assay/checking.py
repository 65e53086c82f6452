"""Requirements on a model's predictions, for continuous integration: what is shown to be worse than allowed?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from assay import metrics
from assay._core.arrays import InputError
from assay._core.lookup import lookup
from assay.auditing import audit
from assay.comparing import compare
from assay.metrics import METRICS
from assay.predictions import Outcomes, Predictions
from assay.thresholds import PositiveThreshold, Threshold, decided_by, evidence_of, promised_rows, refuse_other_rows

REQUIREMENT = re.compile(r"\s*(\w+)\s*(<=|>=)\s*([-+.\deE]+)\s*")


@dataclass(frozen=True)
class Requirement:
    """A metric and the value that it must not exceed, or not fall below."""

    key: str
    relation: str  # <= or >=
    limit: float

    def __str__(self) -> str:
        return f"{self.key} {self.relation} {self.limit:g}"


@dataclass(frozen=True)
class Check:
    """One requirement, and what was found."""

    name: str
    passed: bool
    found: str


def requirement(text: str) -> Requirement:
    """Read a requirement such as `ece<=0.05`.

    >>> requirement("risk_at_90<=0.02")
    Requirement(key='risk_at_90', relation='<=', limit=0.02)
    """
    match = REQUIREMENT.fullmatch(text)
    if match is None:
        raise InputError(f"'{text}' is no requirement; write metric<=number or metric>=number, as in ece<=0.05")
    key, relation, limit = match.groups()
    lookup("metric", key, METRICS)
    try:
        return Requirement(key, relation, float(limit))
    except ValueError as problem:
        raise InputError(f"'{text}': {limit} is no number") from problem


def check_requirements(
    rows: Predictions | Outcomes, requirements: Sequence[Requirement], *, strict: bool = False
) -> list[Check]:
    """Each requirement against the 95 % interval of its metric, or the value if it has none.

    A requirement fails if the whole interval breaks it; if `strict`, unless the whole interval keeps it.
    """
    found = audit(rows)
    checks = []
    for wanted in requirements:
        if wanted.key not in found.measurements:
            raise InputError(f"{wanted.key} cannot be computed from these predictions")
        measured = found[wanted.key]
        if not np.isfinite(measured.value):
            checks.append(Check(str(wanted), False, "undefined"))
            continue
        low, high = (measured.interval.low, measured.interval.high) if measured.interval else (measured.value,) * 2
        kept = {"<=": (low, high), ">=": (-high, -low)}[wanted.relation][strict]
        passed = kept <= (wanted.limit if wanted.relation == "<=" else -wanted.limit)
        bar = f" ({low:.4g} to {high:.4g})" if measured.interval else ", without an interval"
        checks.append(Check(str(wanted), bool(passed), f"{measured.value:.4g}{bar}"))
    return checks


def check_no_worse(baseline: Predictions | Outcomes, rows: Predictions | Outcomes) -> list[Check]:
    """Each axis of `compare`: fails where the new model is shown to be worse on the same samples."""
    verdicts = compare(baseline, rows).verdicts
    return [Check(f"no worse {v.axis}", v.word != "worse", f"{v.word}, {v.reason}") for v in verdicts]


def check_promise(
    rows: Predictions | Outcomes, threshold: Threshold | PositiveThreshold, *, strict: bool = False
) -> Check:
    """A threshold's promise on new labels: fails if they show a higher risk, or if `strict` unless they show it kept.

    The bounds are those of `choose_threshold`, at the threshold's own confidence. The risk of a precision or a recall
    that was promised of class 1 is what is missing to 1.
    """
    refuse_other_rows(rows, threshold)
    accepted, decided = promised_rows(rows, threshold), decided_by(rows, threshold)
    name = f"risk <= {threshold.guaranteed_risk:g} above {threshold.value:.4g}"
    if isinstance(threshold, PositiveThreshold):
        name = f"{threshold.goal} >= {threshold.promised:g} from {threshold.value:.4g}"
    if len(accepted) == 0:
        return Check(name, not strict, "there is no row that the promise is about")
    low, high = (
        _bound(replace(accepted, correct=correct), decided, threshold.confidence)
        for correct in (~accepted.correct, accepted.correct)
    )
    passed = (high if strict else 1 - low) <= threshold.guaranteed_risk
    n, wrong = len(accepted), int((~accepted.correct).sum())
    shown = f"{1 - metrics.accuracy(accepted):.4g} ({1 - low:.4g} to {high:.4g})"
    return Check(name, passed, f"{wrong} of {n} wrong, {shown}")


def _bound(accepted: Outcomes, among: Outcomes, confidence: float) -> float:
    """Upper bound of the share of errors, in rows that were taken from `among` others."""
    seen = evidence_of(accepted, among)
    return seen.bound(len(seen.ranking.score), 1 - confidence)
