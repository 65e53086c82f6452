"""Which interval, noise floor and paired test belongs to a metric: functions of tables, named by the metric records.

A rule gives its result or says why there is none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import TypeVar

import numpy as np

from assay._core.arrays import Floats
from assay.metrics._ranking import Ranking
from assay.metrics._tables import Moments, Tables
from assay.metrics.inference._binned import ece_interval, ece_l2_interval
from assay.metrics.inference._estimate import Estimate, mean_estimate
from assay.metrics.inference._influence import Influence
from assay.metrics.inference._intervals import Interval, moments_interval, moments_of, proportion_interval
from assay.metrics.inference._noise import NoiseFloor, NoiseFloors, noise_floors
from assay.metrics.inference._paired import (
    CalibrationPart,
    accuracy_change,
    calibration_difference,
    calibration_estimate,
    calibration_part,
)
from assay.metrics.inference._ranked import MIN_ERRORS, fpr95_interval, risk_interval, share_interval

T = TypeVar("T")


@dataclass(frozen=True)
class Withheld:
    """The reason why there is no interval or test."""

    reason: str


@dataclass(frozen=True)
class Change:
    """Interval and test of a paired difference."""

    interval: Interval
    p_value: float


IntervalRule = Callable[[Tables], Interval | Withheld]
FloorRule = Callable[[Tables], NoiseFloor]
PairedRule = Callable[[Tables, Tables], Change | Withheld]


def too_few(r: Ranking, wrong: str = "error", right: str = "right answer") -> str:
    """The reason why ranking and differences cannot be judged here; empty if they can."""
    for what, count in ((wrong, r.n_wrong), (right, r.n - r.n_wrong)):
        if count < MIN_ERRORS:
            return f"only {_count(count, what)}, at least {MIN_ERRORS} are needed"
    return ""


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'s' * (n != 1)}"


def change(estimate: Estimate) -> Change:
    """The interval and the test of an estimated difference."""
    return Change(estimate.interval(), estimate.p_value())


# Accuracy and means


def accuracy_rule(t: Tables) -> Interval:
    """The exact interval."""
    return proportion_interval(t.ranking.n - t.ranking.n_wrong, t.ranking.n)


def accuracy_paired(a: Tables, b: Tables) -> Change:
    """McNemar's exact test."""
    found = accuracy_change(a.outcomes.correct, b.outcomes.correct)
    return Change(found.interval, found.p_value)


def nll_rule(t: Tables) -> Interval | Withheld:
    """NLL has no upper bound, so of few errors nothing is known about the next."""
    r = t.ranking
    if r.score[0] == 1 or r.score[-1] == 0:
        return Withheld("an answer has probability 1: one such error would make it infinite")
    doubt = too_few(r)
    if doubt:
        return Withheld(f"an unseen error can cost any amount: {doubt}")
    return moments_interval(*_losses(t, "nll"), worst=inf, needed=MIN_ERRORS)


def brier_rule(t: Tables) -> Interval:
    return moments_interval(*_losses(t, "brier"), worst=2.0)


def _losses(t: Tables, name: str) -> tuple[Moments, Moments]:
    """The losses of right answers and of errors, in short."""
    known = None if t.summary is None else t.summary.moments(name)
    if known is not None:
        return known
    column, correct = getattr(t.outcomes, name), t.outcomes.correct
    return moments_of(column[correct]), moments_of(column[~correct])


def nll_paired(a: Tables, b: Tables) -> Change | Withheld:
    return _mean_change(a.outcomes.nll, b.outcomes.nll)


def brier_paired(a: Tables, b: Tables) -> Change | Withheld:
    return _mean_change(a.outcomes.brier, b.outcomes.brier)


def _mean_change(a: Floats | None, b: Floats | None) -> Change | Withheld:
    with np.errstate(invalid="ignore"):
        difference = None if a is None or b is None else b - a
    if difference is None or not np.isfinite(difference).all():
        return Withheld("a value is infinite")
    return change(mean_estimate(difference))


