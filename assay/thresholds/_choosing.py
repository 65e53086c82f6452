"""Selective classification for deep neural networks (Geifman & El-Yaniv, NeurIPS 2017): answer when sure enough.

Which threshold keeps a promise about the errors among the accepted answers.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Literal, NamedTuple, overload

import numpy as np

from assay import metrics
from assay._core.arrays import InputError, Tags
from assay.metrics import Rankable, Ranking, Tables
from assay.metrics.inference import holm
from assay.predictions import Outcomes, Predictions
from assay.thresholds._records import GroupRisk, GroupThresholds, Threshold
from assay.thresholds._search import fewest, looks_from, midway, risk_bound, safest, widest

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
    one of least cost where an accepted error costs `error_cost` times a review. Bounds are exact binomial ones, and
    looking at several thresholds is paid for. They hold for samples drawn like the held-out set, under a map that was
    fitted on others.

    `by="group"` chooses one for each group of the predictions, and `by="class"` one for each predicted class, so that
    all promises hold together. Without it, groups whose risk is higher than promised are in `broken`.

    >>> import assay.examples
    >>> t = choose_threshold(assay.examples.load(split="held_out"), risk=0.1)
    >>> print(t)
    accept above 0.9804: at most 10.00% errors on 62.2% of inputs at 95% confidence, 8.98% seen; 37.8% left for review
    """
    if not 0 < confidence < 1:
        raise InputError(f"confidence must lie between 0 and 1, got {confidence}")
    if sum(way is not None for way in (risk, coverage, error_cost)) > 1:
        raise InputError("give only one of risk, coverage and error_cost")
    rows = held_out.source if isinstance(held_out, Tables) else held_out
    if getattr(rows, "weights", None) is not None or getattr(rows, "cluster", None) is not None:
        raise InputError("a promise about errors knows no weights or clusters yet; leave these columns out")
    goal = _Goal(risk, coverage, error_cost)
    if not isinstance(held_out, Predictions | Outcomes | Tables | Ranking):
        if by is not None:
            raise InputError("a summary has no groups; give predictions or outcomes")
        return _at_a_cell(_chosen(held_out.thresholds, goal, confidence), held_out.thresholds)
    if by is not None:
        return _for_each(_grouped(held_out, by), goal, confidence)
    chosen = _chosen(metrics.ranking(held_out), goal, confidence)
    outcomes = None if isinstance(held_out, Ranking) else _outcomes(held_out)
    if outcomes is None:
        return chosen
    return replace(chosen, broken=_broken(chosen, outcomes), map_digest=outcomes.map_digest)


class _Goal(NamedTuple):
    """What is wanted: one of these."""

    risk: float | None
    coverage: float | None
    error_cost: float | None


def _chosen(r: Ranking, goal: _Goal, confidence: float) -> Threshold:
    if goal.coverage is not None:
        return _by_coverage(r, goal.coverage, confidence)
    if goal.error_cost is not None:
        return _by_cost(r, goal.error_cost, confidence)
    return _by_risk(r, 0.01 if goal.risk is None else goal.risk, confidence)


def _by_risk(r: Ranking, risk: float, confidence: float) -> Threshold:
    """The widest threshold that a chain of tests reaches; if there is none, the smallest risk that can be promised."""
    if not 0 < risk < 1:
        raise InputError(f"risk must lie between 0 and 1, got {risk}")
    doubt = 1 - confidence
    least = fewest(risk, doubt)
    if r.n < least:
        promise = f"even without an error, {risk:.3g} at {confidence:.4g} takes {least} samples"
        return _none(r, risk, confidence, f"{promise} and there are {r.n}")
    row = widest(r, risk, doubt)
    if row is None:
        first = int(np.searchsorted(r.kept, least))
        seen = f"there are {int(r.wrong[first])} errors among the {int(r.kept[first])} most confident"
        return _none(r, risk, confidence, f"{seen}; {risk:.3g} cannot be promised at {confidence:.4g}")
    return _at(r, row, risk, confidence)


