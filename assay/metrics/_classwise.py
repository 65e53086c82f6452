"""Measuring calibration in deep learning (Nixon et al., CVPR workshops 2019): every class against the rest."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from assay._core.arrays import Floats, row_chunks, softmax
from assay._core.plain import ClassSums
from assay.predictions import Predictions


@dataclass(frozen=True, eq=False)
class ClassBins:
    """Sums over equal-width bins of each class's probability against whether it was the label.

    Probabilities at most `threshold`, which lie in the first bin, are summed apart. Tables merge by `+`.
    """

    threshold: float
    n: int
    count: Floats  # [k, b] of probabilities above the threshold
    confidence: Floats  # [k, b]
    correct: Floats  # [k, b]
    rest_confidence: Floats  # [k] of those at most the threshold
    rest_correct: Floats  # [k]
    unit: float = 1.0  # the mean weight, which counts as one sample

    def __add__(self, other: ClassBins) -> ClassBins:
        if self.threshold != other.threshold or self.count.shape != other.count.shape:
            raise ValueError("classwise bins of different classes, bins or threshold do not merge")
        n = self.n + other.n
        unit = (self.unit * self.n + other.unit * other.n) / n
        a, b = self.unit / unit, other.unit / unit
        return ClassBins(
            self.threshold,
            n,
            a * self.count + b * other.count,
            a * self.confidence + b * other.confidence,
            a * self.correct + b * other.correct,
            a * self.rest_confidence + b * other.rest_confidence,
            a * self.rest_correct + b * other.rest_correct,
            unit,
        )


def class_bins_of(sums: ClassSums, n: int) -> ClassBins:
    """The table of `n` rows from the sums that their pass has filled.

    At most 1 / threshold entries of a row exceed the threshold: only those are binned, the others come out of the
    sums of the columns.
    """
    count, confidence, correct = sums.binned
    rest_confidence, rest_correct = sums.mass.sum(1) - confidence.sum(1), sums.labels - correct.sum(1)
    return ClassBins(sums.threshold, n, count, confidence, correct, rest_confidence, rest_correct)


def weighted_class_bins(p: Predictions, n_bins: int, threshold: float) -> ClassBins:
    """The table of weighted rows; the mean weight counts as one row."""
    assert p.weights is not None
    unit, k = float(p.weights.mean()), p.n_classes
    own = p.weights / unit
    sums = ClassSums.empty(k, n_bins, threshold)
    for rows in row_chunks(len(p), k):
        chances = p.values[rows] if p.normalized else softmax(p.values[rows])
        row, column = np.nonzero(chances > threshold)
        value, weight = chances[row, column].astype(np.float64), own[rows][row]
        index = column * n_bins + np.searchsorted(sums.upper[:-1], value)
        hit = p.labels[rows][row] == column
        for total, part in zip(sums.binned.reshape(3, -1), (weight, weight * value, weight * hit), strict=True):
            total += np.bincount(index, part, k * n_bins)
        sums.mass[:, 0] += own[rows] @ chances
        sums.labels[:] += np.bincount(p.labels[rows], own[rows], k)
    return replace(class_bins_of(sums, len(p)), unit=unit)
