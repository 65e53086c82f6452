"""Selective classification for deep neural networks (Geifman & El-Yaniv, NeurIPS 2017): answer when sure enough.

Which threshold keeps a promise about the errors among the accepted answers.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Literal, NamedTuple, get_args, overload

import numpy as np

from assay._core.arrays import InputError, Tags
from assay.metrics import Rankable, Ranking, Tables
from assay.metrics.inference import holm
from assay.predictions import Outcomes, Predictions
from assay.thresholds._evidence import Counts, Evidence, evidence
from assay.thresholds._records import GroupRisk, GroupThresholds, Threshold
from assay.thresholds._search import counting, fewest, first_look, looks_from, midway, safest, widest

By = Literal["group", "class"]
LEVEL = 0.05  # below which the risk of a group counts as shown to be higher than promised


@overload
def choose_threshold(
    held_out: Rankable,
    *,
    by: None = None,
    risk: float | None = None,
    coverage: float | None = None,
    error_cost: float | None = None,
    confidence: float = 0.95,
) -> Threshold: ...


@overload
def choose_threshold(
    held_out: Rankable,
    *,
    by: By | None,
    risk: float | None = None,
    coverage: float | None = None,
    error_cost: float | None = None,
    confidence: float = 0.95,
) -> Threshold | GroupThresholds: ...


def choose_threshold(
    held_out: Rankable,
    *,
    by: By | None = None,
    risk: float | None = None,
    coverage: float | None = None,
    error_cost: float | None = None,
    confidence: float = 0.95,
) -> Threshold | GroupThresholds:
    """The threshold of largest coverage whose share of errors is at most `risk`, with probability `confidence`.

    Or, instead of `risk`, which is .01 where nothing is given: the threshold that accepts a given `coverage`, or the
    one of least cost where an accepted error costs `error_cost` times a review. Bounds are exact binomial ones, or bets
    where rows have weights or clusters, and looking at several thresholds is paid for. They hold for samples drawn like
    the held-out set, under a map that was fitted on others; with clusters, for samples of other clusters.

    `by="group"` chooses one for each group of the predictions, and `by="class"` one for each predicted class, so that
    all promises hold together. Without it, groups whose risk is higher than promised are in `broken`.

    >>> import assay.examples
    >>> t = choose_threshold(assay.examples.load(split="held_out"), risk=0.1)
    >>> print(t)
    accept above 0.9804: at most 10.00% errors on 62.2% of inputs at 95% confidence, 8.97% seen; 37.8% left for review
    """
    if not 0 < confidence < 1:
        raise InputError(f"confidence must lie between 0 and 1, got {confidence}")
    if by not in (None, *get_args(By)):
        raise InputError(f"by must be one of {', '.join(get_args(By))}, got '{by}'")
    if sum(way is not None for way in (risk, coverage, error_cost)) > 1:
        raise InputError("give only one of risk, coverage and error_cost")
    goal = _Goal(risk, coverage, error_cost)
    if isinstance(held_out, Tables) and held_out.summary is not None:
        held_out = held_out.summary
    if not isinstance(held_out, Predictions | Outcomes | Tables | Ranking):
        if by is not None:
            raise InputError("thresholds of groups or classes need the rows, not their summary")
        chosen = _at_a_cell(_chosen(_counts(held_out.thresholds), goal, confidence), held_out.thresholds)
        return replace(chosen, map_digest=held_out.map_digest)
    if by is not None:
        return _for_each(_grouped(held_out, by), goal, confidence)
    if isinstance(held_out, Ranking):
        return _chosen(_counts(held_out), goal, confidence)
    t = _tables(held_out)
    chosen, outcomes = _chosen(evidence_of(t), goal, confidence), t.outcomes
    return replace(chosen, broken=_broken(chosen, outcomes), map_digest=outcomes.map_digest)


class _Goal(NamedTuple):
    """What is wanted: one of these."""

    risk: float | None
    coverage: float | None
    error_cost: float | None


def evidence_of(rows: Predictions | Outcomes | Tables, among: Outcomes | None = None) -> Evidence:
    """What rows say about the risk above each threshold; they may be a group `among` others.

    >>> rows = Outcomes.from_scores([0.9, 0.8, 0.7, 0.6], [1, 1, 1, 0])
    >>> round(evidence_of(rows).bound(3, doubt=0.05), 4)  # three right answers
    0.6316
    """
    t = _tables(rows)
    return _counts(t.ranking) if t.summary is not None else evidence(t.outcomes, t.ranking, among)


def _tables(rows: Predictions | Outcomes | Tables) -> Tables:
    return rows if isinstance(rows, Tables) else Tables(rows, classwise=False)


def _counts(r: Ranking) -> Counts:
    if r.weighing is not None:
        raise InputError("a ranking of weighted rows is not enough for a promise; give the rows, in one file")
    return Counts(r)


def _chosen(seen: Evidence, goal: _Goal, confidence: float) -> Threshold:
    if goal.coverage is not None:
        return _by_coverage(seen, goal.coverage, confidence)
    if goal.error_cost is not None:
        return _by_cost(seen, goal.error_cost, confidence)
    return _by_risk(seen, 0.01 if goal.risk is None else goal.risk, confidence)


def _by_risk(seen: Evidence, risk: float, confidence: float) -> Threshold:
    """The widest threshold that a chain of tests reaches; if there is none, the smallest bound at a few fixed looks."""
    if not 0 < risk < 1:
        raise InputError(f"risk must lie between 0 and 1, got {risk}")
    r, doubt = seen.ranking, 1 - confidence
    least = fewest(risk, doubt)
    if seen.units < least:
        promise = f"even without an error, {risk:.3g} at {confidence:.4g} takes {least} samples"
        return _none(seen, risk, confidence, f"{promise} and there are {r.n}{counting(seen)}")
    row = widest(seen, risk, doubt)
    if row is None:
        first = first_look(seen, risk, doubt)
        wrong = int(r.wrong[first])
        there = "there is 1 error" if wrong == 1 else f"there are {wrong} errors"
        errors = f"{there} among the {int(r.kept[first])} most confident of {r.n}{counting(seen)}"
        return _none(seen, risk, confidence, f"{errors}; {risk:.3g} cannot be promised at {confidence:.4g}")
    return _at(seen, row, risk, confidence)


def _by_coverage(seen: Evidence, coverage: float, confidence: float) -> Threshold:
    """One look, so nothing to pay for; of tied samples all are accepted."""
    if not 0 < coverage <= 1:
        raise InputError(f"coverage must lie between 0 and 1, got {coverage}")
    row = int(np.searchsorted(seen.shares.kept, (coverage - 1e-9) * seen.ranking.n))
    return _at(seen, row, seen.bound(row, 1 - confidence), confidence)


def _by_cost(seen: Evidence, error_cost: float, confidence: float) -> Threshold:
    """Least cost of errors and reviews; the bound holds for all looks at once."""
    if not error_cost > 0:
        raise InputError(f"error_cost must be positive, got {error_cost}")
    r, n = seen.shares, seen.ranking.n
    looks = looks_from(seen.ranking, 1, 1.02)  # few, as here each one takes its share of the doubt
    cost = error_cost * r.wrong[looks] + (n - r.kept[looks])
    best = int(looks[np.argmin(cost)])
    if cost.min() >= n:
        reason = f"at {error_cost:.3g} reviews an error, reviewing everything costs least"
        return Threshold(inf, 0.0, confidence, n, 0, 0, reason)
    return _at(seen, best, seen.bound(best, (1 - confidence) / len(looks)), confidence)


def _at(seen: Evidence, row: int, guaranteed: float, confidence: float) -> Threshold:
    r, weighed = seen.ranking, seen.shares
    counted = Threshold(midway(r, row), guaranteed, confidence, r.n, int(r.kept[row]), int(r.wrong[row]))
    if weighed.weighing is None:
        return counted
    return replace(counted, weighted=(float(weighed.kept[row] / r.n), float(weighed.wrong[row] / weighed.kept[row])))


def _at_a_cell(chosen: Threshold, r: Ranking) -> Threshold:
    """The same at the lowest confidence of the cell that it accepts; between two of these lie samples of the next."""
    instead = None if chosen.instead is None else _at_a_cell(chosen.instead, r)
    above = r.score[r.score >= chosen.value]
    value = float(above[-1]) if 0 < len(above) < len(r.score) else chosen.value
    return replace(chosen, value=value, instead=instead)


def _none(seen: Evidence, risk: float, confidence: float, reason: str) -> Threshold:
    found = safest(seen, 1 - confidence)
    instead = None if found is None else _at(seen, *found, confidence)
    if instead is not None and instead.guaranteed_risk <= risk:  # fixed looks may pass where no chain of tests does
        reason += " by a search for the largest coverage"
    return Threshold(inf, risk, confidence, seen.ranking.n, 0, 0, reason, instead)


def _grouped(held_out: Predictions | Outcomes | Tables | Ranking, by: By) -> Outcomes:
    """Outcomes with the group of each, which may be its predicted class."""
    if isinstance(held_out, Ranking):
        raise InputError("a ranking has no groups; give predictions or outcomes")
    outcomes = _tables(held_out).outcomes
    if by == "class":
        source = held_out.source if isinstance(held_out, Tables) else held_out
        if not isinstance(source, Predictions):
            raise InputError("the predicted class needs predictions of all classes; these are only confidences")
        return replace(outcomes, group=predicted_class(source))
    if outcomes.group is None:
        raise InputError("there is no column of groups")
    return outcomes


def predicted_class(p: Predictions) -> Tags:
    """The name of the class that each row predicts, or its number if the classes have no names."""
    names = p.classes or [str(i) for i in range(p.n_classes)]
    named: Tags = np.asarray(names)[p.values.argmax(1)]
    return named


def _for_each(rows: Outcomes, goal: _Goal, confidence: float) -> GroupThresholds:
    """The doubt is divided among the groups, so that all promises hold together."""
    parts = _parts(rows)
    each = 1 - (1 - confidence) / len(parts)
    chosen = {name: _chosen(evidence_of(part, rows), goal, each) for name, part in parts.items()}
    weight = {name: float(len(p) if p.weights is None else p.weights.sum()) for name, p in parts.items()}
    return GroupThresholds(
        {name: replace(t, map_digest=rows.map_digest) for name, t in chosen.items()},
        confidence,
        {name: own / sum(weight.values()) for name, own in weight.items()},
    )


def _parts(rows: Outcomes) -> dict[str, Outcomes]:
    """The rows of each group, by its name."""
    if rows.group is None:
        return {}
    names, member = np.unique(rows.group, return_inverse=True)
    return {str(name): rows[member == i] for i, name in enumerate(names)}


def _broken(chosen: Threshold, rows: Outcomes) -> tuple[GroupRisk, ...]:
    """Groups with more errors among their accepted samples than the promise allows by chance."""
    accepted = {name: part[part.confidence >= chosen.value] for name, part in _parts(rows).items()}
    seen = {name: evidence_of(part, rows) for name, part in accepted.items() if len(part)}
    p_values = holm([each.excess(chosen.guaranteed_risk) for each in seen.values()])
    found = [
        GroupRisk(name, each.ranking.n, each.ranking.n_wrong, p, float(each.shares.wrong[-1] / each.shares.kept[-1]))
        for (name, each), p in zip(seen.items(), p_values, strict=True)
        if p < LEVEL
    ]
    return tuple(sorted(found, key=lambda risk: risk.p_value))
