"""What the tests of tallies share: answers with confidences of every kind, with and without weights."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from assay import Outcomes
from assay.scale import Filling, Tally

BOUNDED = ("auroc", "aupr_success", "aupr_error", "aurc", "e_aurc", "augrc", "fpr95", "risk_at_80", "risk_at_95")
EXACT = ("accuracy", "ece", "mce", "rmsce", "oe", "mean_confidence")
SPECIAL = (0.0, 1.0, 1 - 1e-15, 1e-300, 0.2, 3 / 15, 0.5, 0.5 + 1e-7, 14 / 15, np.nextafter(1.0, 0))
confidences = st.one_of(st.floats(0, 1), st.sampled_from(SPECIAL))
weights = st.one_of(st.floats(0.1, 10), st.sampled_from([1.0, 2.0, 0.5]))
plain_answers = st.lists(st.tuples(confidences, st.booleans()), min_size=1, max_size=60)
weighted_answers = st.lists(st.tuples(confidences, st.booleans(), weights), min_size=1, max_size=60)
answers = st.one_of(plain_answers, weighted_answers)
cuts = st.lists(st.integers(0, 60), max_size=5)


def outcomes_of(rows: list[tuple[float, bool]] | list[tuple[float, bool, float]]) -> Outcomes:
    confidence, correct, *weight = map(list, zip(*rows, strict=True))
    return Outcomes.from_scores(confidence, correct, weights=weight[0] if weight else None)


def on_the_grid(outcomes: Outcomes) -> Tally:
    """As if there were more distinct scores than a tally keeps."""
    filling = Filling(on_grid=True)
    filling.add(outcomes)
    return filling.tally()


def same(a: Tally, b: Tally) -> bool:
    """Whole numbers exactly, sums to 1e-12."""
    x, y = a.cells, b.cells
    alike = (x.rows, x.level) == (y.rows, y.level) and np.array_equal(x.place, y.place)
    whole = a.weighted or np.array_equal(x.table[:, :2], y.table[:, :2])
    close = np.allclose(x.table, y.table, rtol=1e-12, atol=0) and np.allclose(a.sums, b.sums, 1e-12, equal_nan=True)
    return alike and whole and np.array_equal(x.mixed, y.mixed) and bool(close)
