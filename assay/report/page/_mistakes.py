"""The wrong answers that were given with most confidence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from assay.predictions import Outcomes, Predictions

MOST = 50


def said(predictions: Predictions) -> NDArray[np.int64]:
    """The class predicted of each row; of tied ones the first."""
    return predictions.values.argmax(1).cpu().numpy()


@dataclass(frozen=True)
class Mistake:
    """A wrong answer, by its id or else its row."""

    name: str
    confidence: float
    said: int | None
    true: int | None
    group: str | None


def mistakes(predictions: Predictions | Outcomes, outcomes: Outcomes) -> list[Mistake]:
    """The most confident wrong answers, the worst first."""
    wrong = torch.nonzero(~outcomes.correct).squeeze(1)
    worst = wrong[outcomes.confidence[wrong].argsort(descending=True, stable=True)[:MOST]]
    answers = said(predictions[worst]) if isinstance(predictions, Predictions) and len(worst) else None

    def mistake(place: int, row: int) -> Mistake:
        return Mistake(
            name=f"row {row}" if outcomes.ids is None else str(outcomes.ids[row]),
            confidence=float(outcomes.confidence[row]),
            said=None if answers is None else int(answers[place]),
            true=int(predictions.labels[row]) if isinstance(predictions, Predictions) else None,
            group=None if outcomes.group is None else str(outcomes.group[row]),
        )

    return [mistake(place, row) for place, row in enumerate(worst.tolist())]
