"""Which interval, noise floor and paired test belongs to a metric: functions of tables, named by the metric records.

A rule gives its result or says why there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import hypot, inf, sqrt
from typing import TypeVar

import numpy as np

from assay._core.arrays import Floats
from assay.metrics._bins import Bins
from assay.metrics._ranking import Ranking
from assay.metrics._tables import Moments, Tables
from assay.metrics.inference._binned import ece_interval, ece_l2_interval
from assay.metrics.inference._design import Design, design, estimate
from assay.metrics.inference._estimate import Estimate
from assay.metrics.inference._influence import Influence
from assay.metrics.inference._intervals import (
    Interval,
    luck,
    moments_interval,
    moments_of,
    proportion_interval,
    student,
)
from assay.metrics.inference._noise import NoiseFloor, NoiseFloors, design_floors, noise_floors
from assay.metrics.inference._paired import (
    UNSEEN,
    CalibrationPart,
    accuracy_change,
    calibration_difference,
    calibration_estimate,
    calibration_part,
)
from assay.metrics.inference._ranked import MIN_ERRORS, fpr95_interval, risk_interval, share_interval

T = TypeVar("T")

ROUNDING = 1e-12  # of a variance, as a share
MIN_CLUSTERS = 5  # of fewer the spread of clusters says next to nothing
UNKNOWN = "no interval of known coverage for weighted or dependent samples"


@dataclass(frozen=True)
class Withheld:
    """The reason why there is no interval or test."""

    reason: str


@dataclass(frozen=True)
class Change:
    """Interval and test of a paired difference, and the estimate that they come from."""

    interval: Interval
    p_value: float
    estimate: Estimate
    pairs: float = inf  # of a difference of shares, as many independent pairs as tell so much


IntervalRule = Callable[[Tables], Interval | Withheld]
FloorRule = Callable[[Tables], NoiseFloor]
Runs = Sequence[Tables]  # of one method, on the same samples
PairedRule = Callable[[Runs, Runs], Change | Withheld]  # of the mean over runs; noise is that of the samples alone


def too_few(r: Ranking, wrong: str = "error", right: str = "right answer") -> str:
    """The reason why ranking and differences cannot be judged here; empty if they can."""
    for what, count in ((wrong, r.n_wrong), (right, r.n - r.n_wrong)):
        if count < MIN_ERRORS:
            return f"only {_count(count, what)}, at least {MIN_ERRORS} are needed"
    return ""


def too_few_in(t: Tables, wrong: str = "error", right: str = "right answer") -> str:
    """The same of tables; of dependent samples the clusters that have any are counted, and heavy samples count more."""
    d = design(t)
    doubt = too_few(t.ranking, wrong, right)
    if doubt or d is None:
        return doubt
    for what, rows in ((wrong, ~d.rows.correct), (right, d.rows.correct)):
        count = int(d.number(rows))
        if count < MIN_ERRORS:
            clusters = f"only {_count(count, 'cluster')} with any {what}"
            alone = f"only as much as {_count(count, f'{what} of equal weight')}"
            return f"{alone if d.cluster is None else clusters}, at least {MIN_ERRORS} are needed"
    return ""


def too_few_clusters(t: Tables) -> str:
    """The reason why nothing is known about the noise of dependent samples; empty if there are clusters enough."""
    d = design(t)
    few = d is not None and d.cluster is not None and d.n_clusters < MIN_CLUSTERS
    return f"only {_count(d.n_clusters, 'cluster')}, at least {MIN_CLUSTERS} are needed" if d and few else ""


def fewest_in(t: Tables) -> float:
    """Independent samples of the rarer kind, right or wrong."""
    d = design(t)
    return min(t.ranking.n_wrong, t.ranking.n - t.ranking.n_wrong) if d is None else d.rarer


def _count(n: int, what: str) -> str:
    """A number of things.

    >>> _count(1, "error"), _count(3, "row of class 1")
    ('1 error', '3 rows of class 1')
    """
    first, *rest = what.split(" of ")
    return " of ".join([f"{n} {first}{'s' * (n != 1)}", *rest])


def change(estimate: Estimate) -> Change:
    """The interval and the test of an estimated difference."""
    return Change(estimate.interval(), estimate.p_value(), estimate)


# Accuracy and means


def accuracy_rule(t: Tables) -> Interval:
    """The exact interval; of weighted or clustered samples with an effective number (Korn & Graubard 1998)."""
    d, r = design(t), t.ranking
    if d is None:
        return proportion_interval(r.n - r.n_wrong, r.n)
    share, n = d.mean(d.rows.correct.astype(np.float64)), d.samples
    value = min(max(share.value, 0.0), 1.0)  # sums of weights round
    if d.rarer > 0:
        n = min(value * (1 - value) / share.error**2, r.n) if share.error > 0 else r.n
    else:
        value = round(value)
    n *= (student(r.n - 1) / student(share.degrees)) ** 2
    return proportion_interval(value * n, n)


def accuracy_paired(a: Runs, b: Runs) -> Change:
    """McNemar's exact test; of several runs and of weighted or clustered samples Student's."""
    d = design(a[0])
    if d is None and len(a) == 1:
        exact = accuracy_change(a[0].outcomes.correct, b[0].outcomes.correct)
        return Change(exact.estimate.interval(), exact.p_value, exact.estimate, len(a[0].outcomes))
    moved = _mean_over_runs([y.outcomes.correct.astype(np.float64) - x.outcomes.correct for x, y in _pairs(a, b)])
    seen, n = estimate(moved, d), len(moved)
    found = change(replace(seen, error=hypot(seen.error, sqrt(UNSEEN * _unseen_square(moved, d)) / n)))
    return replace(found, pairs=n / max(_unseen_square(moved, d), 1.0))


def _unseen_square(moved: Floats, d: Design | None) -> float:
    """The square that a pair not seen adds, or a cluster: as those that differ have, and one that differs as a whole.

    >>> _unseen_square(np.array([0.0, 1.0, -1.0, 0.0]), None)
    1.0
    """
    if d is None:
        return 1.0
    squares, whole = (d.totals(column) ** 2 for column in (moved, np.ones(len(moved))))
    return float((squares.sum() + whole.mean()) / (np.count_nonzero(squares) + 1))


def _pairs(a: Runs, b: Runs) -> list[tuple[Tables, Tables]]:
    return list(zip(a, b, strict=True))


def _mean_over_runs(columns: list[Floats]) -> Floats:
    return np.asarray(np.mean(columns, axis=0))


def nll_rule(t: Tables) -> Interval | Withheld:
    """NLL has no upper bound, so of few errors nothing is known about the next."""
    r = t.ranking
    if r.score[0] == 1 or r.score[-1] == 0:
        return Withheld("an answer has probability 1: one such error would make it infinite")
    doubt = too_few_in(t)
    if doubt:
        return Withheld(f"an unseen error can cost any amount: {doubt}")
    d = design(t)
    if d is not None:
        return _mean(t, "nll", d, inf)
    return moments_interval(*_losses(t, "nll"), worst=inf, needed=MIN_ERRORS)


def brier_rule(t: Tables) -> Interval | Withheld:
    d = design(t)
    if d is None:
        return moments_interval(*_losses(t, "brier"), worst=2.0)
    doubt = too_few_in(t)
    return Withheld(doubt) if doubt else _mean(t, "brier", d, 2.0)


def _losses(t: Tables, name: str) -> tuple[Moments, Moments]:
    """The losses of right answers and of errors, in short."""
    if t.summary is not None:
        return t.summary.moments(name)
    column, correct = getattr(t.outcomes, name), t.outcomes.correct
    return moments_of(column[correct]), moments_of(column[~correct])


def _mean(t: Tables, name: str, d: Design, most: float) -> Interval:
    """Losses are shown where errors are enough; what is hardly enough may be so by luck, one way or the other."""
    known = None if t.summary is None else t.summary.mean(name)
    found = d.mean(getattr(t.outcomes, name)) if known is None else Estimate(*known, d.degrees)
    fewest = fewest_in(t)
    half = replace(found, degrees=min(found.degrees, fewest - 1)).half() + luck(fewest, MIN_ERRORS) * found.error
    return Interval(max(found.value - half, 0.0), min(found.value + half, most))


def nll_paired(a: Runs, b: Runs) -> Change | Withheld:
    return _mean_change("nll", a, b)


def brier_paired(a: Runs, b: Runs) -> Change | Withheld:
    return _mean_change("brier", a, b)


def _mean_change(name: str, a: Runs, b: Runs) -> Change | Withheld:
    with np.errstate(invalid="ignore"):
        moved = _mean_over_runs([getattr(y.outcomes, name) - getattr(x.outcomes, name) for x, y in _pairs(a, b)])
    return change(estimate(moved, design(a[0]))) if np.isfinite(moved).all() else Withheld("a value is infinite")


# Ranking metrics


def by_influence(
    metric: Callable[[Tables], float],
    influence: Callable[[Ranking], Influence],
    wrong: str = "error",
    right: str = "right answer",
) -> IntervalRule:
    """On the logit scale, with the variance that the influence function gives; `wrong` and `right` name the rows."""

    def rule(t: Tables) -> Interval | Withheld:
        doubt = too_few_in(t, wrong, right)
        if doubt:
            return Withheld(doubt)
        moved, d = influence(t.ranking), design(t)
        if d is None:
            found = share_interval(t.once(metric), moved)
        else:
            column = moved.of(d.rows)
            effect = d.variance(column) / max(moved.variance(), 1e-300)
            if effect < ROUNDING:
                return Withheld("all clusters are alike, so their noise is not seen")
            scatter = d.mean((~d.rows.correct).astype(np.float64)).error
            found = share_interval(
                t.once(metric), moved, effect=effect, fewest=d.rarer, telling=d.telling(column), scatter=scatter
            )
        return found or Withheld("a perfect ranking: no interval")

    return rule


def paired_by_influence(
    metric: Callable[[Tables], float],
    influence: Callable[[Ranking], Influence],
    wrong: str = "error",
    right: str = "right answer",
) -> PairedRule:
    """The difference, with the variance of the difference of the influences sample by sample."""

    def rule(a: Runs, b: Runs) -> Change | Withheld:
        doubt = next(filter(None, (too_few_in(t, wrong, right) for t in (*a, *b))), "")
        if doubt:
            return Withheld(doubt)
        pairs = _pairs(a, b)
        moved = [influence(y.ranking).of(y.outcomes) - influence(x.ranking).of(x.outcomes) for x, y in pairs]
        value = float(np.mean([y.once(metric) - x.once(metric) for x, y in pairs]))
        error = estimate(_mean_over_runs(moved), design(a[0])).error
        return change(Estimate(value, error, min(fewest_in(t) for t in (*a, *b)) - 1))

    return rule


def fpr95_rule(t: Tables) -> Interval | Withheld:
    doubt = too_few(t.ranking) if design(t) is None else UNKNOWN
    return Withheld(doubt) if doubt else fpr95_interval(t.ranking)


def risk_rule(coverage: float) -> IntervalRule:
    def rule(t: Tables) -> Interval:
        d = design(t)
        if d is None:
            return risk_interval(t.ranking, coverage)
        wrong = (~d.rows.correct).astype(np.float64)
        return risk_interval(t.ranking, coverage, d.effect(wrong) * float(d.squares.sum()) / d.n)

    return rule


# Binned errors


def floors(t: Tables) -> NoiseFloors:
    """The noise floors of these tables, drawn once."""
    return t.once(_floors)


def _floors(t: Tables) -> NoiseFloors:
    d = design(t)
    if d is not None:
        return design_floors(t.ranking, d, draws=t.draws, seed=t.seed)
    return noise_floors(t.ranking, draws=t.draws, seed=t.seed)


def ece_floor(t: Tables) -> NoiseFloor:
    return floors(t).ece


def ada_ece_floor(t: Tables) -> NoiseFloor:
    return floors(t).ada_ece


def l2_floor(t: Tables) -> NoiseFloor:
    return floors(t).ece_l2_mass


def ece_rule(t: Tables) -> Interval:
    return ece_interval(_effective(t, t.width), ece_floor(t))


def ada_ece_rule(t: Tables) -> Interval:
    return ece_interval(_effective(t, t.mass), ada_ece_floor(t))


def _effective(t: Tables, bins: Bins) -> Bins:
    """Bins with as many samples as are independent."""
    d = design(t)
    if d is None:
        return bins
    return replace(bins, effective=bins.samples / d.effect(d.rows.confidence - d.rows.correct))


def l2_rule(t: Tables) -> Interval | Withheld:
    doubt = too_few_in(t) or ("this interval needs the rows, not their summary" if t.summary is not None else "")
    if doubt:
        return Withheld(doubt)
    return ece_l2_interval(_effective(t, t.mass), l2_floor(t), calibration_estimate(_part(t)))


# The calibration part of the Brier score, the one calibration error whose difference has a test of known level


def calibration_square(t: Tables) -> float:
    """Unbiased calibration part of the top-label Brier score."""
    return calibration_estimate(_part(t)).value


def calibration_paired(a: Runs, b: Runs) -> Change | Withheld:
    doubt = next(filter(None, map(too_few_in, (*a, *b))), "")
    return Withheld(doubt) if doubt else change(calibration_difference([*map(_part, a)], [*map(_part, b)]))


def positive_paired(a: Runs, b: Runs) -> Change | Withheld:
    """The same of the probability of class 1; all have the same labels, so one of them tells whether these suffice."""
    doubt = too_few_in(a[0].positive, "negative", "positive")
    if doubt:
        return Withheld(doubt)
    return change(calibration_difference([_part(x.positive) for x in a], [_part(y.positive) for y in b]))


def _part(t: Tables) -> CalibrationPart:
    return t.once(_calibration_part)


def _calibration_part(t: Tables) -> CalibrationPart:
    return calibration_part(t.outcomes, t.ranking, design=design(t))


def of_positive(rule: Callable[[Tables], T]) -> Callable[[Tables], T]:
    """The same rule for the probability of class 1."""
    return lambda t: rule(t.positive)


def of_both_positives(rule: PairedRule) -> PairedRule:
    """The same test of the probabilities of class 1."""
    return lambda a, b: rule([x.positive for x in a], [y.positive for y in b])