def _by_coverage(r: Ranking, coverage: float, confidence: float) -> Threshold:
    """One look, so nothing to pay for; of tied samples all are accepted."""
    if not 0 < coverage <= 1:
        raise InputError(f"coverage must lie between 0 and 1, got {coverage}")
    row = int(np.searchsorted(r.kept, coverage * r.n - 1e-9))
    return _at(r, row, float(risk_bound(r.wrong[row], r.kept[row], confidence)), confidence)


def _by_cost(r: Ranking, error_cost: float, confidence: float) -> Threshold:
    """Least cost of errors and reviews; the bound holds for all looks at once."""
    if not error_cost > 0:
        raise InputError(f"error_cost must be positive, got {error_cost}")
    looks = looks_from(r, 1, 1.02)  # few, as here each one takes its share of the doubt
    cost = error_cost * r.wrong[looks] + (r.n - r.kept[looks])
    best = int(looks[np.argmin(cost)])
    if cost.min() >= r.n:
        reason = f"at {error_cost:.3g} reviews an error, reviewing everything costs least"
        return Threshold(inf, 0.0, confidence, r.n, 0, 0, reason)
    doubt = (1 - confidence) / len(looks)
    return _at(r, best, float(risk_bound(r.wrong[best], r.kept[best], 1 - doubt)), confidence)


def _at(r: Ranking, row: int, guaranteed: float, confidence: float) -> Threshold:
    return Threshold(midway(r, row), guaranteed, confidence, r.n, int(r.kept[row]), int(r.wrong[row]))


def _at_a_cell(chosen: Threshold, r: Ranking) -> Threshold:
    """The same at the lowest confidence of the cell that it accepts; between two of these lie samples of the next."""
    instead = None if chosen.instead is None else _at_a_cell(chosen.instead, r)
    above = r.score[r.score >= chosen.value]
    value = float(above[-1]) if 0 < len(above) < len(r.score) else chosen.value
    return replace(chosen, value=value, instead=instead)


def _none(r: Ranking, risk: float, confidence: float, reason: str) -> Threshold:
    found = safest(r, risk, 1 - confidence)
    instead = None if found is None else _at(r, *found, confidence)
    return Threshold(inf, risk, confidence, r.n, 0, 0, reason, instead)


def _outcomes(held_out: Predictions | Outcomes | Tables) -> Outcomes:
    return held_out.outcomes if isinstance(held_out, Tables) else held_out.outcomes()


def _grouped(held_out: Predictions | Outcomes | Tables | Ranking, by: By) -> Outcomes:
    """Outcomes with the group of each, which may be its predicted class."""
    if isinstance(held_out, Ranking):
        raise InputError("a ranking has no groups; give predictions or outcomes")
    outcomes = _outcomes(held_out)
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
    return GroupThresholds(
        {
            name: replace(_chosen(metrics.ranking(part), goal, each), map_digest=rows.map_digest)
            for name, part in parts.items()
        },
        confidence,
    )


def _parts(rows: Outcomes) -> dict[str, Outcomes]:
    """The rows of each group, by its name."""
    if rows.group is None:
        return {}
    names, member = np.unique(rows.group, return_inverse=True)
    return {str(name): rows[member == i] for i, name in enumerate(names)}


def _broken(chosen: Threshold, rows: Outcomes) -> tuple[GroupRisk, ...]:
    """Groups with more errors among their accepted samples than the promise allows by chance."""
    from scipy.special import bdtrc

    accepted = {name: part[part.confidence >= chosen.value] for name, part in _parts(rows).items()}
    counts = [(name, len(part), int((~part.correct).sum())) for name, part in accepted.items() if len(part)]
    p_values = holm([float(bdtrc(wrong - 1, n, chosen.guaranteed_risk)) if wrong else 1.0 for _, n, wrong in counts])
    found = [GroupRisk(*count, p) for count, p in zip(counts, p_values, strict=True) if p < LEVEL]
    return tuple(sorted(found, key=lambda risk: risk.p_value))
