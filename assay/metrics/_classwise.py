"""Measuring calibration in deep learning (Nixon et al., CVPR workshops 2019): every class against the rest."""

from __future__ import annotations

from dataclasses import dataclass

from assay._core.arrays import Floats
from assay._core.plain import ClassSums


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

    def __add__(self, other: ClassBins) -> ClassBins:
        if self.threshold != other.threshold or self.count.shape != other.count.shape:
            raise ValueError("classwise bins of different classes, bins or threshold do not merge")
        return ClassBins(
            self.threshold,
            self.n + other.n,
            self.count + other.count,
            self.confidence + other.confidence,
            self.correct + other.correct,
            self.rest_confidence + other.rest_confidence,
            self.rest_correct + other.rest_correct,
        )


def class_bins_of(sums: ClassSums, n: int) -> ClassBins:
    """The table of `n` rows from the sums that their pass has filled.

    At most 1 / threshold entries of a row exceed the threshold: only those are binned, the others come out of the
    sums of the columns.
    """
    count, confidence, correct = sums.binned
    rest_confidence, rest_correct = sums.mass.sum(1) - confidence.sum(1), sums.labels - correct.sum(1)
    return ClassBins(sums.threshold, n, count, confidence, correct, rest_confidence, rest_correct)
