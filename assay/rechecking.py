"""Does a threshold still keep its promise on new rows, has the confidence drifted, is it time to recalibrate?"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from math import ceil, nan

import numpy as np

from assay._core.arrays import InputError
from assay.calibrators import cross_applied, cross_validated, platt, temperature
from assay.comparing import Difference, compare
from assay.metrics import Tables
from assay.metrics.inference import design_of, fisher, student, too_few_clusters
from assay.predictions import Outcomes, Predictions
from assay.thresholds import PositiveThreshold, Threshold, decided_by, evidence_of, promised_rows, refuse_other_rows

LEVEL = 0.05  # chance of a false alarm, of each question
LEAST = 1e-5  # the smallest risk for which every number of rows is tried
POWER = 0.8  # with which a doubled risk is noticed on `needed` rows
FOLDS = 5  # of the refit; it needs twice as many rows


@dataclass(frozen=True)
class Drift:
    """How the confidence of new rows compares with that of the rows a threshold was chosen on; needs no labels.

    Of a threshold of class 1 the confidence is the probability of class 1, and accepted are the rows answered 1.
    """

    n: int
    accepted: int
    before: Threshold | PositiveThreshold
    p_value: float  # chance of such a change in the share accepted if nothing changed, two-sided
    mean_confidence: float | None  # none of a mere score
    unknown: str = ""  # why it cannot be told whether the share has changed

    @property
    def coverage(self) -> float:
        """Share of the new rows accepted."""
        return self.accepted / self.n

    @property
    def found(self) -> bool:
        return self.p_value < LEVEL

    def __str__(self) -> str:
        top = isinstance(self.before, Threshold)
        what, done = ("confidence", "accepted") if top else ("probability of class 1", "answered 1")
        shares = f"{self.coverage:.1%} of {self.n:,} inputs {done}, {self.before.coverage:.1%} when it was chosen"
        if self.unknown:
            return f"Whether the {what} has drifted cannot be told: {self.unknown}; {shares}."
        word = f"The {what} has drifted" if self.found else f"No sign of drift in the {what}"
        return f"{word}: {shares} (p = {self.p_value:.2g})."

    @property
    def expected_accuracy(self) -> str:
        """What the confidence claims, the accuracy or the share of class 1, and when it may be believed."""
        if self.mean_confidence is None:
            return "A score that is no probability gives no estimate of the accuracy."
        top = isinstance(self.before, Threshold)
        of, what = ("confidence", "the accuracy") if top else ("probability", "the share of class 1")
        claim = f"The mean {of} of {self.mean_confidence:.1%} estimates {what} only without shift"
        return f"{claim}: after a shift it can be wrong by many points, so label some rows."


@dataclass(frozen=True)
class Recheck:
    """What `recheck` found; `print` it for the verdict in words."""

    drift: Drift
    judged: int  # rows that the promise is about: the accepted ones, or of a recall those of class 1
    wrong: int  # errors among them, or rows that are missed
    bound: float  # upper bound of their share, at the confidence of the promise
    p_value: float  # chance of so many errors if the promise held
    needed: int  # rows on which a risk of twice the promise is noticed four times in five
    refit: Difference  # calibration part of these rows, and of the same rows after a new fit in cross-validation

    @property
    def promise(self) -> str:
        """`broken`, `shown to hold` or `not refuted`."""
        if self.p_value < LEVEL:
            return "broken"
        return "shown to hold" if self.bound <= self.drift.before.guaranteed_risk else "not refuted"

    @property
    def recalibrate(self) -> bool:
        """Whether a map refitted on these rows is significantly better calibrated."""
        return self.refit.p_value is not None and self.refit.p_value < LEVEL and self.refit.value < 0

    def __str__(self) -> str:
        return "\n".join([_promise_in_words(self), str(self.drift), _refit_in_words(self)])


def recheck(new: Predictions | Outcomes, threshold: Threshold | PositiveThreshold) -> Recheck:
    """Hold new labelled rows against a threshold that was chosen on others; a map must be applied to both before.

    The promise is tested by the exact binomial test against the promised risk, or by a bet where rows have clusters.
    The confidence has drifted if the share of accepted rows has changed (Fisher's test; rows in clusters count as few
    as vary so much, old ones too; of fewer than five clusters it cannot be told). It is time to recalibrate if
    temperature scaling of these rows, or Platt scaling of bare confidences, makes them significantly better calibrated
    in cross-validation. Each of the three raises a false alarm at most one time in twenty.

    >>> import assay.examples
    >>> from assay.thresholds import choose_threshold
    >>> rows = assay.examples.load()
    >>> print(recheck(rows[5000:], choose_threshold(rows[:5000], risk=0.1)))
    The promise is not refuted: 10.33% errors among 3,156 accepted, at most 10.00% promised (p = 0.28).
    No sign of drift in the confidence: 63.1% of 5,000 inputs accepted, 62.6% when it was chosen (p = 0.6).
    Recalibrate: a refitted map lowers the calibration part of the Brier score from 0.03880 to 0.00013 (p = 1.5e-44).
    """
    _refuse_weights(new)
    refuse_other_rows(new, threshold)
    rows, decided = promised_rows(new, threshold), decided_by(new, threshold)
    drift = confidence_drift(decided, threshold)
    judged, wrong, risk = len(rows), int((~rows.correct).sum()), threshold.guaranteed_risk
    seen = evidence_of(rows, decided) if judged else None
    return Recheck(
        drift,
        judged,
        wrong,
        seen.bound(len(seen.ranking.score), 1 - threshold.confidence) if seen else 1.0,
        seen.excess(risk) if seen and risk < 1 else 1.0,
        ceil(accepted_needed(risk) * _alike(decided, threshold) / _share_judged(threshold)),
        _refit(new) if isinstance(threshold, Threshold) else _refit_of_class_1(new),
    )


def _refuse_weights(rows: Predictions | Outcomes) -> None:
    if rows.weights is not None and (rows.weights != rows.weights[:1]).any():
        raise InputError(
            "no test is known for a promise on weighted rows; choose a threshold anew, on these rows with their weights"
        )


def _alike(rows: Outcomes, threshold: Threshold | PositiveThreshold) -> float:
    """How many dependent rows tell as much of the share accepted as one independent one; at least 1.

    Few clusters tell their own spread badly: Student's law makes of them as many fewer.
    """
    accepted = rows.confidence >= threshold.value
    d = design_of(replace(rows, correct=accepted, weights=None))
    if d is None:
        return 1.0
    fewer = student(d.degrees) / student(d.n - 1)
    return d.effect(accepted.astype(np.float64)) * fewer**2


def _share_judged(threshold: Threshold | PositiveThreshold) -> float:
    """Share of all rows that the promise is about."""
    if isinstance(threshold, PositiveThreshold) and threshold.goal == "recall":
        return threshold.positives / threshold.n
    return threshold.coverage


def confidence_drift(rows: Outcomes, threshold: Threshold | PositiveThreshold) -> Drift:
    """Compare the share of rows that a threshold accepts with the share it accepted when chosen.

    Of a threshold of class 1 their confidence is the probability of class 1. Whether they are right is not looked at.
    """
    _refuse_weights(rows)
    if not threshold.accepted:
        raise InputError("the threshold accepts nothing, so there is no promise to check")
    if threshold.weighted is not None:
        raise InputError("the threshold was chosen on weighted rows, to whose share accepted no exact test applies")
    n, accepted = len(rows), int((rows.confidence >= threshold.value).sum())
    if not n:
        raise InputError("there are no rows to check")
    mean = float(np.mean(rows.confidence)) if rows.is_probability else None
    few = too_few_clusters(Tables(rows))
    if few:
        return Drift(n, accepted, threshold, nan, mean, few)
    counts, alike = (
        (accepted, n - accepted, threshold.accepted, threshold.n - threshold.accepted),
        _alike(rows, threshold),
    )
    taken, left, taken_before, left_before = (round(count / alike) for count in counts)
    more = fisher(taken, taken + left, taken_before, taken_before + left_before)
    fewer = fisher(left, taken + left, left_before, taken_before + left_before)
    return Drift(n, accepted, threshold, min(1.0, 2 * min(more, fewer)), mean)


def accepted_needed(risk: float) -> int:
    """Accepted rows on which the test of a promised risk notices twice that risk with probability .8.

    >>> accepted_needed(0.01), accepted_needed(0.05)
    (1015, 191)
    """
    from scipy.special import bdtrc, bdtrik

    if risk < LEAST:  # errors are then as good as Poisson: so many times as many rows
        return ceil(accepted_needed(LEAST) * LEAST / risk)
    doubled = min(2 * risk, (1 + risk) / 2)
    sizes = np.arange(1, ceil(20 / risk) + 1)
    most = np.ceil(bdtrik(1 - LEVEL, sizes, risk))  # errors that do not yet refute the promise
    # The power rises in a sawtooth: take the size from which on it is never too low.
    missed = np.flatnonzero(bdtrc(np.minimum(most, sizes), sizes, doubled) < POWER)
    return int(sizes[min(missed[-1] + 1, len(sizes) - 1)]) if len(missed) else 1


def _refit(new: Predictions | Outcomes) -> Difference:
    """The calibration part before and after a new fit."""
    outcomes = new.outcomes()
    if not outcomes.is_probability:
        return Difference(np.nan, np.nan, note="a score that is no probability has no calibration")
    if len(new) < 2 * FOLDS:
        return Difference(np.nan, np.nan, note=f"only {len(new)} rows")
    try:
        fitted = cross_validated(new, temperature if isinstance(new, Predictions) else platt, folds=FOLDS)
    except InputError as problem:
        return _not_fitted(problem)
    return compare(outcomes, fitted)["calibration_part"]


def _refit_of_class_1(new: Predictions | Outcomes) -> Difference:
    """The calibration part of class 1 before and after a new fit."""
    if not isinstance(new, Predictions) or len(new) < 2 * FOLDS:
        return Difference(np.nan, np.nan, note=f"only {len(new)} rows")
    try:
        return compare(new, cross_applied(new, temperature, folds=FOLDS))["part_positive"]
    except InputError as problem:
        return _not_fitted(problem)


def _not_fitted(problem: InputError) -> Difference:
    """Why there is no new fit, without the number of a row, which is that of a fold."""
    return Difference(np.nan, np.nan, note=re.sub(r"^row \d+: ", "", str(problem)))


def _promise_in_words(found: Recheck) -> str:
    before, n = found.drift.before, found.judged
    if isinstance(before, Threshold):
        seen = f"{found.wrong / n:.2%} errors among {n:,} accepted" if n else "nothing is accepted"
        promised = f"at most {before.guaranteed_risk:.2%} promised"
    else:
        of = "answered 1" if before.goal == "precision" else "of class 1"
        seen = f"{before.goal} {1 - found.wrong / n:.2%} on {n:,} rows {of}" if n else f"no row is {of}"
        promised = f"at least {before.promised:.2%} promised"
    words = f"The promise is {found.promise}: {seen}, {promised}"
    few = f"; to notice twice that takes {found.needed:,} rows" if found.drift.n < found.needed else ""
    return f"{words} (p = {found.p_value:.2g}){few if found.promise == 'not refuted' else ''}."


def _refit_in_words(found: Recheck) -> str:
    refit = found.refit
    if refit.p_value is None:
        return f"Whether to recalibrate cannot be told: {refit.note}."
    if found.recalibrate:
        change = f"from {refit.a:.5f} to {refit.b:.5f} (p = {refit.p_value:.2g})"
        return f"Recalibrate: a refitted map lowers the calibration part of the Brier score {change}."
    return "No reason to recalibrate: a refitted map is not significantly better calibrated."
