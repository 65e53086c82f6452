"""The calibration error of Humanity's Last Exam: the published form, and one that no order moves."""

from __future__ import annotations

import numpy as np
import pytest

from assay import Outcomes
from assay.metrics import hle_rms, hle_rms_published


def by_the_book(confidence: np.ndarray, correct: np.ndarray, size: int) -> float:
    """Sort, cut runs, widen the last to the end, sum over all but the last, divide by all rows."""
    order = np.argsort(confidence, kind="stable")
    runs = [[i * size, (i + 1) * size] for i in range(len(confidence) // size)]
    runs[-1][1] = len(confidence)
    total = 0.0
    for first, last in runs[:-1]:
        rows = order[first:last]
        total += len(rows) / len(confidence) * (confidence[rows].mean() - correct[rows].mean()) ** 2
    return float(np.sqrt(total))


@pytest.fixture
def stated() -> Outcomes:
    """1,042 answers that state one of four values."""
    rng = np.random.default_rng(0)
    confidence = rng.choice([0.5, 0.8, 0.9, 1.0], 1042, p=[0.1, 0.2, 0.4, 0.3])
    return Outcomes.from_scores(confidence, rng.random(1042) < 0.3 * confidence)


def test_the_published_form(stated):
    assert hle_rms_published(stated) == pytest.approx(by_the_book(stated.confidence, stated.correct, 100), abs=1e-12)


def test_the_published_form_needs_a_run(stated):
    assert np.isnan(hle_rms_published(stated[:99]))


def test_order_moves_the_published_form_only(stated):
    shuffled = [stated[np.random.default_rng(seed).permutation(len(stated))] for seed in range(10)]
    assert np.ptp([hle_rms_published(rows) for rows in shuffled]) > 0.001
    assert np.ptp([hle_rms(rows) for rows in shuffled]) < 1e-12


def test_without_ties_only_the_last_run_differs():
    rng = np.random.default_rng(1)
    o = Outcomes.from_scores(rng.random(1042), rng.random(1042) < 0.5)
    last = np.argsort(o.confidence)[900:]
    gap = o.confidence[last].mean() - o.correct[last].mean()
    assert hle_rms(o) ** 2 == pytest.approx(hle_rms_published(o) ** 2 + 142 / 1042 * gap**2, abs=1e-12)
