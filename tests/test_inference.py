"""Error bars by hand: small cases in which every number of a formula is known."""

from __future__ import annotations

from math import log, sqrt

import numpy as np
import pytest
from scipy.stats import binomtest, t

from assay import Outcomes, metrics
from assay.metrics import inference
from assay.metrics.inference import NoiseFloor


@pytest.mark.parametrize(("hits", "n"), [(8, 10), (0, 7), (7, 7), (950, 1000)])
def test_the_interval_of_a_share_is_exact(hits, n):
    expected = binomtest(hits, n).proportion_ci(0.95, method="exact")
    found = inference.proportion_interval(hits, n)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_a_quarter_of_an_unseen_error_widens_the_interval_of_a_ranking():
    rng = np.random.default_rng(0)
    c = rng.random(300)
    r = metrics.ranking(Outcomes.from_scores(c, rng.random(300) < c))
    influence, value = inference.auroc_influence(r), metrics.auroc(r)
    scale = sqrt(influence.variance() + influence.unseen() / 4) / (value * (1 - value))
    half = t.ppf(0.975, min(r.n_wrong, r.n - r.n_wrong) - 1) * scale
    found = inference.share_interval(value, influence)
    low, high = (log(x / (1 - x)) for x in (found.low, found.high))
    assert (high - low) / 2 == pytest.approx(half, rel=1e-9)


def test_without_an_error_a_loss_is_as_doubtful_as_the_number_of_errors():
    """Of 100 right answers that cost 0, exactly 1 - .025^(1/100) may be errors, at a cost of 2 each."""
    found = inference.loss_interval(np.zeros(100), np.ones(100, dtype=bool), worst=2.0)
    assert (found.low, found.high) == pytest.approx((0.0, 2 * (1 - 0.025**0.01)), rel=1e-9)


def test_of_many_errors_a_loss_has_students_interval():
    rng = np.random.default_rng(0)
    correct = rng.random(20_000) < 0.7
    loss = np.where(correct, 0.2, 1.1) + 0.1 * rng.random(20_000)
    half = t.ppf(0.975, 19_999) * loss.std(ddof=1) / sqrt(20_000)
    found = inference.loss_interval(loss, correct, worst=2.0)
    assert (found.low, found.high) == pytest.approx((loss.mean() - half, loss.mean() + half), rel=1e-3)


def test_gaps_of_one_sign_are_as_doubtful_as_the_accuracy():
    """A hundred answers at confidence 1, 3 of them wrong: the error rate is the ECE, and has an exact bound."""
    o = Outcomes.from_scores(np.ones(100), np.arange(100) >= 3)
    found = inference.ece_interval(metrics.equal_mass(o), NoiseFloor(np.zeros(10)))
    assert found.high >= binomtest(3, 100).proportion_ci(0.95, method="exact").high - 1e-12


def test_tied_thresholds_far_apart_are_both_in_the_interval_of_fpr95():
    """950 of 1000 right answers at .9, where 1 of 10 errors is; one right answer less would accept the others too."""
    o = Outcomes.from_scores([0.9] * 960 + [0.5] * 140, [True] * 950 + [False] * 10 + [True] * 50 + [False] * 90)
    assert metrics.fpr95(o) == 0.1
    found = inference.fpr95_interval(metrics.ranking(o))
    assert found.low < 0.06
    assert found.high == 1


def test_noise_explains_an_error_up_to_its_upper_quantile():
    """Of a floor between .00 and .10 the quantile of 97.5 % is .0975."""
    floor = NoiseFloor(np.linspace(0, 0.1, 1001))
    seen = metrics.equal_width(Outcomes.from_scores([0.5] * 1000, [True] * 410 + [False] * 590))
    more = metrics.equal_width(Outcomes.from_scores([0.5] * 1000, [True] * 400 + [False] * 600))
    assert metrics.ece(seen) == pytest.approx(0.09)
    assert inference.ece_interval(seen, floor).low == 0
    assert inference.ece_interval(more, floor).low > 0


def test_the_variance_of_the_calibration_part_by_hand():
    """One bin of n equal confidences: the gap g has variance s = v / n, and Q is 1."""
    n, wrong, c = 400, 160, 0.8
    o = Outcomes.from_scores(np.full(n, c), np.arange(n) >= wrong)
    gap, s = c - (1 - wrong / n), wrong / n * (1 - wrong / n) / (n - 1)
    estimate = inference.calibration_estimate(inference.calibration_part(o, metrics.ranking(o), 1))
    assert estimate.value == pytest.approx(gap**2 - s, rel=1e-9)
    assert estimate.error**2 == pytest.approx(4 * gap**2 * s - 2 * s**2, rel=1e-9)


def test_holm_steps_down():
    assert inference.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


def test_mcnemars_test_is_the_exact_binomial_one():
    first = np.array([True] * 50 + [True] * 3 + [False] * 11 + [False] * 20)
    second = np.array([True] * 50 + [False] * 3 + [True] * 11 + [False] * 20)
    assert inference.accuracy_change(first, second).p_value == pytest.approx(binomtest(3, 14).pvalue)
