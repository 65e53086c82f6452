"""Probabilistic outputs for support vector machines (Platt, 1999); Beta calibration (Kull, Silva Filho & Flach, AISTATS
2017): logistic regression of the correctness on the confidence in the predicted class."""

from __future__ import annotations

import numpy as np

from assay._core.arrays import InputError
from assay.calibrators._top_label import fitted, log_loss
from assay.maps import CLIP, ConfidenceMap, Logistic, ScoreLogistic
from assay.metrics import Floats
from assay.predictions import Outcomes, Predictions


def platt(held_out: Predictions | Outcomes) -> ConfidenceMap:
    """sigmoid(a logit(c) + m) of least log loss; for a score that is no probability, sigmoid(a s + m).

    Targets are Platt's, drawn in by one sample each way, so that the fit is finite also where every answer is right.
    """
    outcomes = held_out.outcomes()
    if not outcomes.is_probability:
        (a, m), iterations = _regression(outcomes, outcomes.confidence.cpu().numpy()[:, None])
        return fitted(outcomes, log_loss, lambda fit: ScoreLogistic(fit, a, m), iterations=iterations)
    log_c, log_rest = _logs(outcomes)
    (a, m), iterations = _regression(outcomes, (log_c - log_rest)[:, None])
    return fitted(outcomes, log_loss, lambda fit: Logistic(fit, a, a, m), iterations=iterations)


def beta(held_out: Predictions | Outcomes) -> Logistic:
    """sigmoid(a ln c - b ln(1 - c) + m) of least log loss with a, b >= 0: one that comes out negative is dropped."""
    outcomes = held_out.outcomes()
    if not outcomes.is_probability:
        raise InputError("beta calibration needs a confidence in [0, 1]; for other scores use platt")
    log_c, log_rest = _logs(outcomes)
    features, kept = np.stack([log_c, -log_rest], 1), [0, 1]
    (*slopes, m), iterations = _regression(outcomes, features)
    while min(slopes, default=0.0) < 0:
        kept.pop(int(np.argmin(slopes)))
        (*slopes, m), iterations = _regression(outcomes, features[:, kept])
    found = dict(zip(kept, slopes, strict=True))
    a, b = found.get(0, 0.0), found.get(1, 0.0)
    return fitted(outcomes, log_loss, lambda fit: Logistic(fit, a, b, m), iterations=iterations)


def _logs(outcomes: Outcomes) -> tuple[Floats, Floats]:
    c = np.clip(outcomes.confidence.cpu().numpy(), CLIP, 1 - CLIP)
    return np.log(c), np.log1p(-c)


def _regression(outcomes: Outcomes, features: Floats) -> tuple[list[float], int]:
    """Coefficients and intercept of least log loss, by Newton's method with halved steps where one goes too far."""
    correct = outcomes.correct.cpu().numpy()
    n_right, n_wrong = correct.sum(), (~correct).sum()
    target = np.where(correct, (n_right + 1) / (n_right + 2), 1 / (n_wrong + 2))
    center, scale = features.mean(0), features.std(0)
    scale[scale <= 1e-9 * np.abs(center)] = 1  # all the same: nothing to learn from
    x = np.append((features - center) / scale, np.ones((len(features), 1)), 1)

    def loss(w: Floats) -> float:
        z = x @ w
        return float(np.logaddexp(0, z).sum() - target @ z)

    w = np.zeros(x.shape[1])
    w[-1] = np.log(target.mean() / (1 - target.mean()))
    value, last, iterations = loss(w), np.inf, 0
    while last - value > 1e-12 * abs(value):
        p = 1 / (1 + np.exp(-(x @ w)))
        # A trace of curvature keeps features that say the same, or nothing, from making the system singular.
        hessian = (x.T * (p * (1 - p))) @ x + 1e-9 * len(x) * np.eye(len(w))
        step = np.linalg.solve(hessian, x.T @ (target - p))
        while loss(w + step) > value and np.abs(step).max() > 1e-12:
            step /= 2
        w, last, value, iterations = w + step, value, loss(w + step), iterations + 1
    slope = w[:-1] / scale
    return [*slope.tolist(), float(w[-1] - slope @ center)], iterations
