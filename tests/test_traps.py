"""Where other libraries go wrong: one test for each trap that concerns measuring."""

from __future__ import annotations

import numpy as np
import pytest

from assay import Outcomes, Predictions, evaluate, metrics
from assay._core.arrays import InputError
from assay.metrics import equal_mass, equal_width, ranking


def test_a_million_samples_are_summed_in_double_precision():
    """Single-precision sums gave .0015 on calibrated data where the truth is .0006."""
    rng = np.random.default_rng(0)
    c = rng.uniform(0.5, 1, 1_000_000).astype(np.float32)
    correct = rng.random(1_000_000) < c
    o = Outcomes.from_scores(c, correct)
    index = np.ceil(c.astype(np.float64) * 15).astype(int) - 1
    gaps = np.bincount(index, c.astype(np.float64) - correct, minlength=15)
    assert metrics.ece(equal_width(o)) == pytest.approx(np.abs(gaps).sum() / 1e6, abs=1e-12)


def test_with_all_tied_aurc_is_the_error_rate():
    """By file order it would be anything from .02 to .52."""
    correct = np.arange(100) >= 20
    for order in (correct, correct[::-1]):
        found = evaluate(Outcomes.from_scores(np.full(100, 0.9), order))
        assert found["aurc"] == pytest.approx(0.2)
        assert found["auroc"] == 0.5


def test_fifteen_bins_are_fifteen():
    o = Outcomes.from_scores(np.linspace(0, 1, 1001), np.ones(1001))
    assert len(equal_width(o).count) == 15
    assert (equal_width(o).count > 0).all()
    assert len(equal_mass(ranking(o)).count) == 15


@pytest.mark.parametrize("n_bins", [5, 10, 15, 20])
def test_points_on_edges_belong_to_the_bin_below(n_bins):
    """Edges written as decimals, .2 say, are edges: bins are (lo, hi]."""
    edges = np.array([round(j / n_bins, 12) for j in range(1, n_bins + 1)])
    exact = np.array([j / n_bins for j in range(1, n_bins + 1)])
    for points in (exact, edges[np.isclose(edges, exact, rtol=0, atol=0)]):
        index = (points[:, None] > exact).sum(1)
        counts = np.bincount(index, minlength=n_bins)
        assert equal_width(Outcomes.from_scores(points, np.ones(len(points))), n_bins).count.tolist() == counts.tolist()
    assert equal_width(Outcomes.from_scores([0.2], [1]), 15).count.argmax() == 2


def test_confidence_one_has_no_bin_of_its_own():
    """(14/15, 1] holds .95 and 1 alike: gaps of opposite sign cancel there."""
    o = Outcomes.from_scores([1.0, 1.0, 0.95, 0.95], [1, 0, 1, 1])
    assert metrics.ece(equal_width(o)) == pytest.approx(abs(3.9 - 3) / 4)


def test_log_loss_is_not_clipped():
    """Clipping at the resolution of float32 gave 1.002 for a true 1.534."""
    logits = np.array([[0.0, 40.0], [10.0, 0.0]], dtype=np.float32)
    assert evaluate(Predictions.from_logits(logits, [0, 0]))["nll"] == pytest.approx(20.0, abs=1e-4)


def test_nan_is_an_error_not_a_number():
    p = np.full((100, 2), 0.5)
    p[37, 1] = np.nan
    with pytest.raises(InputError, match="row 37, class 1: probability is nan"):
        Predictions.from_probabilities(p, np.zeros(100, dtype=int))


def test_tied_quantiles_do_not_crash_equal_mass_bins():
    o = Outcomes.from_scores([1.0] * 90 + [0.5] * 10, [1] * 95 + [0] * 5)
    bins = equal_mass(ranking(o))
    assert bins.count[bins.count > 0].tolist() == [10, 90]
    assert evaluate(o)["ada_ece"] == pytest.approx(0)


def test_equal_mass_bins_drop_nobody():
    """Interpolated edges with (lo, hi] lose the smallest confidence."""
    o = Outcomes.from_scores(np.linspace(0.4, 0.95, 10), [1] * 10)
    assert equal_mass(ranking(o), 5).count.tolist() == [2] * 5


def test_logits_between_zero_and_one_are_logits():
    """A guess would read them as probabilities."""
    z = np.array([[0.9, 0.1], [0.2, 0.8]])
    confidence = Predictions.from_logits(z, [0, 1]).outcomes().confidence
    assert confidence.tolist() == pytest.approx([1 / (1 + np.exp(-0.8)), 1 / (1 + np.exp(-0.6))])


def test_a_perfect_classifier_is_not_measured_against_zeros():
    found = evaluate(Predictions.from_logits(np.eye(3) * 3, [0, 1, 2]))
    assert found["ece"] == pytest.approx(1 - found["mean_confidence"])


def test_classwise_ece_knows_all_classes_not_only_those_seen():
    p = np.array([[0.6, 0.3, 0.1]] * 10)
    labels = np.array([0] * 6 + [1] * 4)
    assert evaluate(Predictions.from_probabilities(p, labels))["classwise_ece"] == pytest.approx((0 + 0.1 + 0.1) / 3)


def test_tace_of_no_probability_above_its_threshold_is_nan():
    assert np.isnan(metrics.tace(Predictions.from_logits(np.zeros((2, 500)), [0, 1])))


def test_tace_uses_its_threshold():
    p = np.array([[0.92, 0.05, 0.03]] * 10)
    predictions = Predictions.from_probabilities(p, [0] * 10)
    by_threshold = [metrics.tace(metrics.class_bins(predictions, threshold=t)) for t in (0.01, 0.04, 0.2)]
    assert by_threshold == pytest.approx([(0.08 + 0.05 + 0.03) / 3, (0.08 + 0.05) / 2, 0.08])


def test_more_than_two_to_the_24_rows_can_be_binned_by_mass():
    n = 2**24 + 5
    o = Outcomes(np.arange(n) / n, np.ones(n, dtype=bool))
    assert equal_mass(ranking(o)).count.sum() == n


@pytest.mark.parametrize("correct", [np.ones(50_000), np.zeros(50_000), np.arange(50_000) > 20_000])
def test_perfect_rankings_are_not_swept_one_bin_at_a_time(correct):
    """Every number of bins is monotone there; trying them all would take the square of the samples."""
    r = ranking(Outcomes.from_scores(np.linspace(0, 1, 50_000), correct))
    assert metrics.sweep_bins(r) == 50_000
