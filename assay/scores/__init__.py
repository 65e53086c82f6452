"""Confidence scores: one number for each answer, by which right answers should rank above wrong ones."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from assay._core.lookup import check_values, hyper_parameters, lookup_or_import
from assay._core.variants import parse_variant
from assay.scores._from_predictions import (
    Score,
    energy,
    margin,
    max_logit,
    max_probability,
    negative_entropy,
    outcomes_by,
)
from assay.scores._p_norm import MaxLogitPNorm, max_logit_p_norm
from assay.scores._trust import TrustScore, trust_score

SCORES: Mapping[str, Score] = MappingProxyType(
    {
        "max_probability": max_probability,
        "margin": margin,
        "entropy": negative_entropy,
        "energy": energy,
        "max_logit": max_logit,
    }
)
"""Scores that need nothing but the predictions; read-only, your own is `package.module:function`."""


def score(name: str) -> Score:
    """The score of that name, or your own at `package.module:function`, with values if any.

    >>> score("margin").__name__
    'margin'
    """
    variant = parse_variant(name)
    found: Callable[..., Any] = lookup_or_import("score", variant.full_name, SCORES)
    check_values("score", hyper_parameters(found), variant.values)
    return partial(found, **variant.values) if variant.values else found


__all__ = [
    "SCORES",
    "MaxLogitPNorm",
    "Score",
    "TrustScore",
    "energy",
    "margin",
    "max_logit",
    "max_logit_p_norm",
    "max_probability",
    "negative_entropy",
    "outcomes_by",
    "score",
    "trust_score",
]
