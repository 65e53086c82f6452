"""Means over the samples: accuracy, proper scores, and how confident the answers are."""

from __future__ import annotations

from assay._core.arrays import Floats, InputError
from assay.metrics._tables import Measurable, Rankable, plain_tables, ranking
from assay.predictions import Outcomes


def accuracy(x: Rankable) -> float:
    """Share of right answers."""
    r = ranking(x)
    return float(r.right[-1]) / r.n


def mean_confidence(x: Rankable) -> float:
    """Mean confidence; above accuracy means over-confident."""
    r = ranking(x)
    return (r.areas.claims_of_hits + r.areas.claims_of_misses) / r.n


def nll(x: Measurable) -> float:
    """Mean -log probability of the true class; infinite where one had probability 0."""
    return _mean(plain_tables(x).outcomes, "nll")


def brier(x: Measurable) -> float:
    """Mean squared distance of the probabilities from the one-hot label, summed over classes."""
    return _mean(plain_tables(x).outcomes, "brier")


def mean_entropy(x: Measurable) -> float:
    """Mean entropy of the probabilities, in nats."""
    return _mean(plain_tables(x).outcomes, "entropy")


def _mean(outcomes: Outcomes, name: str) -> float:
    column: Floats | None = getattr(outcomes, name)
    if column is None:
        raise InputError("this metric needs the probabilities of all classes; these are only confidences")
    if outcomes.weights is not None:
        return float(column @ outcomes.weights / outcomes.weights.sum())
    return float(column.sum()) / len(column)
