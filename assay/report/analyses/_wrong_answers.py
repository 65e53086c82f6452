"""Class probabilities of single wrong answers, by method (zhu2022, fig 10 a)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from assay.predictions import Outcomes, Predictions

SAMPLES, CLASSES = 6, 10


@dataclass(frozen=True, eq=False)
class WrongAnswer:
    """One sample that the baseline answers wrongly."""

    row: int
    label: int
    classes: tuple[int, ...]  # that some method finds likely, and the true one
    probabilities: dict[str, tuple[float, ...]]  # of these classes, by method


def wrong_answers(baseline: str, tests: Mapping[str, Predictions | Outcomes]) -> list[WrongAnswer]:
    """The baseline's most confident errors, and what every method says of them; predictions are of the same rows."""
    found = {name: test for name, test in tests.items() if isinstance(test, Predictions)}
    outcomes = found[baseline].outcomes()
    order = np.argsort(-np.where(outcomes.correct, -1.0, outcomes.confidence), kind="stable")
    rows = [int(row) for row in order[:SAMPLES] if not outcomes.correct[row]]
    return [_wrong_answer(row, found, int(found[baseline].labels[row])) for row in rows]


def _wrong_answer(row: int, tests: Mapping[str, Predictions], label: int) -> WrongAnswer:
    probabilities = {name: test.probabilities[row] for name, test in tests.items()}
    likely = np.argsort(-np.max(list(probabilities.values()), 0), kind="stable")[:CLASSES].tolist()
    classes = tuple(sorted({*likely, label}))
    return WrongAnswer(row, label, classes, {n: tuple(map(float, p[list(classes)])) for n, p in probabilities.items()})
