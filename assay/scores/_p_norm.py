"""How to fix a broken confidence estimator (Cattelan & Silva, UAI 2024): MaxLogit-pNorm."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from assay import metrics
from assay._core.arrays import Floats, row_chunks
from assay.predictions import Predictions
from assay.scores._from_predictions import max_probability, outcomes_by

POWERS = range(1, 11)
LOWEST = -745.0  # the logarithm of the smallest double stands for that of a probability of 0


@dataclass(frozen=True)
class MaxLogitPNorm:
    """The highest of the centered logits divided by their p-norm; without `p`, the maximum probability.

    Two centered logits are each other's negative, so that the norm leaves nothing of them: of two classes it is the
    maximum probability too.

    Made by `max_logit_p_norm`. Of probabilities it takes the logarithms, whose centering removes the lost offset.
    """

    p: int | None

    def __call__(self, predictions: Predictions) -> Floats:
        if self.p is None or predictions.n_classes == 2:
            return max_probability(predictions)
        score = np.empty(len(predictions))
        for rows in row_chunks(*predictions.values.shape):
            score[rows] = _normalized(predictions[rows].logits.astype(np.float64), self.p)
        return score


def max_logit_p_norm(held_out: Predictions, *, powers: Iterable[int] = POWERS) -> MaxLogitPNorm:
    """The p of least AURC on held-out predictions; none of them where the maximum probability has the least.

    It helps networks whose confidence ranks badly, and leaves the others as they are.

    >>> import assay.examples
    >>> max_logit_p_norm(assay.examples.load(split="held_out"))
    MaxLogitPNorm(p=None)
    """
    candidates = (MaxLogitPNorm(None), *map(MaxLogitPNorm, powers))
    return min(candidates, key=lambda score: metrics.aurc(outcomes_by(score, held_out)))


def _normalized(z: Floats, p: int) -> Floats:
    """max(z - mean) / |z - mean|_p of each row; 0 where all logits are equal."""
    z = np.where(np.isneginf(z), LOWEST, z)
    z = z - z.mean(1, keepdims=True)
    highest = np.abs(z).max(1)
    scaled = z / np.where(highest > 0, highest, 1)[:, None]  # so that no power overflows
    norm = (np.abs(scaled) ** p).sum(1) ** (1 / p)
    return np.asarray(scaled.max(1) / np.where(norm > 0, norm, 1))
