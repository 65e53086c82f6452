"""Does a threshold still keep its promise on new rows, has the confidence drifted, is it time to recalibrate?"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np

from assay._core.arrays import Floats, InputError
from assay.calibrators import cross_validated, platt, temperature
from assay.comparing import Difference, compare
from assay.metrics.inference import fisher
from assay.predictions import Outcomes, Predictions
from assay.thresholds import Threshold, risk_bound

LEVEL = 0.05  # chance of a false alarm, of each question
LEAST = 1e-5  # the smallest risk for which every number of rows is tried
POWER = 0.8  # with which a doubled risk is noticed on `needed` rows
FOLDS = 5  # of the refit; it needs twice as many rows


@dataclass(frozen=True)
class Drift:
    """How the confidence of new rows compares with that of the rows a threshold was chosen on; needs no labels."""

    n: int
    accepted: int
    before: Threshold
    p_value: float  # chance of such a change in the share accepted if nothing changed, two-sided
    mean_confidence: float | None  # none of a mere score

    @property
    def coverage(self) -> float:
        """Share of the new rows accepted."""
        return self.accepted / self.n

    @property
    def found(self) -> bool:
        return self.p_value < LEVEL

    def __str__(self) -> str:
        word = "The confidence has drifted" if self.found else "No sign of drift in the confidence"
        shares = f"{self.coverage:.1%} of {self.n:,} inputs accepted, {self.before.coverage:.1%} when it was chosen"
        return f"{word}: {shares} (p = {self.p_value:.2g})."

    @property
    def expected_accuracy(self) -> str:
        """The accuracy that the confidence claims, with the condition under which it may be believed."""
        if self.mean_confidence is None:
            return "A score that is no probability gives no estimate of the accuracy."
        claim = f"The mean confidence of {self.mean_confidence:.1%} estimates the accuracy only without shift"
        return f"{claim}: after a shift it can be wrong by many points, so label some rows."


@dataclass(frozen=True)
class Recheck:
    """What `recheck` found; `print` it for the verdict in words."""

    drift: Drift
    wrong: int  # errors among the accepted rows
    bound: float  # upper bound of the risk of accepted inputs, at the confidence of the promise
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


def recheck(new: Predictions | Outcomes, threshold: Threshold) -> Recheck:
    """Hold new labelled rows against a threshold that was chosen on others; a map must be applied to both before.

    The promise is tested by the exact binomial test against the promised risk. The confidence has drifted if the share
    of accepted rows has changed (Fisher's test). It is time to recalibrate if temperature scaling of these rows, or
    Platt scaling of bare confidences, makes them significantly better calibrated in cross-validation. Each of the three
    raises a false alarm at most one time in twenty.

    >>> import assay.examples
    >>> from assay.thresholds import choose_threshold
    >>> rows = assay.examples.load()
    >>> print(recheck(rows[5000:], choose_threshold(rows[:5000], risk=0.1)))
    The promise is not refuted: 10.29% errors among 3,150 accepted, at most 10.00% promised (p = 0.3).
    No sign of drift in the confidence: 63.0% of 5,000 inputs accepted, 62.5% when it was chosen (p = 0.61).
    Recalibrate: a refitted map lowers the calibration part of the Brier score from 0.03880 to 0.00013 (p = 1.5e-44).
    """
    from scipy.special import bdtrc

    if new.weights is not None or new.cluster is not None:
        raise InputError("the exact test of a promise knows no weights or clusters; leave these columns out")
    outcomes = new.outcomes()
    drift = confidence_drift(outcomes.confidence, threshold, is_probability=outcomes.is_probability)
    wrong = int((~outcomes.correct & (outcomes.confidence >= threshold.value)).sum())
    risk = threshold.guaranteed_risk
    return Recheck(
        drift,
        wrong,
        float(risk_bound(wrong, drift.accepted, threshold.confidence)) if drift.accepted else 1.0,
        float(bdtrc(wrong - 1, drift.accepted, risk)) if wrong else 1.0,
        ceil(accepted_needed(risk) / threshold.coverage),
        _refit(new, outcomes),
    )


def confidence_drift(confidence: Floats, threshold: Threshold, *, is_probability: bool = True) -> Drift:
    """Compare the share of these confidences [n] that a threshold accepts with the share it accepted when chosen."""
    if not threshold.accepted:
        raise InputError("the threshold accepts nothing, so there is no promise to check")
    if threshold.weighted is not None:
        raise InputError("the threshold was chosen on weighted rows, to whose share accepted no exact test applies")
    n, accepted = len(confidence), int((confidence >= threshold.value).sum())
    if not n:
        raise InputError("there are no rows to check")
    more = fisher(accepted, n, threshold.accepted, threshold.n)
    fewer = fisher(n - accepted, n, threshold.n - threshold.accepted, threshold.n)
    mean = float(np.mean(confidence)) if is_probability else None
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


def _refit(new: Predictions | Outcomes, outcomes: Outcomes) -> Difference:
    """The calibration part before and after a new fit."""
    if not outcomes.is_probability:
        return Difference(np.nan, np.nan, note="a score that is no probability has no calibration")
    if len(new) < 2 * FOLDS:
        return Difference(np.nan, np.nan, note=f"only {len(new)} rows")
    fitted = cross_validated(new, temperature if isinstance(new, Predictions) else platt, folds=FOLDS)
    return compare(outcomes, fitted)["calibration_part"]


def _promise_in_words(found: Recheck) -> str:
    before, accepted = found.drift.before, found.drift.accepted
    seen = f"{found.wrong / accepted:.2%} errors among {accepted:,} accepted" if accepted else "nothing is accepted"
    words = f"The promise is {found.promise}: {seen}, at most {before.guaranteed_risk:.2%} promised"
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
