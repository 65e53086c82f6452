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
def test_the_interval_of_a_share_is_wilsons(hits, n):
    expected = binomtest(hits, n).proportion_ci(0.95, method="wilson")
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
