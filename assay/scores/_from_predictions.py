"""Confidence scores that need nothing but the predictions."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from assay._core.arrays import InputError
from assay.predictions import Outcomes, Predictions

Score = Callable[[Predictions], Tensor]
"""Predictions -> confidence [n] float64, higher for answers more likely right."""


def max_probability(p: Predictions) -> Tensor:
    """The probability of the answer (Hendrycks & Gimpel, ICLR 2017); the only score that is read as a chance."""
    return p.outcomes().confidence


def margin(p: Predictions) -> Tensor:
    """The highest probability minus the second highest.

    >>> margin(Predictions.from_probabilities([[0.5, 0.375, 0.125]], [0]))
    tensor([0.1250], dtype=torch.float64)
    """
    first, second = p.values.topk(2, 1).values.double().unbind(1)
    return first - second if p.normalized else -(second - first).expm1() * max_probability(p)


def negative_entropy(p: Predictions) -> Tensor:
    """sum_k p_k log p_k in nats, 0 log 0 being 0."""
    entropy = p.outcomes().entropy
    assert entropy is not None, "predictions always have one"
    return -entropy


def max_logit(p: Predictions) -> Tensor:
    """The highest logit (Hendrycks et al., ICML 2022)."""
    _refuse_normalized(p, "max logit")
    return p.values.amax(1).double()


def energy(p: Predictions) -> Tensor:
    """log sum_k exp z_k, the negative free energy (Liu, Wang, Owens & Li, NeurIPS 2020)."""
    _refuse_normalized(p, "energy")
    return max_logit(p) - max_probability(p).log()


def outcomes_by(score: Score, p: Predictions) -> Outcomes:
    """How each answer turned out, ranked by `score` instead of its probability.

    >>> outcomes_by(energy, Predictions.from_logits([[2.0, 0.0], [1.0, 0.5]], [0, 1]))
    Outcomes(n=2, errors=1)
    """
    outcomes = p.outcomes()
    if score is max_probability:
        return outcomes
    return Outcomes.from_scores(score(p), outcomes.correct, is_probability=False, ids=p.ids, group=p.group)


def _refuse_normalized(p: Predictions, name: str) -> None:
    if p.normalized:
        raise InputError(f"{name} needs logits; of probabilities their common offset is lost")
