"""Calibrators of the confidence in the predicted class: bins, curves and logistic regressions of the correctness."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from math import nan
from typing import TypeVar

import numpy as np

from assay import metrics
from assay._core.arrays import Floats, InputError, Mask, log
from assay.calibrators._weights import mean, weights_of
from assay.maps import CLIP, ConfidenceMap, Curve, Fit, Logistic, ScoreLogistic, Steps
from assay.metrics import Bins, Ranking
from assay.predictions import Outcomes, Predictions

POINTS = 1000  # of the curve that stands for a spline
TILT = 1e-4  # of the given confidence in a curve without ties
ROUNDING = 1e-9  # by which a share of weights may miss 0 or 1

Fitted = TypeVar("Fitted", bound=ConfidenceMap)


def histogram(held_out: Predictions | Outcomes, *, n_bins: int = 15) -> Steps:
    """The accuracy of each of `n_bins` bins of equal width, as in wang2021; an empty bin gives its middle.

    Histogram binning is due to Zadrozny & Elkan (ICML 2001).
    """
    outcomes = held_out.outcomes()
    if not outcomes.is_probability:
        raise InputError("bins of equal width need a confidence in [0, 1]; for other scores use histogram_mass")
    bins = metrics.equal_width(outcomes, n_bins)
    return _fitted(outcomes, brier, lambda fit: Steps(fit, bins.upper, bin_values(bins)))


def bin_values(bins: Bins) -> Floats:
    """The accuracy of bins of equal width; of an empty one its middle."""
    return np.where(bins.count > 0, bins.accuracy, bins.upper - 0.5 / len(bins.upper))


def histogram_mass(held_out: Predictions | Outcomes, *, n_bins: int = 15) -> Steps:
    """The accuracy of each of `n_bins` bins of equal mass; edges lie midway between neighbors, tied bins are merged."""
    outcomes = held_out.outcomes()
    r = metrics.ranking(outcomes)
    bins = metrics.equal_mass(r, n_bins)
    kept = bins.count > 0
    bins = Bins(*(column[kept] for column in (bins.upper, bins.count, bins.confidence, bins.correct)))
    score = r.score[::-1]
    above = score[np.minimum(np.searchsorted(score, bins.upper, side="right"), len(score) - 1)]
    return _fitted(outcomes, brier, lambda fit: Steps(fit, (bins.upper + above) / 2, bins.accuracy))


def scaling_binning(held_out: Predictions | Outcomes, *, n_bins: int = 15) -> Steps:
    """Platt scaling, then the mean of its values in each of `n_bins` bins of equal mass (Kumar et al., NeurIPS 2019).

    The mean of a smooth map in a bin varies less than the bin's accuracy, which histogram binning takes. The paper
    splits the held-out set into a part for the scaling and one for the bins; here, as in its code, all of it serves
    for both.
    """
    outcomes = held_out.outcomes()
    smooth = platt(outcomes)(outcomes.confidence)
    steps = histogram_mass(outcomes, n_bins=n_bins)
    index = np.searchsorted(steps.upper[:-1], outcomes.confidence)
    own = weights_of(outcomes)
    total = metrics.tally(index, smooth if own is None else own * smooth, len(steps.value))
    count = metrics.tally(index, own, len(steps.value))
    return _fitted(outcomes, brier, lambda fit: replace(steps, fit=fit, value=total / count))


def isotonic(held_out: Predictions | Outcomes) -> Curve:
    """The non-decreasing accuracy nearest to the answers, with straight lines between its steps.

    Isotonic regression of the correctness (Zadrozny & Elkan, KDD 2002). Where the surest or the least sure answers are
    all right or all wrong, the curve keeps the distance from 1 or 0 of Platt's targets, so that no loss is infinite.
    """
    return pooled(held_out, sure=False)


def pooled(held_out: Predictions | Outcomes, *, sure: bool) -> Curve:
    """Isotonic regression; `sure` leaves accuracies of 0 and 1 as they are."""
    outcomes = held_out.outcomes()
    x, y = pooled_points(metrics.ranking(outcomes), sure=sure)
    return _fitted(outcomes, brier, lambda fit: Curve(fit, x, y))


def pooled_points(r: Ranking, *, sure: bool) -> tuple[Floats, Floats]:
    """The corners of isotonic regression, scores rising."""
    runs = metrics.isotonic(r)
    accuracy = runs.accuracy if sure else _doubted(runs.accuracy, runs.hits + runs.misses)
    # A run is flat between its highest score and its lowest, which may be the same.
    ends = np.stack([np.append(0, runs.last[:-1] + 1), runs.last], 1).reshape(-1)
    points = np.append(True, np.diff(ends) > 0)
    return r.score[ends][points][::-1].copy(), np.repeat(accuracy, 2)[points][::-1].copy()


def _doubted(accuracy: Floats, count: Floats) -> Floats:
    """Falling accuracies of runs, of which the first is no nearer to 1 and the last no nearer to 0 than 1 / (m + 2)."""
    highest, lowest = 1 - 1 / (count[0] + 2), 1 / (count[-1] + 2)
    if len(accuracy) > 1:  # not beyond the next run
        highest, lowest = max(highest, accuracy[1]), min(lowest, accuracy[-2])
    none, all_right = accuracy[-1] < ROUNDING, accuracy[0] > 1 - ROUNDING
    return np.clip(accuracy, lowest if none else 0, highest if all_right else 1)


def spline(held_out: Predictions | Outcomes, *, n_knots: int = 6) -> Curve:
    """The slope of a natural cubic spline through the cumulative accuracy minus confidence, plus the confidence.

    The spline runs over the rank of the sample, has knots at equal ranks and is fitted by least squares (Gupta et al.,
    ICLR 2021). For a score that is no probability, only the accuracy is cumulated. Where the slope would reverse the
    order of two confidences, they are pooled.
    """
    from scipy.interpolate import CubicSpline

    outcomes = held_out.outcomes()
    r = metrics.ranking(outcomes)
    score, size = r.score[::-1], r.size[::-1]
    claimed = score if outcomes.is_probability else np.zeros_like(score)
    rank = np.cumsum(size) / r.n
    excess = np.cumsum(r.hits[::-1] - claimed * size) / r.n
    basis = CubicSpline(np.linspace(0, 1, n_knots), np.eye(n_knots), bc_type="natural")
    # The cumulated sum starts from 0, so the first knot is there too.
    columns, weight = basis(rank)[:, 1:], np.sqrt(size)
    heights = np.linalg.lstsq(columns * weight[:, None], excess * weight, rcond=None)[0]
    # Tied samples share the mean slope between their first rank and their last.
    rise = np.diff(columns @ heights, prepend=0.0) / (size / r.n)
    least = 1 / (r.n + 2)  # so that no loss is infinite
    y = np.clip(_rising(claimed + rise, size), least, 1 - least)
    shown = np.unique(np.linspace(0, len(score) - 1, POINTS).round().astype(int))
    return _fitted(outcomes, brier, lambda fit: Curve(fit, score[shown], y[shown]))


def _rising(values: Floats, size: Floats) -> Floats:
    """The non-decreasing values nearest to these: neighbors out of order get their mean."""
    from scipy.optimize import isotonic_regression

    return np.asarray(isotonic_regression(values, weights=size).x)


def without_ties(calibrator: Callable[..., ConfidenceMap]) -> Callable[[Predictions | Outcomes], ConfidenceMap]:
    """The calibrator with a ten-thousandth of the given confidence mixed in where it is a curve or a constant.

    A flat stretch gives the same confidence to answers that the model told apart, and AUROC falls where it was right.
    The scale of a score that is no probability is that of the held-out rows.
    """

    @wraps(calibrator)
    def fit(held_out: Predictions | Outcomes) -> ConfidenceMap:
        outcomes, flat = held_out.outcomes(), calibrator(held_out)
        x = flat.x if isinstance(flat, Curve) else np.quantile(outcomes.confidence, [0, 1])
        if not isinstance(flat, Curve) and np.ptp(flat(x)) > 0:
            return flat
        x = np.union1d(x, [0.0, 1.0]) if outcomes.is_probability else x
        old = (x - x[0]) / max(x[-1] - x[0], np.finfo(float).tiny)
        y = (1 - TILT) * flat(x) + TILT * old
        return _fitted(outcomes, brier, lambda fit: Curve(fit, x, y))

    return fit


def platt(held_out: Predictions | Outcomes) -> ConfidenceMap:
    """sigmoid(a logit(c) + m) of least log loss, a >= 0; for a score that is no probability, sigmoid(a s + m) (Platt,
    1999).

    Targets are Platt's, drawn in by one sample each way, so that the fit is finite even if every answer is right. If
    higher confidences are right less often, a is 0, with a warning.
    """
    outcomes = held_out.outcomes()
    if not outcomes.is_probability:
        (a, m), iterations = _rising_regression(outcomes, outcomes.confidence[:, None])
        return _fitted(outcomes, log_loss, lambda fit: ScoreLogistic(fit, a, m), iterations=iterations)
    log_c, log_rest = _logs(outcomes)
    (a, m), iterations = _rising_regression(outcomes, (log_c - log_rest)[:, None])
    return _fitted(outcomes, log_loss, lambda fit: Logistic(fit, a, a, m), iterations=iterations)


def beta(held_out: Predictions | Outcomes) -> Logistic:
    """sigmoid(a ln c - b ln(1 - c) + m) of least log loss with a, b >= 0: one that comes out negative is dropped.

    Beta calibration (Kull, Silva Filho & Flach, AISTATS 2017).
    """
    outcomes = held_out.outcomes()
    if not outcomes.is_probability:
        raise InputError("beta calibration needs a confidence in [0, 1]; for other scores use platt")
    log_c, log_rest = _logs(outcomes)
    (a, b, m), iterations = _rising_regression(outcomes, np.stack([log_c, -log_rest], 1))
    return _fitted(outcomes, log_loss, lambda fit: Logistic(fit, a, b, m), iterations=iterations)


def _rising_regression(outcomes: Outcomes, features: Floats) -> tuple[list[float], int]:
    """As `_regression`, without negative coefficients: the lowest of them is dropped until there is none."""
    kept = list(range(features.shape[1]))
    (*slopes, m), iterations = _regression(outcomes, features)
    while min(slopes, default=0.0) < 0:
        kept.pop(int(np.argmin(slopes)))
        (*slopes, m), iterations = _regression(outcomes, features[:, kept])
    if not kept and outcomes.confidence.min() < outcomes.confidence.max():
        warnings.warn("higher confidences are right less often: the map gives all the same confidence", stacklevel=4)
    found = dict(zip(kept, slopes, strict=True))
    return [*(found.get(i, 0.0) for i in range(features.shape[1])), m], iterations


def _logs(outcomes: Outcomes) -> tuple[Floats, Floats]:
    c = np.clip(outcomes.confidence, CLIP, 1 - CLIP)
    return np.log(c), np.log1p(-c)


def _regression(outcomes: Outcomes, features: Floats) -> tuple[list[float], int]:
    """Coefficients and intercept of least log loss, by Newton's method with halved steps where one goes too far."""
    correct, own = outcomes.correct, weights_of(outcomes)
    weights = np.ones(len(features)) if own is None else own
    n_right, n_wrong = weights @ correct, weights @ ~correct
    target = np.where(correct, (n_right + 1) / (n_right + 2), 1 / (n_wrong + 2))
    center, scale = features.mean(0), features.std(0)
    scale[scale <= 1e-9 * np.abs(center)] = 1  # all the same: nothing to learn from
    x = np.append((features - center) / scale, np.ones((len(features), 1)), 1)

    def at(w: Floats) -> tuple[float, Floats]:
        """The loss, and the probability of being right."""
        z = x @ w
        e = np.exp(-np.abs(z))
        loss = float(weights @ (np.maximum(z, 0) + np.log1p(e) - target * z))
        return loss, np.where(z >= 0, 1, e) / (1 + e)

    w = np.zeros(x.shape[1])
    average = weights @ target / len(x)
    w[-1] = np.log(average / (1 - average))
    (value, p), last, iterations = at(w), np.inf, 0
    while last - value > 1e-12 * abs(value):
        # A trace of curvature keeps features that say the same, or nothing, from making the system singular.
        hessian = (x.T * (weights * p * (1 - p))) @ x + 1e-9 * len(x) * np.eye(len(w))
        step, last = np.linalg.solve(hessian, x.T @ (weights * (target - p))), value
        value, p = at(w + step)
        while value > last and np.abs(step).max() > 1e-12:
            step /= 2
            value, p = at(w + step)
        w, iterations = w + step, iterations + 1
    slope = w[:-1] / scale
    return [*slope.tolist(), float(w[-1] - slope @ center)], iterations


def brier(confidence: Floats, correct: Mask) -> Floats:
    """Squared distance of the confidence from 1 for a right answer and 0 for a wrong one, [n]."""
    return np.asarray((confidence - correct) ** 2)


def log_loss(confidence: Floats, correct: Mask) -> Floats:
    """-log of the confidence in a right answer and of what it leaves to a wrong one, [n]."""
    return -log(np.where(correct, confidence, 1 - confidence))


LOSSES: dict[Callable[[Floats, Mask], Floats], str] = {brier: "top-label Brier", log_loss: "top-label NLL"}


def _fitted(
    outcomes: Outcomes,
    loss: Callable[[Floats, Mask], Floats],
    make: Callable[[Fit], Fitted],
    *,
    iterations: int = 1,
) -> Fitted:
    """A map with the report of its fit; a score that is no probability has no loss before."""

    def average(confidence: Floats) -> float:
        return mean(loss(confidence, outcomes.correct), outcomes.weights)

    before = average(outcomes.confidence) if outcomes.is_probability else None
    report = Fit(LOSSES[loss], before, nan, iterations, len(outcomes))
    return make(replace(report, after=average(make(report)(outcomes.confidence))))
