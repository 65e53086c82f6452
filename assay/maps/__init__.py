"""Calibration maps: what a calibrator returns. They are fitted, frozen, and say what they keep.

A `LogitMap` takes logits to logits. A `ConfidenceMap` takes the confidence of the predicted class to another confidence
and leaves the label alone. A `Sequence` is maps one after the other.
"""

from assay.maps._confidence import CLIP, Curve, Logistic, ScoreLogistic, Steps
from assay.maps._kinds import Candidate, ConfidenceMap, Fit, LogitMap
from assay.maps._logits import Affine, Ensemble, OneVsRest, Temperature, features
from assay.maps._saving import load, save
from assay.maps._sequence import Answer, Map, Sequence, answer, apply, parts

__all__ = [
    "CLIP",
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
    "features",
    "load",
    "parts",
    "save",
]
