"""What several test files share: toy data of known metrics, and draws from laws whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings

from assay import Outcomes, Predictions

settings.register_profile("steady", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("steady")


@pytest.fixture
def d1() -> Outcomes:
    """Ten samples without ties, whose metrics were worked out by hand."""
    confidence = [0.95, 0.92, 0.88, 0.81, 0.77, 0.69, 0.62, 0.55, 0.48, 0.40]
    return Outcomes.from_scores(confidence, [1, 1, 0, 1, 1, 1, 0, 1, 0, 0])


@pytest.fixture
def l1() -> Predictions:
    """Four rows of three logits."""
    logits = [[2.0, 0.0, -1.0], [0.5, 1.5, 0.0], [0.0, 0.2, 0.1], [3.0, -1.0, -2.0]]
    return Predictions.from_logits(logits, [0, 1, 0, 1])


@pytest.fixture
def predictions() -> Predictions:
    """Two thousand rows of ten classes, over-confident, with ids."""
    return gaussian_predictions(2000, 10, seed=0)


def gaussian_predictions(n: int, k: int, seed: int) -> Predictions:
    """Classes with Gaussian inputs, and logits twice as large as their posterior's."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, k, n)
    x = rng.normal(size=(n, k))
    x[np.arange(n), labels] += 2.0
    return Predictions.from_logits((4 * x).astype(np.float32), labels, ids=np.arange(n))
