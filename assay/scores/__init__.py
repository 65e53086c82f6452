"""Confidence scores: one number for each answer, by which right answers should rank above wrong ones."""

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

SCORES: dict[str, Score] = {
    "max_probability": max_probability,
    "margin": margin,
    "entropy": negative_entropy,
    "energy": energy,
    "max_logit": max_logit,
}
"""Scores that need nothing but the predictions."""

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
    "trust_score",
]