# Ranking metrics


def by_influence(metric: Callable[[Tables], float], influence: Callable[[Ranking], Influence]) -> IntervalRule:
    """On the logit scale, with the variance that the influence function gives."""

    def rule(t: Tables) -> Interval | Withheld:
        doubt = too_few(t.ranking)
        found = None if doubt else share_interval(t.once(metric), influence(t.ranking))
        return found or Withheld(doubt or "a perfect ranking: no interval")

    return rule


def paired_by_influence(metric: Callable[[Tables], float], influence: Callable[[Ranking], Influence]) -> PairedRule:
    """The difference, with the variance of the difference of the influences sample by sample."""

    def rule(a: Tables, b: Tables) -> Change | Withheld:
        doubt = too_few(a.ranking) or too_few(b.ranking)
        if doubt:
            return Withheld(doubt)
        moved = influence(b.ranking).of(b.outcomes) - influence(a.ranking).of(a.outcomes)
        degrees = min(count for r in (a.ranking, b.ranking) for count in (r.n_wrong, r.n - r.n_wrong)) - 1
        return change(Estimate(b.once(metric) - a.once(metric), mean_estimate(moved).error, degrees))

    return rule


def fpr95_rule(t: Tables) -> Interval | Withheld:
    doubt = too_few(t.ranking)
    return Withheld(doubt) if doubt else fpr95_interval(t.ranking)


def risk_rule(coverage: float) -> IntervalRule:
    return lambda t: risk_interval(t.ranking, coverage)


# Binned errors


def floors(t: Tables) -> NoiseFloors:
    """The noise floors of these tables, drawn once."""
    return t.once(_floors)


def _floors(t: Tables) -> NoiseFloors:
    return noise_floors(t.ranking, draws=t.draws, seed=t.seed)


def ece_floor(t: Tables) -> NoiseFloor:
    return floors(t).ece


def ada_ece_floor(t: Tables) -> NoiseFloor:
    return floors(t).ada_ece


def l2_floor(t: Tables) -> NoiseFloor:
    return floors(t).ece_l2_mass


def ece_rule(t: Tables) -> Interval:
    return ece_interval(t.width, ece_floor(t))


def ada_ece_rule(t: Tables) -> Interval:
    return ece_interval(t.mass, ada_ece_floor(t))


def l2_rule(t: Tables) -> Interval | Withheld:
    doubt = too_few(t.ranking) or ("this interval needs the rows, not their summary" if t.summary is not None else "")
    return Withheld(doubt) if doubt else ece_l2_interval(t.mass, l2_floor(t), calibration_estimate(_part(t)))


# The calibration part of the Brier score, the one calibration error whose difference has a test of known level


def calibration_square(t: Tables) -> float:
    """Unbiased calibration part of the top-label Brier score."""
    return calibration_estimate(_part(t)).value


def calibration_paired(a: Tables, b: Tables) -> Change | Withheld:
    doubt = too_few(a.ranking) or too_few(b.ranking)
    return Withheld(doubt) if doubt else change(calibration_difference(_part(a), _part(b)))


def positive_paired(a: Tables, b: Tables) -> Change | Withheld:
    """The same of the probability of class 1; both have the same labels, so one of them tells whether these suffice."""
    doubt = too_few(a.positive.ranking, "negative", "positive")
    return Withheld(doubt) if doubt else change(calibration_difference(_part(a.positive), _part(b.positive)))


def _part(t: Tables) -> CalibrationPart:
    return t.once(_calibration_part)


def _calibration_part(t: Tables) -> CalibrationPart:
    return calibration_part(t.outcomes, t.ranking)


def of_positive(rule: Callable[[Tables], T]) -> Callable[[Tables], T]:
    """The same rule for the probability of class 1."""
    return lambda t: rule(t.positive)
