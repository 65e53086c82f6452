"""Measuring calibration in deep learning (Nixon et al., CVPR workshops 2019): every class against the rest."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from assay._core import arrays, loops
from assay.predictions import Predictions


@dataclass(frozen=True, eq=False)
class ClassBins:
    """Sums over equal-width bins of each class's probability against whether it was the label.

    Probabilities at most `threshold`, which lie in the first bin, are summed apart. Tables merge by `+`.
    """

    threshold: float
    n: int
    count: Tensor  # [k, b] of probabilities above the threshold
    confidence: Tensor  # [k, b]
    correct: Tensor  # [k, b]
    rest_confidence: Tensor  # [k] of those at most the threshold
    rest_correct: Tensor  # [k]

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


class ClassTally:
    """Fills `ClassBins` from chunks of probabilities, as `Predictions.outcomes` shows them.

    At most 1 / threshold entries of a row exceed the threshold: only those are binned, the others come out of the
    sums of the columns.
    """

    def __init__(self, n_classes: int, n_bins: int, threshold: float, device: torch.device):
        self.threshold, self.n_bins, self.n = threshold, n_bins, 0
        self.upper = torch.arange(1, n_bins + 1, dtype=torch.float64, device=device) / n_bins
        self.binned = torch.zeros(3, n_classes * n_bins, dtype=torch.float64, device=device)
        self.columns = torch.zeros(2, n_classes, dtype=torch.float64, device=device)

    def __call__(self, p: Tensor, labels: Tensor) -> None:
        self.n += len(p)
        if loops.AVAILABLE and p.dtype == torch.float32 and p.device.type == "cpu":
            loops.tally(p, labels, self.upper, self.threshold, self.columns, self.binned)
            return
        k = p.shape[1]
        row, column = (p > self.threshold).nonzero(as_tuple=True)
        value = p[row, column].double()
        index = column * self.n_bins + torch.bucketize(value, self.upper[:-1])
        hit = (labels[row] == column).double()
        for total, weight in zip(self.binned, (torch.ones_like(value), value, hit), strict=True):
            total += torch.bincount(index, weight, minlength=k * self.n_bins)
        self.columns[0] += p.sum(0, dtype=torch.float64)
        self.columns[1] += torch.bincount(labels, minlength=k)

    def bins(self) -> ClassBins:
        count, confidence, correct = self.binned.view(3, -1, self.n_bins)
        rest = self.columns - self.binned[1:].view(2, -1, self.n_bins).sum(2)
        return ClassBins(self.threshold, self.n, count, confidence, correct, rest[0], rest[1])


def class_tally(predictions: Predictions, n_bins: int = 15, threshold: float | None = None) -> ClassTally:
    """An empty tally for these predictions; the threshold is .01, or 1 / b where bins are narrower than that."""
    limit = min(0.01, 1 / n_bins) if threshold is None else threshold
    return ClassTally(predictions.n_classes, n_bins, limit, predictions.values.device)


def class_bins(predictions: Predictions, n_bins: int = 15, threshold: float | None = None) -> ClassBins:
    """One pass over the predictions."""
    tally = class_tally(predictions, n_bins, threshold)
    n, k = predictions.values.shape
    for rows in arrays.row_chunks(n, k, device=predictions.values.device):
        chunk = predictions.values[rows]
        chunk = chunk.float() if chunk.element_size() < 4 else chunk
        tally(chunk if predictions.normalized else chunk.softmax(1), predictions.labels[rows])
    return tally.bins()


def classwise_ece(bins: ClassBins) -> float:
    """Mean over classes of the ECE of the class's probability against the class being true."""
    if bins.threshold > 1 / bins.count.shape[1]:
        raise ValueError(f"a threshold of {bins.threshold} leaves out part of more than the first bin")
    gap = bins.confidence - bins.correct
    gap[:, 0] += bins.rest_confidence - bins.rest_correct
    return float(gap.abs().sum(1).mean()) / bins.n


def tace(bins: ClassBins) -> float:
    """Classwise ECE over the probabilities above the threshold only, of the classes that have any."""
    kept = bins.count.sum(1)
    return float(((bins.confidence - bins.correct).abs().sum(1) / kept)[kept > 0].mean())
