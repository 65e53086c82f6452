"""Calibration of each class against the rest (Nixon et al. 2019); of two, calibration and ranking of class 1."""

from __future__ import annotations

import numpy as np

from assay.metrics._calibration import ada_ece, ece
from assay.metrics._classwise import ClassBins
from assay.metrics._failure import aupr_success, auroc
from assay.metrics._tables import Tables, class_bins, tables
from assay.predictions import Predictions


def classwise_ece(x: Predictions | Tables | ClassBins) -> float:
    """Mean over classes of the ECE of the class's probability against the class being true."""
    bins = x if isinstance(x, ClassBins) else class_bins(x)
    if bins.threshold > 1 / bins.count.shape[1]:
        raise ValueError(f"a threshold of {bins.threshold} leaves out part of more than the first bin")
    gap = bins.confidence - bins.correct
    gap[:, 0] += bins.rest_confidence - bins.rest_correct
    return float(np.abs(gap).sum(1).mean()) / bins.n


def tace(x: Predictions | Tables | ClassBins) -> float:
    """Classwise ECE over the probabilities above the threshold only, of the classes that have any; nan if none has."""
    bins = x if isinstance(x, ClassBins) else class_bins(x)
    kept = bins.count.sum(1)
    if not kept.any():
        return float("nan")
    return float((np.abs(bins.confidence - bins.correct).sum(1)[kept > 0] / kept[kept > 0]).mean())


def ece_positive(x: Predictions | Tables) -> float:
    """Two classes: ECE of the probability of class 1."""
    return ece(tables(x).positive)


def ada_ece_positive(x: Predictions | Tables) -> float:
    """Two classes: AdaECE of the probability of class 1."""
    return ada_ece(tables(x).positive)


def roc_auc(x: Predictions | Tables) -> float:
    """Two classes: chance that a row of class 1 has a higher probability of class 1 than one of class 0, ties half."""
    return auroc(tables(x).positive)


def average_precision(x: Predictions | Tables) -> float:
    """Two classes: average precision of class 1, ranked by its probability."""
    return aupr_success(tables(x).positive)
