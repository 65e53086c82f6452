"""The wrong answers of highest confidence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from assay._core.arrays import Labels
from assay.metrics import Tables
from assay.predictions import Outcomes, Predictions

MOST = 50


def answers(predictions: Predictions, outcomes: Outcomes) -> Labels:
    """The predicted class of each row; only the rows of wrong answers are read."""
    wrong = np.flatnonzero(~outcomes.correct)
    given = predictions.labels.copy()
    given[wrong] = predictions.values[wrong].argmax(1)
    return given


@dataclass(frozen=True)
class Mistake:
    """A wrong answer, named by its id or its row."""

    name: str
    confidence: float
    answer: int | None
    true: int | None
    group: str | None


def mistakes(t: Tables) -> list[Mistake]:
    """The most confident wrong answers, the worst first; of equals the first in the file."""
    predictions, outcomes = t.source, t.outcomes
    worst = _worst(outcomes)
    given = predictions.values[worst].argmax(1) if isinstance(predictions, Predictions) else None

    def mistake(place: int, row: int) -> Mistake:
        return Mistake(
            name=f"row {row}" if outcomes.ids is None else str(outcomes.ids[row]),
            confidence=float(outcomes.confidence[row]),
            answer=None if given is None else int(given[place]),
            true=int(predictions.labels[row]) if isinstance(predictions, Predictions) else None,
            group=None if outcomes.group is None else str(outcomes.group[row]),
        )

    return [mistake(place, row) for place, row in enumerate(worst.tolist())]


def _worst(outcomes: Outcomes) -> Labels:
    """Rows of the most confident wrong answers; only those are sorted that may be among them."""
    wrong = np.flatnonzero(~outcomes.correct)
    confidence = outcomes.confidence[wrong]
    if len(wrong) > MOST:
        high = confidence >= np.partition(confidence, -MOST)[-MOST]
        wrong, confidence = wrong[high], confidence[high]
    return wrong[np.argsort(-confidence, kind="stable")[:MOST]]
