"""Known values, worked out by hand or stated by others, to 1e-9."""

from __future__ import annotations

import numpy as np
import pytest

from assay import Outcomes, Predictions, metrics
from assay.metrics import equal_mass, equal_width, ranking


def near(value: float) -> object:
    return pytest.approx(value, abs=6e-11 if value else 1e-12, rel=0)


def test_columns_of_l1(l1):
    o = l1.outcomes()
    assert o.confidence.tolist() == [near(x) for x in (0.8437947345, 0.6285317192, 0.3671654011, 0.9755587549)]
    assert o.correct.tolist() == [True, True, False, False]
    assert o.nll.tolist() == [near(x) for x in (0.1698460196, 0.4643687841, 1.2019428482, 4.0247448901)]
    assert o.entropy.tolist() == [near(x) for x in (0.5242666167, 0.9059592565, 1.0952872687, 0.1290831335)]
    assert float(o.brier.mean()) == near(0.7252498328)


def test_binned_errors_of_d1(d1):
    fifteen, five = equal_width(d1), equal_width(d1, 5)
    assert [metrics.ece(fifteen), metrics.mce(fifteen)] == [near(0.353), near(0.62)]
    assert metrics.ece(fifteen, norm=2) == near(0.3853440022)
    assert [metrics.ece(five), metrics.mce(five), metrics.oe(five)] == [near(0.107), near(0.4), near(0.0729316667)]
    assert metrics.ece(five, norm=2) == near(0.1552363789)


def test_equal_mass_errors_of_d1(d1):
    r = ranking(d1)
    five = equal_mass(r, 5)
    assert [metrics.ece(five), metrics.ece(five, norm=2)] == [near(0.241), near(0.2817711838)]
    assert [metrics.ece_lb(r, 5), metrics.ece_lb(r, 5, norm=2)] == [near(0.241), near(0.2838485512)]
    assert metrics.squared_ce(equal_mass(r, 2)) == near(-0.03687)
    assert metrics.debiased_ece(equal_mass(r, 2)) == 0


def test_sweep_of_d1(d1):
    r = ranking(d1)
    assert metrics.sweep_bins(r) == 2
    assert [metrics.sweep_ece(r), metrics.sweep_ece(r, norm=2)] == [near(0.107), near(0.1145862121)]


def test_ranking_metrics_of_d1(d1):
    r = ranking(d1)
    assert metrics.auroc(r) == near(0.7916666667)
    assert metrics.aurc(r) == near(0.2219047619)
    assert metrics.aurc_in_file_order(d1) == near(0.2219047619)
    assert metrics.aurc(r, trapezoid=True) == near(0.2019047619)
    assert metrics.e_aurc(r) == near(0.1092857143)
    assert metrics.e_aurc(r, closed_form=True) == near(0.1284001362)
    assert metrics.augrc(r) == near(0.13)
    assert [metrics.aupr_success(r), metrics.aupr_success(r, trapezoid=True)] == [
        near(0.8555555556),
        near(0.8386904762),
    ]
    assert metrics.aupr_error(r) == near(0.8125)
    assert [metrics.fpr95(r), metrics.fpr95(r, nearest=True)] == [0.5, 0.5]


def test_risks_and_coverages_of_d1(d1):
    r = ranking(d1)
    assert metrics.risk_at_coverage(r, 0.5) == near(0.2)
    assert metrics.risk_at_coverage(r, 1.0) == near(0.4)
    assert metrics.coverage_at_risk(r, 0.2) == 0.6  # 6 accepted, 1 wrong; the seventh is the second error
    assert metrics.coverage_at_risk(r, 0.0) == 0.2
    curve = metrics.risk_coverage(r)
    assert curve.coverage.tolist() == [near(k / 10) for k in range(1, 11)]
    assert curve.risk[2] == near(1 / 3)


def test_aurc_of_ties_is_the_mean_over_their_orders():
    tied = ranking(Outcomes.from_scores([0.9] * 3 + [0.5] * 3, [1, 0, 1, 0, 1, 0]))
    assert metrics.aurc(tied) == pytest.approx(0.3972222222, abs=1e-9)
    assert metrics.aurc(tied, trapezoid=True) == near(0.375)


