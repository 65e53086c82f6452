"""The wrong answers of highest confidence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from assay._core.arrays import Labels
from assay.predictions import Outcomes, Predictions

MOST = 50


def answers(predictions: Predictions) -> Labels:
    """The predicted class of each row; of tied classes the first."""
    first: Labels = predictions.values.argmax(1)
    return first


@dataclass(frozen=True)
class Mistake:
    """A wrong answer, named by its id or its row."""

    name: str
    confidence: float
    answer: int | None
    true: int | None
    group: str | None


def mistakes(predictions: Predictions | Outcomes, outcomes: Outcomes) -> list[Mistake]:
    """The most confident wrong answers, the worst first."""
    wrong = np.flatnonzero(~outcomes.correct)
    worst = wrong[np.argsort(-outcomes.confidence[wrong], kind="stable")[:MOST]]
    given = answers(predictions[worst]) if isinstance(predictions, Predictions) and len(worst) else None

    def mistake(place: int, row: int) -> Mistake:
        return Mistake(
            name=f"row {row}" if outcomes.ids is None else str(outcomes.ids[row]),
            confidence=float(outcomes.confidence[row]),
            answer=None if given is None else int(given[place]),
            true=int(predictions.labels[row]) if isinstance(predictions, Predictions) else None,
            group=None if outcomes.group is None else str(outcomes.group[row]),
        )

    return [mistake(place, row) for place, row in enumerate(worst.tolist())]
