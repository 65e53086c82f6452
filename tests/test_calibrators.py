"""Calibrators: known values, and laws that hold for every one of them."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import logit

from assay import Outcomes, Predictions, compare, evaluate, examples, files, maps, metrics
from assay._core import loops
from assay._core.arrays import Floats, InputError, softmax
from assay.calibrators import (
    CALIBRATORS,
    TOP_LABEL,
    auto,
    beta,
    cross_validated,
    dirichlet,
    ensemble_temperature,
    fixed_temperature,
    histogram,
    histogram_mass,
    histogram_one_vs_rest,
    in_sequence,
    isotonic,
    isotonic_one_vs_rest,
    matrix,
    platt,
    scaling_binning,
    shared_rows,
    spline,
    structured_matrix,
    structured_vector,
    temperature,
    temperature_by_ece,
    temperature_by_sb_ece_bin,
    temperature_by_sb_ece_lb,
    temperature_optimal_on_test,
    vector,
)
from assay.calibrators._temperature_sb_ece import soft_binned_ece, soft_label_binned_ece

FIT = maps.Fit("", None, 0.0, 1, 1)
BY_CLASS_STEPS = ("histogram_one_vs_rest", "histogram_mass_one_vs_rest")
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
    z = predictions.values - predictions.values.max(1, keepdims=True)
    label = z[np.arange(n), predictions.labels]

    def slope(b: float) -> float:
        return float(((softmax(b * z) * z).sum(1) - label).mean())

    assert found.t == pytest.approx(1 / brentq(slope, 0.1 / found.t, 10 / found.t, rtol=1e-14, xtol=1e-300), rel=1e-8)
    assert not found.fit.at_bound


def test_temperature_of_many_rows_starts_on_few():
    """Beyond the subsample, in single precision as in double."""
    predictions = sampled(600_000, 10, 3.0)
    whole = temperature(predictions)
    single = temperature(Predictions.from_logits(predictions.values.astype(np.float32), predictions.labels))
    assert whole.t == pytest.approx(3.0, rel=0.02)
    assert single.t == pytest.approx(whole.t, rel=1e-7)
    assert whole.fit.iterations <= 3


@pytest.mark.parametrize("labels", [[0, 1, 2], [1, 2, 0]])
def test_without_a_finite_optimum_the_bound_is_returned_with_a_warning(labels):
    with pytest.warns(UserWarning, match="no finite temperature"):
        found = temperature(Predictions.from_logits(np.eye(3) * 2, labels))
    assert found.fit.at_bound
    assert found.t > 0


def test_probabilities_have_the_temperature_of_their_logits():
    p = Predictions.from_probabilities(EIGHT.probabilities, EIGHT.labels)
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
    assert found(np.array([0.97, 0.6, 0.05])).tolist() == pytest.approx([0.5, 1 / 3, 0.05])
    by_mass = histogram_mass(o, n_bins=2)
    assert by_mass(np.array([0.1, 0.7, 0.8, 1.0])).tolist() == pytest.approx([1 / 3, 1 / 3, 0.5, 0.5])


def test_isotonic_matches_sklearn():
    IsotonicRegression = pytest.importorskip("sklearn.isotonic").IsotonicRegression

    rng = np.random.default_rng(0)
    c = rng.integers(1, 60, 400) / 60
    correct = rng.random(400) < 0.2 + 0.6 * c**2  # neither end is all right or all wrong
    reference = IsotonicRegression(out_of_bounds="clip").fit(c, correct)
    points = np.linspace(0, 1, 101)
    found = isotonic(Outcomes.from_scores(c, correct))(points)
    assert found.tolist() == pytest.approx(reference.predict(points).tolist(), abs=1e-9)


def test_platt_matches_sklearn_on_its_targets():
    LogisticRegression = pytest.importorskip("sklearn.linear_model").LogisticRegression

    o = examples.load(split="held_out").outcomes()
    found = platt(o)
    log_odds = logit(o.confidence.clip(1e-12, 1 - 1e-12))[:, None]
    reference = LogisticRegression(C=1e12, tol=1e-12).fit(log_odds, o.correct)
    assert found.a == pytest.approx(reference.coef_[0, 0], rel=5e-3)
    assert found.m == pytest.approx(reference.intercept_[0], abs=5e-3)


@pytest.mark.parametrize("name", CALIBRATORS)
def test_calibrated_data_are_left_alone(name):
    predictions = sampled(10_000, 5, 1.0)
    before = predictions.outcomes().confidence
    after = maps.apply(CALIBRATORS[name](predictions), predictions).outcomes().confidence
    assert abs(float((after - before).mean())) <= 0.02
    # A step moves what is in it by a quarter of its width even where it is right; of many classes each step counts.
    assert np.abs(after - before).mean() <= (0.03 if name in BY_CLASS_STEPS else 0.02)


LIKELIHOOD = ("temperature", "ensemble_temperature", "vector", "dirichlet", "matrix", "platt", "beta")


@pytest.mark.parametrize("name", LIKELIHOOD)
@pytest.mark.parametrize("t", [1.0, 1.5])
def test_nll_is_not_worse_where_a_map_was_not_fitted(name, t):
    """By more than a standard error of the change, over five draws: few numbers or a ridge limit what noise costs."""
    worse, error = 0.0, 0.0
    for seed in range(5):
        predictions = sampled(2000, 4, t, seed=seed)
        before, after = predictions.outcomes(), cross_validated(predictions, CALIBRATORS[name])
        change = nll(after, top_label=after.nll is None) - nll(before, top_label=after.nll is None)
        worse, error = worse + float(change.mean()), error + float(change.std(ddof=1)) / 2000**0.5
    assert worse <= error


@pytest.mark.parametrize("name", LIKELIHOOD)
@pytest.mark.parametrize(
    ("k", "seed"), [(5, 0), *(pytest.param(k, s, marks=pytest.mark.long) for k in (2, 5, 10) for s in (1, 2, 3))]
)
def test_on_calibrated_data_nll_stays_within_the_standard_error_of_what_it_is(name, k, seed):
    """That of the estimate itself, as in the one-standard-error rule of Breiman et al. (1984), in every single draw."""
    predictions = sampled(10_000, k, 1.0, seed=seed)
    before, after = predictions.outcomes(), cross_validated(predictions, CALIBRATORS[name])
    was, became = (nll(o, top_label=after.nll is None) for o in (before, after))
    assert float(became.mean()) <= float(was.mean()) + float(was.std(ddof=1)) / 10_000**0.5


def nll(outcomes: Outcomes, *, top_label: bool) -> Floats:
    c = outcomes.confidence
    return -np.log(np.where(outcomes.correct, c, 1 - c)) if top_label else outcomes.nll


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
        assert np.allclose(after.confidence[left_out], expected.confidence)


@pytest.mark.parametrize("name", CALIBRATORS)
@pytest.mark.parametrize("ending", ["json", "safetensors"])
def test_a_map_is_saved_and_loaded_equal(name, ending, tmp_path):
    found, other = CALIBRATORS[name](EIGHT), CALIBRATORS[name](sampled(50, 3, 2.0))
    maps.save(found, tmp_path / f"map.{ending}")
    loaded = maps.load(tmp_path / f"map.{ending}")
    assert loaded == found
    assert loaded != other
    before, after = (maps.apply(mapping, EIGHT).outcomes().confidence for mapping in (found, loaded))
    assert np.array_equal(before, after)


def test_files_of_the_first_layout_are_read(tmp_path):
    """It wrote tuples of numbers as "floats"."""
    fit = '{"kind": "Fit", "objective": "NLL", "before": 1.0, "after": 0.5, "iterations": 1, "n": 10}'
    steps = f'{{"kind": "Steps", "fit": {fit}, "upper": {{"floats": [0.5, 1.0]}}, "value": {{"floats": [0.2, 0.8]}}}}'
    (tmp_path / "map.json").write_text(steps)
    assert maps.load(tmp_path / "map.json")(np.array([0.5, 0.6])).tolist() == [0.2, 0.8]


def test_a_map_has_one_of_two_endings(tmp_path):
    with pytest.raises(InputError, match=r"saved as \.json or \.safetensors"):
        maps.save(temperature(EIGHT), tmp_path / "map.bin")
    (tmp_path / "map.safetensors").write_bytes(b"not that")
    with pytest.raises(InputError, match="is no calibration map"):
        maps.load(tmp_path / "map.safetensors")


@pytest.mark.parametrize("name", CALIBRATORS)
@pytest.mark.parametrize("k", [2, 5])
def test_what_a_map_declares_is_true(name, k):
    fit_on, test = sampled(1000, k, 2.0, seed=1), sampled(2000, k, 2.0, seed=2)
    found = CALIBRATORS[name](fit_on)
    before, after = test.outcomes(), maps.apply(found, test).outcomes()
    assert not found.keeps_label or np.array_equal(before.correct, after.correct)
    if found.keeps_ranking:
        order = before.confidence.argsort()
        assert (np.diff(after.confidence[order]) >= 0).all()
        assert evaluate(after)["auroc"] == pytest.approx(evaluate(before)["auroc"], abs=1e-9)


@pytest.mark.parametrize("name", CALIBRATORS)
def test_single_and_double_precision_agree(name):
    double = sampled(1000, 4, 2.0)
    single = Predictions.from_logits(double.values.astype(np.float32), double.labels)
    a, b = (maps.apply(CALIBRATORS[name](p), p).outcomes().confidence for p in (double, single))
    assert np.abs(a - b).mean() < 1e-3


@pytest.mark.parametrize("name", CALIBRATORS)
def test_odd_held_out_sets_give_a_sane_map(name):
    missing_class = Predictions.from_logits(sampled(200, 3, 2.0).values, [0, 1] * 100)
    tied = Predictions.from_logits([[1.0, 0.0]] * 30, [0] * 20 + [1] * 10)
    few = sampled(5, 3, 1.0)
    all_right = Predictions.from_logits(np.tile(np.eye(3) * 3, (5, 1)), [0, 1, 2] * 5)
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


@pytest.mark.parametrize("name", ["histogram_mass", "isotonic", "platt", "spline", "scaling_binning"])
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
    assert words == {"accuracy": "none shown", "calibration": "better", "refinement": "worse"}


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
    # Ids that are counted from 0 in both sets say nothing, and other ids do not hide a row.
    counted = [
        Predictions.from_logits(x.values, x.labels, ids=np.arange(100)) for x in (p, sampled(100, 3, 1.0, seed=5))
    ]
    assert shared_rows(*counted) == 0
    assert shared_rows(counted[0], replace(p, ids=np.arange(100) + 90)) == 100
    # Confidences alone: shuffled, in part, or written with few digits.
    o = Outcomes.from_scores(p.outcomes().confidence, p.outcomes().correct, ids=np.arange(100))
    bare = replace(o, ids=None)
    assert shared_rows(bare, bare[np.random.default_rng(0).permutation(100)][:60]) == 60
    short = replace(bare, confidence=bare.confidence.round(2))
    assert shared_rows(short, short) == 100
    assert shared_rows(short, short[:60]) == 0
    short = replace(short, ids=o.ids)
    assert shared_rows(short, short[:60]) == 60
    assert shared_rows(p, bare) == 100
    sure = Predictions.from_probabilities([[1.0, 0.0]] * 5, [0] * 5)
    assert shared_rows(sure, sure[:3]) == 0


def anti_correlated(n: int = 4000) -> Outcomes:
    rng = np.random.default_rng(0)
    c = rng.uniform(0.5, 1, n)
    return Outcomes.from_scores(c, rng.uniform(size=n) < 1.2 - 0.7 * c)


def test_beta_without_slopes_is_the_accuracy():
    """A negative coefficient is dropped and the fit repeated; where both are, what is left is a constant."""
    outcomes = anti_correlated()
    with pytest.warns(UserWarning, match="higher confidences are right less often"):
        found = beta(outcomes)
    assert (found.a, found.b) == (0, 0)
    assert float(found(outcomes.confidence)[0]) == pytest.approx(float(outcomes.correct.mean()), abs=1e-3)


@pytest.mark.parametrize("calibrator", [platt, beta])
def test_a_confidence_of_exactly_1_is_no_exception(calibrator):
    rng = np.random.default_rng(0)
    c = rng.uniform(0.5, 1, 4000)
    c[:400] = 1
    right = rng.uniform(size=4000) < c
    right[:400] = rng.uniform(size=400) < 0.9
    found = calibrator(Outcomes.from_scores(c, right))
    just_below, at = found(np.array([1 - 1e-15, 1.0])).tolist()
    assert at == pytest.approx(just_below, abs=0.02)
    assert np.isfinite(found.fit.after)
    same = calibrator(Outcomes.from_scores(np.full(100, 0.9), np.arange(100) < 80))
    assert same(np.array([0.9, 0.8])).tolist() == pytest.approx([0.8, 0.8], abs=0.01)


def test_auto_takes_sure_errors_and_mere_scores():
    some = sampled(600, 10, 1.0)
    saturated = Predictions.from_logits(some.logits * 40, some.labels)
    assert (saturated.outcomes().confidence == 1).any()
    assert np.isfinite(auto(saturated).fit.chosen_from[0].loss)
    with_zero = some.probabilities.copy()
    with_zero[0] = np.eye(10)[some.labels[0] - 9]
    assert np.isfinite(auto(Predictions.from_probabilities(with_zero, some.labels)).fit.after)
    rng = np.random.default_rng(0)
    score = rng.normal(0, 5, 600)
    scores = Outcomes.from_scores(score, rng.uniform(size=600) < 1 / (1 + np.exp(-score)), is_probability=False)
    assert isinstance(auto(scores), maps.ScoreLogistic)
    with pytest.raises(InputError, match="too few"):
        auto(scores[:5])


def test_maps_refuse_what_they_were_not_fitted_on():
    of_five = CALIBRATORS["vector"](sampled(500, 5, 1.0))
    for call in (lambda: maps.apply(of_five, EIGHT), lambda: maps.answer(of_five, EIGHT.logits)):
        with pytest.raises(InputError, match="5 classes and these predictions have 3"):
            call()
    o = EIGHT.outcomes()
    of_scores = platt(Outcomes.from_scores(o.confidence * 9, o.correct, is_probability=False))
    for call in (lambda: maps.apply(of_scores, EIGHT), lambda: maps.answer(of_scores, EIGHT.logits)):
        with pytest.raises(InputError, match="scores that are no probabilities and these are probabilities"):
            call()


def test_what_may_be_0_comes_out_as_probabilities(tmp_path):
    held_out = sampled(300, 4, 1.0)
    for name in ("isotonic_one_vs_rest", "ensemble_temperature"):
        after = maps.apply(CALIBRATORS[name](held_out), held_out)
        assert after.normalized
        files.write(after, tmp_path / "after.npz")
        assert np.array_equal(files.read(tmp_path / "after.npz").values, after.values)
    sure = Predictions.from_probabilities([[1.0, 0.0], [0.3, 0.7], [0.6, 0.4]] * 10, [0, 1, 1] * 10)
    assert maps.apply(temperature(sure), sure).normalized
    assert not maps.apply(temperature(held_out), held_out).normalized


def test_a_metric_that_no_temperature_defines_is_refused():
    right = Predictions.from_logits(np.tile(np.eye(3), (9, 1)), [0, 1, 2] * 9)
    with pytest.raises(InputError, match="not defined"):
        temperature_optimal_on_test(right, lambda o: -metrics.auroc(metrics.ranking(o)), step=0.5)


def test_classes_against_the_rest_match_sklearn():
    """Isotonic regression of every column, rows made to sum to 1: what CalibratedClassifierCV does."""
    IsotonicRegression = pytest.importorskip("sklearn.isotonic").IsotonicRegression

    fit_on, test = sampled(800, 3, 2.0), sampled(200, 3, 2.0, seed=1)
    p, q = fit_on.probabilities, test.probabilities
    columns = [
        IsotonicRegression(out_of_bounds="clip").fit(p[:, k], fit_on.labels == k).predict(q[:, k]) for k in range(3)
    ]
    expected = np.stack(columns, 1)
    expected /= expected.sum(1, keepdims=True)
    found = np.exp(isotonic_one_vs_rest(fit_on)(test.logits))
    assert found == pytest.approx(expected, abs=1e-9)


def test_histograms_of_classes_are_the_frequencies_of_their_bins():
    fit_on = sampled(2000, 4, 2.0)
    found = histogram_one_vs_rest(fit_on, n_bins=10)
    p, y = fit_on.probabilities, fit_on.labels
    for k in range(4):
        inside = (p[:, k] > 0.2) & (p[:, k] <= 0.3)
        assert found.maps[k].value[2] == pytest.approx((y[inside] == k).mean(), abs=1e-12)
        first = p[:, k] <= 0.1
        assert found.maps[k].value[0] == pytest.approx((y[first] == k).mean(), abs=1e-12)
    assert np.exp(found(fit_on.logits)).sum(1).tolist() == pytest.approx([1.0] * 2000)
    unnormalized = np.stack([m(column) for m, column in zip(found.maps, p.T, strict=True)], 1)
    assert found.fit.after == pytest.approx(((unnormalized - np.eye(4)[y]) ** 2).sum(1).mean(), abs=1e-12)


def steps(upper: tuple[float, ...], value: tuple[float, ...]) -> maps.Steps:
    return maps.Steps(FIT, np.array(upper), np.array(value))


def test_steps_and_curves_at_known_places():
    at = np.array([0.0, 0.2, 0.2 + 1e-7, 0.4, 1.0])
    assert steps((0.2, 0.4, 1.0), (0.1, 0.5, 0.9))(at).tolist() == [0.1, 0.1, 0.5, 0.5, 0.9]
    curve = maps.Curve(FIT, np.array([0.1, 0.4, 0.9]), np.array([0.0, 0.5, 0.6]))
    assert curve(at).tolist() == pytest.approx([0.0, 1 / 6, 1 / 6, 0.5, 0.6], abs=1e-6)
    assert maps.Curve(FIT, np.array([0.5]), np.array([0.7]))(at).tolist() == [0.7] * 5


def test_a_row_that_steps_leave_nothing_of_stays_as_it_was():
    nothing = maps.OneVsRest(FIT, (steps((1.0,), (0.0,)),) * 3)
    assert np.exp(nothing(EIGHT.logits)) == pytest.approx(EIGHT.probabilities)


@pytest.mark.parametrize("calibrator", [vector, matrix])
def test_affine_maps_find_a_distortion_that_temperature_cannot_mend(calibrator):
    """Weights and shifts that differ by class are undone, to the NLL of the truth."""
    truth, fresh = sampled(20_000, 3, 1.0), sampled(20_000, 3, 1.0, seed=1)
    weight, shift = np.array([1.5, 2.0, 3.0]), np.array([0.5, -1.0, 0.2])
    distorted = [Predictions.from_logits(p.values * weight + shift, p.labels) for p in (truth, fresh)]
    mended = maps.apply(calibrator(distorted[0]), distorted[1]).outcomes().nll.mean()
    cooled = maps.apply(temperature(distorted[0]), distorted[1]).outcomes().nll.mean()
    best = fresh.outcomes().nll.mean()
    assert float(mended - best) < 0.001 < 0.02 < float(cooled - best)


def test_dirichlet_calibration_undoes_shifts_that_temperature_cannot():
    truth, fresh = sampled(20_000, 3, 1.0), sampled(20_000, 3, 1.0, seed=1)
    shift = np.array([1.0, -1.0, 0.2])
    distorted = [Predictions.from_logits((p.values + shift) * 2, p.labels) for p in (truth, fresh)]
    losses = [float(maps.apply(f(distorted[0]), distorted[1]).outcomes().nll.mean()) for f in (temperature, dirichlet)]
    best = float(fresh.outcomes().nll.mean())
    assert losses[1] - best < 0.001 < 0.02 < losses[0] - best


def test_a_matrix_undoes_a_mixing_of_the_logits():
    truth, fresh = sampled(20_000, 3, 1.0), sampled(20_000, 3, 1.0, seed=1)
    mix = np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.5], [0.3, 0.0, 1.2]])
    mixed = [Predictions.from_logits(p.values @ mix.T, p.labels) for p in (truth, fresh)]
    losses = [float(maps.apply(f(mixed[0]), mixed[1]).outcomes().nll.mean()) for f in (vector, matrix)]
    best = float(fresh.outcomes().nll.mean())
    assert losses[1] - best < 0.001 < losses[0] - best


def test_many_classes_do_not_overfit():
    """A hundred classes, where unregularized matrices lose several nats (PEERS): the ridge holds them."""
    from conftest import gaussian_predictions

    fit_on, test = gaussian_predictions(3000, 60, seed=0), gaussian_predictions(3000, 60, seed=1)
    cooled = float(maps.apply(temperature(fit_on), test).outcomes().nll.mean())
    for calibrator in (vector, dirichlet, matrix):
        assert float(maps.apply(calibrator(fit_on), test).outcomes().nll.mean()) < cooled + 0.005


def test_the_ensemble_is_no_worse_than_its_temperature_and_finds_uniform_noise():
    rng = np.random.default_rng(0)
    predictions = sampled(5000, 4, 2.0)
    # A fifth of the labels drawn blindly: no temperature tells that, a share of the uniform does.
    labels = np.where(rng.random(5000) < 0.2, rng.integers(0, 4, 5000), predictions.labels)
    noisy = Predictions.from_logits(predictions.values, labels)
    found = ensemble_temperature(noisy)
    assert found.fit.after < temperature(noisy).fit.after - 0.01
    assert sum(found.weights) == pytest.approx(1)
    assert found.weights[2] > 0.05
    assert found.fit.after == pytest.approx(float(maps.apply(found, noisy).outcomes().nll.mean()), abs=1e-9)


def test_the_spline_follows_a_curve():
    rng = np.random.default_rng(0)
    c = rng.uniform(0.4, 1, 20_000)
    truth = c**3
    found = spline(Outcomes.from_scores(c, rng.random(20_000) < truth))
    points = np.linspace(0.45, 0.97, 20)
    assert found(points).tolist() == pytest.approx((points**3).tolist(), abs=0.04)


def test_scaling_binning_gives_the_mean_of_platt_scaling_in_each_bin():
    o = sampled(1000, 4, 3.0).outcomes()
    found, smooth = scaling_binning(o, n_bins=4), platt(o)(o.confidence)
    order = o.confidence.argsort()
    expected = smooth[order].reshape(4, 250).mean(1)
    assert found(o.confidence)[order].reshape(4, 250)[:, 100].tolist() == pytest.approx(expected.tolist(), abs=1e-9)


@pytest.mark.parametrize("calibrator", [temperature_by_sb_ece_bin, temperature_by_sb_ece_lb])
def test_soft_bins_find_the_temperature(calibrator):
    found = calibrator(sampled(20_000, 5, 2.5))
    assert found.t == pytest.approx(2.5, rel=0.05)
    assert found.fit.after < found.fit.before / 3
    nearby = [fixed_temperature(sampled(20_000, 5, 2.5), t=found.t * f) for f in (0.9, 1.1)]
    assert all(found.fit.after < soft_error(calibrator, at.t) for at in nearby)


def soft_error(calibrator, t: float) -> float:
    cooled = Predictions.from_logits(sampled(20_000, 5, 2.5).values / t, sampled(20_000, 5, 2.5).labels)
    return calibrator(cooled).fit.before


@pytest.mark.parametrize("softness", [0.3, 0.01, 1e-5])
def test_soft_bins_are_those_of_the_losses(softness):
    torch = pytest.importorskip("torch")
    from assay.nn import losses

    o = sampled(5000, 3, 2.0).outcomes()
    tensors = torch.from_numpy(o.confidence), torch.from_numpy(o.correct)
    for ours, theirs in (
        (soft_binned_ece, losses.soft_binned_ece),
        (soft_label_binned_ece, losses.soft_label_binned_ece),
    ):
        expected = float(theirs(*tensors, temperature=softness))
        assert ours(o, softness) == pytest.approx(expected, rel=1e-10)


def test_maps_in_sequence_are_applied_one_after_the_other():
    fit_on, test = sampled(2000, 4, 3.0), sampled(500, 4, 3.0, seed=1)
    cooled = temperature(fit_on)
    binned = histogram(maps.apply(cooled, fit_on))
    found = in_sequence(temperature, histogram)(fit_on)
    expected = maps.apply(binned, maps.apply(cooled, test)).outcomes()
    assert np.array_equal(maps.apply(found, test).outcomes().confidence, expected.confidence)
    assert found.keeps_label
    with pytest.raises(ValueError, match="cannot follow"):
        maps.Sequence(binned.fit, (binned, cooled))


def test_an_answer_agrees_with_the_outcomes_and_is_a_distribution():
    test = sampled(500, 4, 3.0, seed=1)
    for name, calibrator in CALIBRATORS.items():
        mapping = calibrator(sampled(500, 4, 3.0))
        given, expected = maps.answer(mapping, test.logits), maps.apply(mapping, test).outcomes()
        assert np.allclose(given.confidence, expected.confidence, atol=1e-12), name
        assert np.array_equal(given.label == test.labels, expected.correct), name
        assert given.probabilities.sum(1).tolist() == pytest.approx([1.0] * 500)
        assert np.allclose(given.probabilities[np.arange(500), given.label], given.confidence)


def test_auto_leaves_calibrated_predictions_alone_and_takes_the_simplest_that_serves():
    unchanged = auto(sampled(4000, 4, 1.0))
    assert str(unchanged) == "unchanged"
    cooled = auto(sampled(4000, 4, 3.0))
    assert isinstance(cooled, maps.Temperature)
    assert cooled.t == pytest.approx(3, rel=0.1)
    table = {candidate.name: candidate for candidate in cooled.fit.chosen_from}
    assert table["unchanged"].behind > 10 * table["unchanged"].error
    assert min(candidate.behind for candidate in table.values()) == 0
    shifted = sampled(4000, 4, 1.0)
    shifted = Predictions.from_logits(shifted.values + np.array([3.0, 0, 0, -3.0]), shifted.labels)
    assert isinstance(auto(shifted), maps.Affine)
    bare = sampled(4000, 4, 3.0).outcomes()
    assert isinstance(auto(Outcomes.from_scores(bare.confidence, bare.correct)), maps.Logistic)


def test_a_uniform_mixture_does_not_keep_the_label():
    fit = temperature(sampled(100, 3, 1.0)).fit
    assert maps.Ensemble(fit, 1.0, np.array([0.5, 0.0, 0.5]), 3).keeps_label
    assert not maps.Ensemble(fit, 1.0, np.array([0.0, 0.0, 1.0]), 3).keeps_label


def stated(n: int, seed: int) -> Outcomes:
    """Confidences such as language models state: few distinct values, 0 and 1 among them, often wrong where sure."""
    rng = np.random.default_rng(seed)
    values, chance = np.array([0.0, 0.5, 0.8, 0.9, 0.95, 1.0]), np.array([0.3, 0.35, 0.4, 0.6, 0.65, 0.9])
    said = rng.choice(6, n, p=[0.03, 0.07, 0.2, 0.3, 0.3, 0.1])
    return Outcomes.from_scores(values[said], rng.random(n) < chance[said])


def test_auto_mends_stated_confidences_as_well_as_isotonic():
    fit_on, test = stated(3000, 0), stated(3000, 1)
    chosen, plain = (maps.apply(calibrator(fit_on), test) for calibrator in (auto, isotonic))
    assert evaluate(test)["ece"] > 0.15
    assert evaluate(chosen)["ece"] < evaluate(plain)["ece"] + 0.01
    assert nll(chosen, top_label=True).mean() <= nll(plain, top_label=True).mean() + 0.002


def in_steps(rng: np.random.Generator, n: int) -> Outcomes:
    """Confidences whose accuracy is flat, then jumps: isotonic regression is the only map that serves."""
    c = rng.random(n)
    return Outcomes.from_scores(c, rng.random(n) < np.where(c > 0.5, 0.9, 0.3 + 0.02 * c))


def test_auto_ties_no_answers_that_the_confidence_told_apart():
    rng = np.random.default_rng(0)
    fit_on, test = in_steps(rng, 3000), in_steps(rng, 3000)
    chosen, flat = auto(fit_on), isotonic(fit_on)
    assert chosen.fit.why.startswith("isotonic")
    assert chosen.keeps_ranking
    assert not flat.keeps_ranking
    after = maps.apply(chosen, test).outcomes()
    assert metrics.auroc(after) == metrics.auroc(test)
    assert len(np.unique(flat(test.confidence))) < 1000
    assert np.abs(after.confidence - flat(test.confidence)).max() <= 1e-4


def test_auto_ties_no_mere_scores():
    rng = np.random.default_rng(0)
    rows = in_steps(rng, 3000)
    scores = Outcomes.from_scores(20 * rows.confidence - 5, rows.correct, is_probability=False)
    after = auto(scores)(scores.confidence)
    assert len(np.unique(after)) == 3000
    assert 0 < after.min() < after.max() < 1


@pytest.mark.parametrize("calibrator", [isotonic, spline, platt, beta, auto])
def test_ties_and_sure_errors_give_a_rising_curve_and_a_finite_loss(calibrator):
    fit_on, test = stated(2000, 2), stated(2000, 3)
    found = calibrator(fit_on)
    assert (np.diff(maps.parts(found)[0](np.unique(test.confidence))) >= 0).all()
    assert np.isfinite(nll(maps.apply(found, test), top_label=True)).all()


def test_isotonic_keeps_the_distance_of_platts_targets_from_certainty():
    o = Outcomes.from_scores([0.9, 0.9, 0.9, 0.5, 0.5, 0.1], [1, 1, 1, 1, 0, 0])
    assert isotonic(o)(np.array([0.95, 0.5, 0.0])).tolist() == pytest.approx([1 - 1 / 5, 0.5, 1 / 3])


@pytest.mark.parametrize("is_probability", [True, False])
def test_a_confidence_that_misleads_is_not_turned_round(is_probability):
    rng = np.random.default_rng(0)
    c = rng.random(1000)
    o = Outcomes.from_scores(c, rng.random(1000) < 0.9 - 0.5 * c, is_probability=is_probability)
    with pytest.warns(UserWarning, match="higher confidences are right less often"):
        found = platt(o)
    assert found.a == 0
    assert not found.keeps_ranking
    assert found(np.array([0.3])).item() == pytest.approx(o.correct.mean(), abs=1e-3)


def test_a_spline_gives_tied_answers_the_mean_slope_of_their_ranks():
    o = stated(20_000, 0)
    found = spline(o, n_knots=40)
    for value in np.unique(o.confidence):
        tied = o.confidence == value
        assert found(np.array([value])).item() == pytest.approx(o.correct[tied].mean(), abs=0.02)


@pytest.mark.parametrize(("calibrator", "reference"), [(structured_vector, vector), (structured_matrix, matrix)])
def test_structured_scaling_becomes_the_plain_map_with_many_rows(calibrator, reference):
    """Its ridge falls as 1 / n. Classes are shifted, so that temperature alone does not do."""
    some = sampled(20_000, 3, 2.0)
    shifted = Predictions.from_logits(some.values + np.array([1.0, 0.0, -1.0]), some.labels)
    a, b = (maps.apply(f(shifted), shifted).outcomes() for f in (calibrator, reference))
    assert a.nll.mean() == pytest.approx(b.nll.mean(), abs=1e-3)
    assert a.nll.mean() < maps.apply(temperature(shifted), shifted).outcomes().nll.mean() - 0.02


def test_structured_scaling_of_the_example_is_that_of_probmetrics():
    """SVSCalibrator and SMSCalibrator of probmetrics 1.3.0, fitted on held-out rows and judged on the test set."""
    fit_on, test = examples.load(split="held_out"), examples.load()
    found = [maps.apply(f(fit_on), test).outcomes().nll.mean() for f in (structured_vector, structured_matrix)]
    assert found == pytest.approx([0.71341, 0.70531], abs=2e-4)


def test_logits_at_the_end_of_their_precision_stay_finite():
    map_ = maps.Temperature(None, 0.5, 3)
    huge = np.array([[3e38, 0.0, -3e38], [1.0, 0.0, -np.inf]], dtype=np.float32)
    found = map_(huge)
    assert np.isfinite(found[0]).all()
    np.testing.assert_array_equal(found[1], [2.0, 0.0, -np.inf])
    np.testing.assert_array_equal(softmax(found)[0], [1, 0, 0])


def test_auto_takes_copies_of_a_cluster_for_one_row():
    """Calibrated confidences, each ten times: without the clusters the copies would pass for evidence."""
    changed = {True: 0, False: 0}
    for seed in range(20):
        rng = np.random.default_rng(seed)
        c = rng.uniform(0.5, 1, 200)
        correct, row = rng.random(200) < c, np.repeat(np.arange(200), 10)
        for known in changed:
            rows = Outcomes.from_scores(c[row], correct[row], cluster=row if known else None)
            changed[known] += auto(rows) != maps.Sequence(auto(rows).fit, ())
    assert changed[True] <= 2 < changed[False]


def test_auto_is_the_same_on_any_number_of_threads(predictions, monkeypatch):
    monkeypatch.setattr(loops, "PART", 2**10)  # so that these few rows are cut into parts
    found = []
    for n in (1, 3):
        with loops.threads(n):
            found.append(maps.to_json(auto(predictions)))
    assert found[0] == found[1]


def test_auto_says_why_and_what_it_left_out():
    many = sampled(200, 30, 2.0)
    found = auto(many)
    assert found.fit.why.startswith("temperature has a cross-validated NLL of ")
    notes = {candidate.name: candidate.note for candidate in found.fit.chosen_from}
    assert notes["matrix"] == "not tried: fewer than 10 rows a class"
    assert notes["temperature"] == ""
    assert "too few for 5 folds" in auto(EIGHT).fit.why


def test_auto_takes_no_more_than_a_temperature_where_that_is_the_truth():
    larger = sum(type(auto(sampled(2000, 4, 2.0, seed=seed))) is not maps.Temperature for seed in range(4))
    assert larger == 0


def test_rows_of_a_cluster_are_left_out_together():
    p = sampled(200, 3, 2.0)
    clustered = replace(p, cluster=np.repeat(np.arange(20), 10))
    fitted_on: list[set[int]] = []

    def calibrator(rows: Predictions) -> maps.Map:
        fitted_on.append(set(rows.cluster.tolist()))
        return fixed_temperature(rows)

    cross_validated(clustered, calibrator)
    assert [len(seen) for seen in fitted_on] == [16] * 5
    with pytest.raises(InputError, match="4 clusters are too few for 5 folds"):
        cross_validated(replace(p, cluster=np.repeat(np.arange(4), 50)), temperature)


def test_a_weight_of_two_is_the_row_twice_for_a_temperature(predictions):
    twice = np.arange(0, 2000, 3)
    weights = np.ones(2000)
    weights[twice] = 2
    rows = np.concatenate([np.arange(2000), twice])
    repeated = replace(predictions, ids=None)[rows]
    weighted = replace(predictions, weights=weights)
    assert temperature(weighted).t == pytest.approx(temperature(repeated).t, rel=1e-9)
    assert temperature(weighted).fit.after == pytest.approx(temperature(repeated).fit.after, rel=1e-9)
    assert temperature_by_ece(weighted).t == temperature_by_ece(repeated).t
    ones = replace(predictions, weights=np.ones(2000))
    assert temperature(ones).t == pytest.approx(temperature(predictions).t, rel=1e-9)


# Copies of a row in another fold would give away what is left out, so these choose a weaker ridge for repeated rows.
BY_FOLDS = ("vector", "structured_matrix", "dirichlet", "matrix")
QUICK = [name for name in CALIBRATORS if name not in ("auto", "temperature_ece", "temperature_ada_ece")]


def three_times(rows: Predictions) -> np.ndarray:
    return np.where(rows.outcomes().correct, 1, 3)


@pytest.mark.parametrize("name", [name for name in QUICK if name not in BY_FOLDS])
def test_a_weight_of_three_is_the_row_three_times(name, predictions):
    """But for what the number of rows decides: ridges, and how far a share of 0 or 1 is drawn in."""
    rows = replace(predictions, ids=None)
    fit, times = CALIBRATORS[name], three_times(rows)
    ignored, repeated = fit(rows), fit(rows[np.repeat(np.arange(len(rows)), times)])
    weighted = fit(replace(rows, weights=5.0 * times))
    told, expected, unweighted = (
        maps.apply(mapping, rows).outcomes().confidence for mapping in (weighted, repeated, ignored)
    )
    assert np.abs(told - expected).mean() < 0.05 * np.abs(unweighted - expected).mean()
    assert weighted.fit.after == pytest.approx(repeated.fit.after, rel=0.01)


@pytest.mark.parametrize("name", BY_FOLDS)
def test_weights_move_a_matrix_to_what_is_best_by_weight(name):
    rows, fresh = examples.load(split="held_out")[:2000], examples.load()[:3000]
    fresh = replace(fresh, weights=1.0 * three_times(fresh))
    fit, times = CALIBRATORS[name], three_times(rows)
    fitted = fit(rows), fit(rows[np.repeat(np.arange(len(rows)), times)]), fit(replace(rows, weights=5.0 * times))
    ignored, repeated, weighted = (evaluate(maps.apply(m, fresh), ["nll"])["nll"] for m in fitted)
    assert weighted < min(ignored - 0.03, repeated + 0.001)


@pytest.mark.parametrize("name", QUICK)
def test_equal_weights_are_none(name, predictions):
    found, expected = (
        maps.apply(CALIBRATORS[name](rows), predictions).outcomes().confidence
        for rows in (replace(predictions, weights=np.full(2000, 7.0)), predictions)
    )
    assert found == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("calibrator", [isotonic, platt, beta, spline])
def test_weighted_answers_all_wrong_at_the_end_leave_the_loss_finite(calibrator):
    rng = np.random.default_rng(0)
    confidence = np.repeat([0.2, 0.5, 0.8], 50)
    o = Outcomes.from_scores(confidence, confidence + rng.random(150) > 0.9, weights=rng.uniform(0.1, 9, 150))
    assert 0 < calibrator(o).fit.after < 1


@pytest.mark.parametrize("power", [0.3, 1.0, 3.0])
def test_of_bare_confidences_auto_takes_the_least_loss_or_none(power):
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.3, 1, 1500)
    found = auto(Outcomes.from_scores(confidence, rng.random(1500) < confidence**power))
    unchanged, *maps_of_it = found.fit.chosen_from
    least = min(maps_of_it, key=lambda candidate: candidate.loss)
    assert found.fit.why.split()[0] == ("unchanged" if power == 1.0 else least.name)
    assert power == 1.0 or unchanged.behind > 0.01