def test_aurc_of_fd_shifts_own_test():
    """100 samples, correct = i mod 2, confidence i - 50: 482.81112575762546 per thousand by its rule."""
    o = Outcomes.from_scores(np.arange(100) - 50, np.arange(100) % 2, is_probability=False)
    assert metrics.aurc(ranking(o), trapezoid=True) == near(0.48281112575762546)
    assert metrics.aurc(ranking(o)) == pytest.approx(0.485311126, abs=6e-10)


def test_mmce_of_l1(l1):
    assert metrics.mmce(ranking(l1.outcomes())) == near(0.2197739299)


def test_verified_calibrations_own_vectors():
    """uncertainty-calibration: probabilities of class 1 and labels; two bins, even and of equal mass."""
    positive = metrics.positive_class(Predictions.from_binary_probabilities([0.6, 0.7, 0.8, 0.9], [0, 0, 1, 1]))
    assert metrics.ece(equal_width(positive, 2)) == near(0.25)
    assert metrics.ece(equal_mass(ranking(positive), 2)) == near(0.4)


def test_robustness_metrics_own_vectors():
    p = np.array([0.91, 0.32, 0.66, 0.67, 0.57, 0.98, 0.41, 0.19])
    binary = Predictions.from_binary_probabilities(p, [1, 0, 1, 1, 0, 1, 0, 0])
    assert metrics.ece(equal_width(binary.outcomes(), 30)) == near(0.18125)
    rows = [
        [0.42610548, 0.41748077, 0.15641374],
        [0.44766216, 0.47721294, 0.0751249],
        [0.1862702, 0.15139402, 0.66233578],
        [0.05753544, 0.8561222, 0.08634236],
        [0.18697925, 0.29836466, 0.51465609],
    ]
    o = Predictions.from_probabilities(rows, [0, 1, 2, 1, 2]).outcomes()
    assert metrics.ece(equal_width(o, 30)) == pytest.approx(0.412713502, abs=1e-9)


def test_brier_of_d1_splits_by_five_bins(d1):
    """Brier .19457; the isotonic parts add up to it."""
    parts = metrics.brier_decomposition(ranking(d1))
    assert parts.calibration + parts.refinement == near(0.19457)
    assert parts.refinement == near(0.125)  # pools .88-.69 (3 of 4) and .62-.55 (1 of 2): 4 * 3/16 + 2 * 1/4, over 10


def test_terms_of_singh2021_leave_a_residual(d1):
    terms = metrics.ece_terms(d1, n_bins=5)
    assert [terms.mean_confidence, terms.beta, terms.gamma] == [near(0.707), near(0.38), near(0.26)]
    assert terms.residual == near(0.107 - 0.067)


def test_right_and_wrong_apart(d1):
    right = [0.95, 0.92, 0.81, 0.77, 0.69, 0.55]
    wrong = [0.88, 0.62, 0.48, 0.40]
    assert metrics.ece_correct(ranking(d1)) == near(1 - np.mean(right))
    assert metrics.ece_wrong(ranking(d1)) == near(np.mean(wrong))
    assert metrics.confidence_gap(ranking(d1)) == near(np.mean(right) - np.mean(wrong))


def test_the_surest_samples():
    o = Outcomes.from_scores([1.0, 0.99, 0.98, 0.5], [1, 0, 1, 1])
    assert [metrics.s99(ranking(o)), metrics.s99_accuracy(ranking(o))] == [0.5, 0.5]


def test_classwise_ece_by_hand():
    """Each class's ECE over its own column, bins of width 1/2: (|.3| + |.4 - 1 + .2|...) worked out below."""
    p = np.array([[0.7, 0.3], [0.4, 0.6], [0.2, 0.8]])
    bins = metrics.class_bins(Predictions.from_probabilities(p, [0, 0, 1]), n_bins=2)
    # Class 0: (0, .5] holds .4 and .2 with one hit, gap .6 - 1; (.5, 1] holds .7 with one hit. Class 1 mirrors it.
    assert metrics.classwise_ece(bins) == near((0.4 + 0.3) / 3)


def test_tace_leaves_small_probabilities_out():
    p = np.array([[0.95, 0.05], [0.6, 0.4]])
    bins = metrics.class_bins(Predictions.from_probabilities(p, [0, 1]), n_bins=10, threshold=0.1)
    # Class 0 keeps .95 (hit) and .6 (miss): (.05 + .6) / 2. Class 1 keeps .4 (hit): .6 / 1.
    assert metrics.tace(bins) == near((0.325 + 0.6) / 2)
