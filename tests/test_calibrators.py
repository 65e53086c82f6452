"""Calibrators: known values, and laws that hold for every one of them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from scipy.optimize import brentq

from assay import Outcomes, Predictions, compare, evaluate, examples, maps, metrics
from assay.arrays import InputError
from assay.calibrators import (
    CALIBRATORS,
    TOP_LABEL,
    cross_validated,
    fixed_temperature,
    histogram,
    histogram_mass,
    isotonic,
    platt,
    shared_rows,
    temperature,
    temperature_by_ece,
    temperature_optimal_on_test,
)

EIGHT = Predictions.from_logits(
    [[4, 1, 0], [3, 0, 1], [0, 5, 1], [2, 2.5, 0], [1, 0, 3], [0, 3, 0.5], [2, 0, 1], [0.5, 1, 4]],
    [0, 1, 1, 1, 2, 1, 2, 2],
)


def sampled(n: int, k: int, t: float, *, scale: float = 1.0, seed: int = 0) -> Predictions:
    """Labels drawn from the posterior of logits that are then made t times too large."""
    rng = np.random.default_rng(seed)
    z = rng.normal(0, 2, (n, k))
    p = np.exp(z - z.max(1, keepdims=True))
    labels = (p.cumsum(1) / p.sum(1, keepdims=True) < rng.random((n, 1))).sum(1).clip(0, k - 1)
    return Predictions.from_logits(z * t * scale, labels)


def test_temperature_of_eight_rows():
    """METHODS 7.1 prints 1.3629348156, which lies 1.4e-8 from the zero of the slope; NLL agrees to the last digit."""
    found = temperature(EIGHT)
    assert found.t == pytest.approx(1.3629348351, rel=1e-10)
    assert found.fit.after == pytest.approx(0.6642426880, abs=6e-11)
    assert found.fit.before == pytest.approx(0.6953319321, abs=6e-11)


def test_temperature_by_ece_of_eight_rows():
    found = temperature_by_ece(EIGHT, step=0.1)
    assert found.t == 1.4
    assert found.fit.after == pytest.approx(0.0949653015, abs=6e-11)
    assert found.fit.before == pytest.approx(0.2549249647, abs=6e-11)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("t", [0.02, 1.0, 5.8, 9.7, 50.0])
@pytest.mark.parametrize(("n", "k"), [(20, 3), (500, 2), (400, 1000)])
def test_temperature_is_the_zero_of_the_slope(n, k, t, scale):
    predictions = sampled(n, k, t, scale=scale)
    found = temperature(predictions)
    z = predictions.values - predictions.values.amax(1, keepdim=True)
    label = z.gather(1, predictions.labels[:, None]).squeeze(1)

    def slope(b: float) -> float:
        return float((((b * z).softmax(1) * z).sum(1) - label).mean())

    assert found.t == pytest.approx(1 / brentq(slope, 0.1 / found.t, 10 / found.t, rtol=1e-14, xtol=1e-300), rel=1e-8)
    assert not found.fit.at_bound


def test_temperature_of_many_rows_starts_on_few():
    """Beyond the subsample; single precision far from the optimum, double near it."""
    predictions = sampled(600_000, 10, 3.0)
    whole = temperature(predictions)
    single = temperature(Predictions.from_logits(predictions.values.float(), predictions.labels))
    assert whole.t == pytest.approx(3.0, rel=0.02)
    assert single.t == pytest.approx(whole.t, rel=1e-7)
    assert whole.fit.iterations <= 3


@pytest.mark.parametrize("labels", [[0, 1, 2], [1, 2, 0]])
def test_without_a_finite_optimum_the_bound_is_returned_with_a_warning(labels):
    with pytest.warns(UserWarning, match="no finite temperature"):
        found = temperature(Predictions.from_logits(torch.eye(3) * 2, labels))
    assert found.fit.at_bound
    assert found.t > 0


def test_probabilities_have_the_temperature_of_their_logits():
    p = Predictions.from_probabilities(EIGHT.values.softmax(1), EIGHT.labels)
    assert temperature(p).t == pytest.approx(temperature(EIGHT).t, rel=1e-9)


def test_zero_probabilities_are_legal_unless_they_are_the_truth():
    p = [[0.9, 0.1, 0.0], [0.6, 0.4, 0.0], [0.3, 0.7, 0.0]]
    assert temperature(Predictions.from_probabilities(p, [0, 1, 1])).t > 0
    with pytest.raises(InputError, match="row 2: the true class 2 has probability 0"):
        temperature(Predictions.from_probabilities(p, [0, 1, 2]))


def test_fixed_temperature_is_not_fitted():
    assert fixed_temperature(EIGHT, t=1.1).t == 1.1
    with pytest.raises(ValueError, match="t must be > 0, got 0"):
        fixed_temperature(EIGHT, t=0)


def test_optimal_on_test_is_never_worse_there():
    test = examples.load("label_smoothing")

    def aurc(o: Outcomes) -> float:
        return metrics.aurc(metrics.ranking(o))

    best = temperature_optimal_on_test(test, aurc, step=0.5)
    assert best.fit.after <= aurc(test.outcomes())


def test_histogram_gives_the_accuracy_of_each_bin():
    o = Outcomes.from_scores([0.95, 0.99, 0.55, 0.52, 0.51], [1, 0, 1, 0, 0])
    found = histogram(o, n_bins=10)
    assert found(torch.tensor([0.97, 0.6, 0.05], dtype=torch.float64)).tolist() == pytest.approx([0.5, 1 / 3, 0.05])
    by_mass = histogram_mass(o, n_bins=2)
    assert by_mass(torch.tensor([0.1, 0.7, 0.8, 1.0])).tolist() == pytest.approx([1 / 3, 1 / 3, 0.5, 0.5])


def test_isotonic_matches_sklearn():
    from sklearn.isotonic import IsotonicRegression

    rng = np.random.default_rng(0)
    c = rng.integers(1, 60, 400) / 60
    correct = rng.random(400) < c**2
    reference = IsotonicRegression(out_of_bounds="clip").fit(c, correct)
    points = np.linspace(0, 1, 101)
    found = isotonic(Outcomes.from_scores(c, correct))(torch.from_numpy(points))
    assert found.tolist() == pytest.approx(reference.predict(points).tolist(), abs=1e-9)


def test_platt_matches_sklearn_on_its_targets():
    from sklearn.linear_model import LogisticRegression

    o = examples.load(split="held_out").outcomes()
    found = platt(o)
    log_odds = torch.logit(o.confidence.clamp(1e-12, 1 - 1e-12))[:, None].numpy()
    reference = LogisticRegression(C=1e12, tol=1e-12).fit(log_odds, o.correct.numpy())
    assert found.a == pytest.approx(reference.coef_[0, 0], rel=5e-3)
    assert found.m == pytest.approx(reference.intercept_[0], abs=5e-3)


@pytest.mark.parametrize("name", CALIBRATORS)
def test_calibrated_data_are_left_alone(name):
    predictions = sampled(10_000, 5, 1.0)
    before = predictions.outcomes().confidence
    after = maps.apply(CALIBRATORS[name](predictions), predictions).outcomes().confidence
    assert abs(float((after - before).mean())) <= 0.02
    assert float((after - before).abs().mean()) <= 0.04


@pytest.mark.parametrize("name", CALIBRATORS)
def test_overconfidence_is_mended(name):
    predictions = sampled(4000, 5, 3.0)
    after = cross_validated(predictions, CALIBRATORS[name])
    assert evaluate(after)["ece"] < evaluate(predictions)["ece"] / 3


def test_cross_validation_fits_without_the_rows_it_judges():
    predictions = sampled(100, 3, 2.0)
    tagged = Predictions.from_logits(predictions.values, predictions.labels, ids=np.arange(100))
    fitted_on: list[set[int]] = []

    def calibrator(rows: Predictions) -> maps.Map:
        fitted_on.append(set(rows.ids.tolist()))
        return fixed_temperature(rows, t=float(len(fitted_on)))

    after = cross_validated(tagged, calibrator)
    assert after.ids.tolist() == list(range(100))
    for t, seen in enumerate(fitted_on, start=1):
        left_out = [i for i in range(100) if i not in seen]
        assert len(left_out) == 20
        expected = Predictions.from_logits(predictions.values[left_out] / t, predictions.labels[left_out]).outcomes()
        assert torch.allclose(after.confidence[left_out], expected.confidence)


@pytest.mark.parametrize("name", CALIBRATORS)
def test_a_map_is_saved_and_loaded_equal(name, tmp_path):
    found = CALIBRATORS[name](EIGHT)
    maps.save(found, tmp_path / "map.json")
    assert maps.load(tmp_path / "map.json") == found


@pytest.mark.parametrize("name", CALIBRATORS)
@pytest.mark.parametrize("k", [2, 5])
def test_what_a_map_declares_is_true(name, k):
    fit_on, test = sampled(1000, k, 2.0, seed=1), sampled(2000, k, 2.0, seed=2)
    found = CALIBRATORS[name](fit_on)
    before, after = test.outcomes(), maps.apply(found, test).outcomes()
    assert not found.keeps_label or torch.equal(before.correct, after.correct)
    if found.keeps_ranking:
        order = before.confidence.argsort()
        assert (after.confidence[order].diff() >= 0).all()
        assert evaluate(after)["auroc"] == pytest.approx(evaluate(before)["auroc"], abs=1e-9)


@pytest.mark.parametrize("name", CALIBRATORS)
def test_single_and_double_precision_agree(name):
    double = sampled(1000, 4, 2.0)
    single = Predictions.from_logits(double.values.float(), double.labels)
    a, b = (maps.apply(CALIBRATORS[name](p), p).outcomes().confidence for p in (double, single))
    assert float((a - b).abs().mean()) < 1e-3


@pytest.mark.parametrize("name", CALIBRATORS)
def test_odd_held_out_sets_give_a_sane_map(name):
    missing_class = Predictions.from_logits(sampled(200, 3, 2.0).values, [0, 1] * 100)
    tied = Predictions.from_logits([[1.0, 0.0]] * 30, [0] * 20 + [1] * 10)
    few = sampled(5, 3, 1.0)
    all_right = Predictions.from_logits(torch.eye(3).repeat(5, 1) * 3, [0, 1, 2] * 5)
    for held_out in (missing_class, tied, few, all_right):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            after = maps.apply(CALIBRATORS[name](held_out), held_out).outcomes().confidence
        assert ((after >= 0) & (after <= 1)).all()


@pytest.mark.parametrize("name", TOP_LABEL)
def test_top_label_calibrators_take_bare_confidences(name):
    o = sampled(2000, 5, 3.0).outcomes()
    bare = Outcomes.from_scores(o.confidence, o.correct)
    assert evaluate(maps.apply(TOP_LABEL[name](bare), bare))["ece"] < evaluate(bare)["ece"] / 3


@pytest.mark.parametrize("name", ["histogram_mass", "isotonic", "platt"])
def test_any_score_becomes_a_confidence(name):
    o = sampled(2000, 5, 3.0).outcomes()
    score = Outcomes.from_scores(-o.entropy, o.correct, is_probability=False)
    found = maps.apply(TOP_LABEL[name](score), score)
    assert found.is_probability
    assert evaluate(found)["ece"] < 0.05


@pytest.mark.parametrize("name", ["histogram", "beta"])
def test_a_mere_score_is_refused_where_a_probability_is_needed(name):
    score = Outcomes.from_scores([3.0, -1.0], [1, 0], is_probability=False)
    with pytest.raises(InputError, match=r"needs? a confidence"):
        TOP_LABEL[name](score)


def test_a_logit_map_needs_logits():
    with pytest.raises(InputError, match="Temperature needs the logits"):
        maps.apply(temperature(EIGHT), EIGHT.outcomes())


def test_bad_map_files_are_named(tmp_path):
    for content in ("", "{}", '{"kind": "Nothing"}', '{"kind": "Temperature", "t": 2.0}'):
        (tmp_path / "map.json").write_text(content)
        with pytest.raises(InputError, match="is no calibration map"):
            maps.load(tmp_path / "map.json")


def test_histogram_binning_of_the_example_calibrates_and_ranks_worse():
    """The message of the papers in one line: judged by calibration alone, histogram binning would look best."""
    fit_on, test = examples.load(split="held_out"), examples.load()
    words = {verdict.axis: verdict.word for verdict in compare(test, maps.apply(histogram(fit_on), test)).verdicts}
    assert words == {"accuracy": "no difference", "calibration": "better", "refinement": "worse"}


def test_temperature_mends_a_real_network():
    fit_on, test = examples.load(split="held_out"), examples.load()
    after = maps.apply(temperature(fit_on), test)
    assert evaluate(after)["ece"] < 0.1 * evaluate(test)["ece"]
    assert evaluate(after)["accuracy"] == evaluate(test)["accuracy"]


def test_shared_rows_are_found():
    p = sampled(100, 3, 1.0)
    assert shared_rows(p, p) == 100
    assert shared_rows(p[:50], p[40:]) == 10
    assert shared_rows(p, sampled(100, 3, 1.0, seed=5)) == 0
    with_ids = [Predictions.from_logits(p.values, p.labels, ids=np.arange(100) + i) for i in (0, 90)]
    assert shared_rows(*with_ids) == 10
    sure = Predictions.from_probabilities([[1.0, 0.0]] * 5, [0] * 5)
    assert shared_rows(sure, sure) == 0
