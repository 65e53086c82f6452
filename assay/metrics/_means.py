"""Means over the samples: accuracy, proper scores, and how confident the answers are."""

from __future__ import annotations

from assay._core.arrays import Floats, InputError
from assay.metrics._tables import Measurable, Rankable, Tables, plain_tables, ranking


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
    return _mean(plain_tables(x), "nll")


def brier(x: Measurable) -> float:
    """Mean squared distance of the probabilities from the one-hot label, summed over classes."""
    return _mean(plain_tables(x), "brier")


def mean_entropy(x: Measurable) -> float:
    """Mean entropy of the probabilities, in nats."""
    return _mean(plain_tables(x), "entropy")


def _mean(t: Tables, name: str) -> float:
    if not t.has(name):
        raise InputError("this metric needs the probabilities of all classes; these are only confidences")
    known = None if t.summary is None else t.summary.mean(name)
    if known is not None:
        return known[0]
    outcomes = t.outcomes
    column: Floats = getattr(outcomes, name)
    if outcomes.weights is not None:
        return float(column @ outcomes.weights / outcomes.weights.sum())
    return float(column.sum()) / len(column)
