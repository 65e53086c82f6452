"""Laws that hold for any outcomes, tied or not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

from assay import Outcomes, Predictions, evaluate, metrics
from assay._core import arrays
from assay.metrics import METRICS, equal_mass, equal_width, ranking

grids = st.sampled_from([3, 7, 20, 1000, 10**9])


@st.composite
def outcomes(draw: st.DrawFn, min_size: int = 1) -> Outcomes:
    """Any size up to 60, confidences on a coarse grid (many ties) or a fine one."""
    grid = draw(grids)
    rows = draw(st.lists(st.tuples(st.integers(0, grid), st.booleans()), min_size=min_size, max_size=60))
    return Outcomes.from_scores([c / grid for c, _ in rows], [a for _, a in rows])


def same(found: dict[str, float], expected: dict[str, float]) -> None:
    assert found == pytest.approx(expected, abs=1e-9, nan_ok=True)


@given(outcomes(), st.randoms())
def test_no_metric_depends_on_the_order_of_the_file(o, random):
    order = random.sample(range(len(o)), len(o))
    same(evaluate(o[order]), evaluate(o))


@given(outcomes(), outcomes())
def test_rankings_merge_to_the_whole(a, b):
    merged, whole = ranking(a) + ranking(b), ranking(a + b)
    for table in ("score", "kept", "wrong"):
        assert np.array_equal(getattr(merged, table), getattr(whole, table))


@given(outcomes(), outcomes())
def test_bins_merge_to_the_whole(a, b):
    merged, whole = equal_width(a) + equal_width(b), equal_width(a + b)
    assert np.array_equal(merged.count, whole.count)
    assert np.array_equal(merged.correct, whole.correct)
    assert merged.confidence == pytest.approx(whole.confidence, abs=1e-14)


def test_classwise_bins_merge_to_the_whole(predictions):
    halves = metrics.class_bins(predictions[:700]) + metrics.class_bins(predictions[700:])
    whole = metrics.class_bins(predictions)
    assert metrics.classwise_ece(halves) == pytest.approx(metrics.classwise_ece(whole), abs=1e-12)
    assert metrics.tace(halves) == pytest.approx(metrics.tace(whole), abs=1e-12)


def test_bins_with_other_edges_do_not_merge(d1):
    with pytest.raises(ValueError, match="different edges"):
        equal_width(d1, 15) + equal_width(d1, 10)


@given(outcomes())
def test_every_sample_is_in_exactly_one_bin(o):
    for bins in (equal_width(o), equal_width(ranking(o)), equal_mass(ranking(o)), equal_mass(ranking(o), 4)):
        assert bins.count.sum() == len(o)
        assert bins.correct.sum() == o.correct.sum()


@given(outcomes(), st.integers(1, 20))
def test_bins_of_outcomes_and_of_their_ranking_are_the_same(o, n_bins):
    tallied, read = equal_width(o, n_bins), equal_width(ranking(o), n_bins)
    assert np.array_equal(tallied.count, read.count)
    assert np.array_equal(tallied.correct, read.correct)
    assert tallied.confidence == pytest.approx(read.confidence, abs=1e-12)


@given(outcomes())
def test_equal_mass_bins_follow_their_rule(o):
    """The sample of ascending rank i is in bin floor(i b / n); ties share the bin of their first rank."""
    c = np.sort(o.confidence)
    bin_of = np.searchsorted(c, c) * 15 // len(c)
    assert equal_mass(ranking(o)).count.tolist() == np.bincount(bin_of, minlength=15).tolist()


@given(outcomes())
def test_norms_are_ordered(o):
    bins = equal_width(o)
    assert metrics.ece(bins) <= metrics.ece(bins, norm=2) + 1e-12
    assert metrics.ece(bins, norm=2) <= metrics.mce(bins) + 1e-12


@given(outcomes())
def test_label_binned_is_never_below_binned(o):
    r = ranking(o)
    for norm in (1, 2):
        assert metrics.ece_lb(r, norm=norm) >= metrics.ece(equal_mass(r), norm=norm) - 1e-12


@given(outcomes())
def test_augrc_is_auroc_and_accuracy(o):
    r = ranking(o)
    rate = r.n_wrong / r.n
    if 0 < rate < 1:
        expected = (1 - metrics.auroc(r)) * (1 - rate) * rate + rate**2 / 2
        assert metrics.augrc(r) == pytest.approx(expected, abs=1e-12)


@given(outcomes())
def test_ranking_metrics_survive_any_monotone_map(o):
    bent = Outcomes.from_scores(np.exp(3 * o.confidence) - 7, o.correct, is_probability=False)
    found = evaluate(o)
    same(evaluate(bent), {key: found[key] for key in evaluate(bent)})


@given(outcomes())
def test_refinement_parts_survive_a_monotone_map(o):
    bent = Outcomes.from_scores(o.confidence**3, o.correct)
    for key in ("brier_refinement", "nll_refinement"):
        assert evaluate(bent)[key] == pytest.approx(evaluate(o)[key], abs=1e-12)


@given(outcomes())
def test_bounds(o):
    found = evaluate(o)
    shares = [key for key in found if key not in ("nll_calibration", "confidence_gap", "nll_refinement")]
    assert all(math.isnan(found[key]) or -1e-9 <= found[key] <= 1 + 1e-9 for key in shares)
    assert found["brier_calibration"] >= -1e-12
    assert found["nll_calibration"] >= -1e-9
    assert -1 <= found["confidence_gap"] <= 1 or math.isnan(found["confidence_gap"])


@given(outcomes())
def test_mmce_is_the_whole_kernel_matrix(o):
    c, d = o.confidence, o.correct - o.confidence
    kernel = np.exp(-np.abs(c[:, None] - c) / 0.4)
    expected = max(d @ kernel @ d, 0) ** 0.5 / len(o)
    assert metrics.mmce(ranking(o)) == pytest.approx(expected, abs=1e-9)


@given(outcomes())
def test_sweep_stops_at_the_first_fall(o):
    """The definition, one number of bins at a time."""
    r, b = ranking(o), 1
    while b < r.n:
        bins = equal_mass(r, b + 1)
        accuracy = bins.accuracy[bins.count > 0]
        if (np.diff(accuracy) < 0).any():
            break
        b += 1
    assert metrics.sweep_bins(r) == b


@given(outcomes(min_size=2))
def test_auroc_and_average_precision_match_sklearn_with_ties(o):
    if o.correct.any() and not o.correct.all():
        r, a, c = ranking(o), o.correct, o.confidence
        assert metrics.auroc(r) == pytest.approx(roc_auc_score(a, c), abs=1e-12)
        assert metrics.aupr_success(r) == pytest.approx(average_precision_score(a, c), abs=1e-12)
        assert metrics.aupr_error(r) == pytest.approx(average_precision_score(~a, -c), abs=1e-12)


@given(outcomes(min_size=2))
def test_nearest_fpr95_is_what_the_papers_code_prints(o):
    if o.correct.any() and not o.correct.all():
        fpr, tpr, _ = roc_curve(o.correct, o.confidence)
        expected = fpr[np.abs(tpr - 0.95).argmin()]
        assert metrics.fpr95(ranking(o), nearest=True) == pytest.approx(expected, abs=1e-12)


@given(outcomes())
def test_aurc_is_the_mean_over_orders_of_ties(o):
    rng = np.random.default_rng(0)
    orders = [rng.permutation(len(o)) for _ in range(400)]
    drawn = np.array([metrics.aurc_in_file_order(o[order]) for order in orders])
    assert metrics.aurc(ranking(o)) == pytest.approx(drawn.mean(), abs=5 * drawn.std() / 20 + 1e-9)


@given(outcomes())
def test_the_best_order_has_no_excess(o):
    perfect = Outcomes.from_scores(o.correct, o.correct)
    ordered = Outcomes.from_scores(o.correct + o.confidence / 2, o.correct, is_probability=False)
    assert metrics.e_aurc(ranking(ordered)) <= metrics.e_aurc(ranking(perfect)) + 1e-12
    untied = Outcomes.from_scores(o.correct + np.arange(len(o)) / (2 * len(o)), o.correct, is_probability=False)
    assert metrics.e_aurc(ranking(untied)) == pytest.approx(0, abs=1e-12)


def test_risk_at_coverage_reads_the_curve(predictions):
    r = ranking(predictions.outcomes())
    wrong = np.sort(-predictions.outcomes().confidence)
    order = np.argsort(-predictions.outcomes().confidence, kind="stable")
    errors = (~predictions.outcomes().correct)[order].cumsum()
    assert len(np.unique(wrong)) == len(wrong)
    for coverage, k in ((0.1, 200), (0.8, 1600), (1.0, 2000)):
        assert metrics.risk_at_coverage(r, coverage) == pytest.approx(errors[k - 1] / k)
    assert metrics.coverage_at_risk(r, metrics.risk_at_coverage(r, 1.0)) == 1


@given(outcomes(), st.integers(1, 60))
def test_coverage_at_the_risk_of_a_threshold_is_at_least_its_coverage(o, place):
    curve = metrics.risk_coverage(ranking(o))
    place = min(place, len(curve.risk)) - 1
    risk = float(ranking(o).wrong[place + 1] / ranking(o).kept[place + 1])
    assert metrics.coverage_at_risk(ranking(o), risk) >= curve.coverage[place]


def test_smooth_ece_falls_between_bin_widths():
    """A constant bias of .1 is seen whole: smoothing cannot cancel what has one sign."""
    rng = np.random.default_rng(0)
    c = rng.uniform(0.3, 0.9, 200_000)
    biased = Outcomes.from_scores(c, rng.random(200_000) < c - 0.1)
    assert metrics.smooth_ece(ranking(biased)) == pytest.approx(0.1, abs=0.004)


def test_every_metric_is_described():
    found = evaluate(Predictions.from_logits([[0.0, 1.0], [1.0, 0.0], [0.5, 0.0]], [1, 0, 1]))
    assert list(found) == list(METRICS)


def test_classwise_ece_is_the_mean_of_one_against_the_rest(predictions):
    """Class by class through the top-label code; most probabilities here are below the threshold of the tally."""
    p = arrays.softmax(predictions.values.astype(float))
    assert (p < 0.01).mean() > 0.5
    rest = [Outcomes.from_scores(np.minimum(p[:, j], 1), predictions.labels == j) for j in range(10)]
    expected = np.mean([metrics.ece(equal_width(o)) for o in rest])
    found = metrics.classwise_ece(
        metrics.class_bins(Predictions.from_logits(predictions.values.astype(float), predictions.labels))
    )
    assert found == pytest.approx(expected, abs=1e-12)
