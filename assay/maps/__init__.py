"""Calibration maps: the fitted, frozen records that calibrators return. Each says what it keeps.

A `LogitMap` maps logits to logits. A `ConfidenceMap` maps the confidence in the predicted class and leaves the label
alone. A `Sequence` is several maps one after the other.
"""

from assay.maps._applying import (
    Answer,
    Map,
    Sequence,
    answer,
    apply,
    digest,
    parts,
    refuse_other_classes,
    refuse_other_scores,
    refuse_probabilities,
    refuse_twice,
)
from assay.maps._confidence import CLIP, Curve, Logistic, ScoreLogistic, Steps
from assay.maps._kinds import Candidate, ConfidenceMap, Fit, LogitMap
from assay.maps._logits import FLOOR, Affine, Ensemble, OneVsRest, Temperature, features
from assay.maps._saving import from_json, load, save, to_json

__all__ = [
    "CLIP",
    "FLOOR",
    "Affine",
    "Answer",
    "Candidate",
    "ConfidenceMap",
    "Curve",
    "Ensemble",
    "Fit",
    "Logistic",
    "LogitMap",
    "Map",
    "OneVsRest",
    "ScoreLogistic",
    "Sequence",
    "Steps",
    "Temperature",
    "answer",
    "apply",
    "digest",
    "features",
    "from_json",
    "load",
    "parts",
    "refuse_other_classes",
    "refuse_other_scores",
    "refuse_probabilities",
    "refuse_twice",
    "save",
    "to_json",
]
