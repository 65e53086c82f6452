"""Confidence scores that need nothing but the predictions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from assay._core.arrays import Floats, InputError, row_chunks
from assay.predictions import TAGS, Outcomes, Predictions

Score = Callable[[Predictions], Floats]
"""Predictions -> confidence [n], higher for answers that are more likely right."""


def max_probability(p: Predictions) -> Floats:
    """The probability of the answer (Hendrycks & Gimpel, ICLR 2017); the only score that is read as a chance."""
    return p.outcomes().confidence


def margin(p: Predictions) -> Floats:
    """The highest probability minus the second highest.

    >>> margin(Predictions.from_probabilities([[0.5, 0.375, 0.125]], [0]))
    array([0.125])
    """
    first, second = _two_highest(p)
    return first - second if p.normalized else -np.expm1(second - first) * max_probability(p)


def negative_entropy(p: Predictions) -> Floats:
    """sum_k p_k log p_k in nats, with 0 log 0 = 0."""
    entropy = p.outcomes().entropy
    assert entropy is not None, "predictions always have one"
    return -entropy


def max_logit(p: Predictions) -> Floats:
    """The highest logit (Hendrycks et al., ICML 2022)."""
    _refuse_normalized(p, "max logit")
    return np.asarray(p.values.max(1), dtype=np.float64)


def energy(p: Predictions) -> Floats:
    """log sum_k exp z_k, the negative free energy (Liu, Wang, Owens & Li, NeurIPS 2020)."""
    _refuse_normalized(p, "energy")
    return max_logit(p) - np.log(max_probability(p))


def outcomes_by(score: Score, p: Predictions) -> Outcomes:
    """Outcomes whose confidence is `score`.

    >>> outcomes_by(energy, Predictions.from_logits([[2.0, 0.0], [1.0, 0.5]], [0, 1]))
    Outcomes(n=2, errors=1)
    """
    outcomes = p.outcomes()
    if score is max_probability:
        return outcomes
    tags = {name: getattr(p, name) for name in TAGS}
    return Outcomes.from_scores(score(p), outcomes.correct, is_probability=False, **tags)


def _two_highest(p: Predictions) -> tuple[Floats, Floats]:
    """The highest and the second highest value of each row, [n] each."""
    n, k = p.values.shape
    two = np.empty((2, n))
    for rows in row_chunks(n, k):
        values = p.values[rows].copy()
        at = values.argmax(1)[:, None]
        two[0, rows] = np.take_along_axis(values, at, 1)[:, 0]
        np.put_along_axis(values, at, -np.inf, 1)
        two[1, rows] = values.max(1)
    return two[0], two[1]


def _refuse_normalized(p: Predictions, name: str) -> None:
    if p.normalized:
        raise InputError(f"{name} needs logits; probabilities have lost their common offset")
