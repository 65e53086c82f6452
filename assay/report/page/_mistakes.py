"""The wrong answers of highest confidence."""

from __future__ import annotations

from collections.abc import Callable
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
    answer: int | str | None  # the name of the class, or its number
    true: int | str | None
    group: str | None
    shown: str = ""  # text of the sample, or a picture as a data URI


def mistakes(t: Tables, show: Callable[[int], str] | None = None) -> list[Mistake]:
    """The most confident wrong answers, the worst first; of equals the first in the file. A summary has none.

    `show` gives the text or the picture of a row.
    """
    if t.summary is not None:
        return []
    predictions, outcomes = t.source, t.outcomes
    worst = _worst(outcomes)
    given = predictions.values[worst].argmax(1) if isinstance(predictions, Predictions) else None

    def mistake(place: int, row: int) -> Mistake:
        return Mistake(
            name=f"row {row}" if outcomes.ids is None else str(outcomes.ids[row]),
            confidence=float(outcomes.confidence[row]),
            answer=None if given is None else _named(predictions, int(given[place])),
            true=_named(predictions, int(predictions.labels[row])) if isinstance(predictions, Predictions) else None,
            group=None if outcomes.group is None else str(outcomes.group[row]),
            shown="" if show is None else show(row),
        )

    return [mistake(place, row) for place, row in enumerate(worst.tolist())]


def _named(source: object, number: int) -> int | str:
    """A class by its name, if it has one."""
    return source.classes[number] if isinstance(source, Predictions) and source.classes else number


def _worst(outcomes: Outcomes) -> Labels:
    """Rows of the most confident wrong answers; only those are sorted that may be among them."""
    wrong = np.flatnonzero(~outcomes.correct)
    confidence = outcomes.confidence[wrong]
    if len(wrong) > MOST:
        high = confidence >= np.partition(confidence, -MOST)[-MOST]
        wrong, confidence = wrong[high], confidence[high]
    return wrong[np.argsort(-confidence, kind="stable")[:MOST]]
