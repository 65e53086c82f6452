"""Comparison: the same samples, paired differences, and a verdict for each axis."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom, ttest_rel

from assay import Outcomes, Predictions, audit, compare, examples, metrics
from assay._core.arrays import InputError
from assay.metrics import COMPARED, Tables, inference
from assay.metrics.inference import holm
from assay.planning import plan


def words(comparison) -> dict[str, str]:
    return {verdict.axis: verdict.word for verdict in comparison.verdicts}


def test_a_model_does_not_differ_from_itself(predictions):
    found = compare(predictions, predictions)
    assert set(words(found).values()) == {"none shown"}
    assert all(d.value == 0 or np.isnan(d.value) for d in found.differences.values())


def test_rows_are_matched_by_ids(predictions):
    other = Predictions.from_logits(predictions.values / 2, predictions.labels, ids=predictions.ids)
    straight = compare(predictions, other)
    shuffled = compare(predictions, other[np.random.default_rng(0).permutation(len(other))])
    for key, difference in straight.differences.items():
        assert shuffled[key].value == pytest.approx(difference.value, abs=1e-12)
        if difference.p_value is not None:
            assert shuffled[key].p_value == pytest.approx(difference.p_value, abs=1e-9)


def test_number_and_text_ids_match():
    a = Outcomes.from_scores([0.9, 0.6], [1, 0], ids=[10, 9])
    b = Outcomes.from_scores([0.6, 0.9], [0, 1], ids=["9", "10"])
    assert compare(a, b)["auroc"].value == 0
    assert compare(a, b)["accuracy"].value == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p: p[:1999], "not the same samples: 2000 rows against 1999"),
        (lambda p: Predictions.from_logits(p.values, p.labels), "^the first has ids and the second has none;"),
        (lambda p: Predictions.from_logits(p.values, p.labels, ids=np.arange(2000) + 1), "id 0 is in the first only"),
        (lambda p: Predictions.from_logits(p.values, (p.labels + 1) % 10, ids=p.ids), "row 0 has label"),
    ],
)
def test_other_samples_are_refused(predictions, change, message):
    with pytest.raises(InputError, match=message):
        compare(predictions, change(predictions))


def test_the_one_without_ids_is_called_by_its_name(predictions):
    bare = Predictions.from_logits(predictions.values, predictions.labels)
    with pytest.raises(InputError, match=r"^new has ids and old has none; give them to both or to neither$"):
        compare(bare, predictions, names=("old", "new"))


def test_without_ids_rows_are_said_to_be_paired_in_order(predictions):
    bare = Predictions.from_logits(predictions.values, predictions.labels)
    assert compare(predictions, predictions).by_ids
    assert not compare(bare, bare).by_ids
    with pytest.raises(
        InputError, match=r"row \d+ has label \d in old, \d in new; without ids rows are paired in order"
    ):
        compare(bare, bare[::-1], names=("old", "new"))


def test_a_temperature_is_seen_to_improve_calibration_alone(predictions):
    cooler = Predictions.from_logits(predictions.values / 2, predictions.labels, ids=predictions.ids)
    found = compare(predictions, cooler)
    assert words(found)["calibration"] == "better"
    assert words(found)["accuracy"] == "none shown"
    assert found["calibration_part"].interval.high < 0


def test_lost_ranking_is_seen():
    """The same answers, calibrated both times, but the second confidence knows only half of what the first does."""
    rng = np.random.default_rng(0)
    hint, rest = rng.uniform(-0.2, 0.2, (2, 8000))
    correct = rng.random(8000) < 0.6 + hint + rest
    found = compare(Outcomes.from_scores(0.6 + hint + rest, correct), Outcomes.from_scores(0.6 + hint, correct))
    assert words(found) == {"accuracy": "none shown", "calibration": "none shown", "refinement": "worse"}
    assert str(found) == "accuracy none shown, calibration none shown, refinement worse"


def test_two_classes_are_ranked_alike_at_any_temperature():
    rng = np.random.default_rng(1)
    z = rng.normal(0, 2, 4000)
    labels = (rng.random(4000) < 1 / (1 + np.exp(-z))).astype(int)
    found = compare(Predictions.from_binary_logits(z, labels), Predictions.from_binary_logits(z / 3, labels))
    assert found["auroc"].p_value == 1
    assert words(found)["refinement"] == "none shown"


def test_of_two_classes_the_positive_one_has_a_verdict_of_its_own():
    """Top labels of class 1 err upward and of class 0 downward, so that their bins do not show it."""
    rng = np.random.default_rng(0)
    p = rng.random(4000)
    labels = (rng.random(4000) < p**1.5).astype(int)
    given, right = (Predictions.from_binary_probabilities(x, labels) for x in (p, p**1.5))
    found = words(compare(given, right))
    assert found["calibration of class 1"] == "better"
    assert found["calibration"] == "none shown"
    assert list(found) == ["accuracy", "calibration", "calibration of class 1", "refinement"]


def test_few_positives_cannot_tell_of_class_1():
    rng = np.random.default_rng(0)
    labels = np.arange(1000) < 7
    a, b = (Predictions.from_binary_probabilities(rng.random(1000), labels) for _ in range(2))
    [verdict] = [verdict for verdict in compare(a, b).verdicts if verdict.axis == "calibration of class 1"]
    assert str(verdict) == "calibration of class 1: cannot tell (only 7 positives, at least 20 are needed)"


def test_equal_models_of_a_rare_class_are_called_different_seldom():
    """Two noisy copies of one model, exchangeable and so equal: at most one false alarm in twenty on any axis."""
    rng = np.random.default_rng(4)
    alarms = 0
    for _ in range(150):
        z = rng.normal(-3, 1.5, 1500)
        labels = (rng.random(1500) < 1 / (1 + np.exp(-z))).astype(int)
        a, b = (Predictions.from_binary_logits(1.5 * (z + rng.normal(0, 0.7, 1500)), labels) for _ in range(2))
        alarms += compare(a, b)["part_positive"].p_value < 0.05
    assert alarms <= 13


def test_paired_means_are_students(predictions):
    other = Predictions.from_logits(np.roll(predictions.values, 1, 1) * 0.5 + predictions.values, predictions.labels)
    first, second = predictions[:].outcomes(), other.outcomes()
    bare = Predictions.from_logits(predictions.values, predictions.labels)
    found = compare(bare, other)
    for key in ("nll", "brier"):
        test = ttest_rel(getattr(second, key), getattr(first, key))
        low, high = test.confidence_interval()
        assert found[key].p_value == pytest.approx(test.pvalue, rel=1e-6)
        assert (found[key].interval.low, found[key].interval.high) == pytest.approx((low, high), rel=1e-6)


def test_too_few_errors_cannot_tell():
    correct = np.arange(300) >= 5
    a = Outcomes.from_scores(np.linspace(0.5, 1, 300), correct)
    b = Outcomes.from_scores(np.linspace(0.5, 1, 300)[::-1].copy(), correct)
    found = compare(a, b)
    assert words(found)["refinement"] == "cannot tell"
    assert "only 5 errors" in str(found.verdicts[2])


def test_mere_scores_are_compared_by_rank_alone(predictions):
    o = predictions.outcomes()
    score = Outcomes.from_scores(-o.entropy, o.correct, ids=o.ids, is_probability=False)
    found = compare(predictions, score)
    assert words(found)["calibration"] == "cannot tell"
    assert "ece" not in found.differences
    assert found["auroc"].p_value is not None


def test_ece_differences_claim_no_test(predictions):
    found = compare(predictions, predictions)
    assert found["ece"].p_value is None
    assert found["ece"].note == "no paired test of known level"


def test_debiased_square_is_unbiased():
    """Calibrated answers have a squared error of 0 on average, miscalibrated ones theirs."""
    rng = np.random.default_rng(2)
    for gap in (0.0, 0.05):
        values = []
        for _ in range(400):
            c = rng.uniform(0.3, 1, 300)
            o = Outcomes.from_scores(c, rng.random(300) < c - gap)
            values.append(inference.calibration_estimate(inference.calibration_part(o, metrics.ranking(o))).value)
        assert np.mean(values) == pytest.approx(gap**2, abs=4 * np.std(values) / 20)


def test_a_model_and_its_copy_in_double_precision_do_not_differ():
    p = examples.load()
    assert set(words(compare(p, Predictions.from_logits(p.values.astype(float), p.labels))).values()) == {"none shown"}


@pytest.mark.parametrize(("n", "p_value"), [(2, 0.5), (5, 0.0625), (10, 2 / 2**10)])
def test_accuracies_are_compared_by_the_exact_test_of_mcnemar(n, p_value):
    a, b = Outcomes.from_scores([0.9] * n, [1] * n), Outcomes.from_scores([0.9] * n, [0] * n)
    found = compare(a, b)["accuracy"]
    assert found.p_value == pytest.approx(p_value)
    assert -1 <= found.interval.low < 0
    assert (found.interval.high <= 0) == (p_value < 0.05)


def test_few_samples_do_not_decide():
    found = compare(Outcomes.from_scores([0.9], [1]), Outcomes.from_scores([0.8], [1]))
    assert words(found) == {"accuracy": "none shown", "calibration": "cannot tell", "refinement": "cannot tell"}


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.6]) == [1.0, 1.0]
    assert holm([]) == []


def test_label_smoothing_of_the_example_calibrates_and_ranks_no_better():
    found = compare(examples.load("cross_entropy"), examples.load("label_smoothing"))
    assert words(found)["calibration"] == "better"
    assert words(found)["refinement"] != "better"
    assert found["e_aurc"].interval.low > 0


def noisy(seed: int, n: int = 400, shift: float = 0.0) -> tuple[Outcomes, Outcomes]:
    """Two models on the same samples; the second is right less often by `shift`."""
    rng = np.random.default_rng(seed)
    c, d, luck = rng.uniform(0.5, 1, n), rng.uniform(0.5, 1, n), rng.random(n)
    return Outcomes.from_scores(c, luck < c), Outcomes.from_scores(d, luck < d - shift)


@pytest.mark.parametrize("shift", [0.0, 0.05, 0.1])
def test_intervals_never_contradict_verdicts(shift):
    for seed in range(15):
        found = compare(*noisy(seed, shift=shift))
        for verdict in found.verdicts:
            interval = found[verdict.metric].interval
            decided = not interval.low < 0 < interval.high
            assert decided == (verdict.word in ("better", "worse")), (seed, verdict, interval)


def test_where_nothing_is_shown_the_verdict_says_what_would_have_been():
    few, many = (compare(*noisy(1, n)).verdicts[2] for n in (400, 6400))
    assert few.word == many.word == "none shown"
    assert few.detectable / many.detectable == pytest.approx(4, rel=0.3)
    assert "would have been shown 4 times of 5" in few.reason


def test_a_difference_of_the_detectable_size_is_shown_four_times_of_five():
    """Accuracies that differ by what 400 samples of equal models said they would show."""
    size = float(np.median([compare(*noisy(seed)).verdicts[0].detectable for seed in range(9)]))
    words = [compare(*noisy(seed, shift=size)).verdicts[0].word for seed in range(100, 160)]
    assert 0.68 <= np.mean([word == "worse" for word in words]) <= 0.92


def test_models_are_equivalent_only_within_a_margin_that_the_samples_can_tell():
    a, b = noisy(2, 6400)
    assert words(compare(a, b, margin=0.05))["accuracy"] == "equivalent"
    assert words(compare(a, b, margin=0.005))["accuracy"] == "none shown"
    assert words(compare(a, b, margin={"refinement": 0.05})) == {
        "accuracy": "none shown",
        "calibration": "none shown",
        "refinement": "equivalent",
    }
    with pytest.raises(InputError, match="margin names 'ranking'"):
        compare(a, b, margin={"ranking": 0.1})


def test_a_difference_of_methods_exceeds_that_of_their_runs():
    """Two runs that differ by training: either pair of runs differs significantly, the methods do not."""
    good, bad = noisy(3, 4000, shift=0.08)
    assert words(compare(good, bad))["accuracy"] == "worse"
    assert words(compare([good, bad], [bad, good]))["accuracy"] == "none shown"
    alike = compare([good] * 3, [bad] * 3)
    assert words(alike)["accuracy"] == "worse"
    assert alike.runs == 3
    with pytest.raises(InputError, match="same number of runs, got 2 and 1"):
        compare([good, bad], [good])


def test_the_noise_between_runs_is_added_to_that_of_the_test_set():
    a, b = np.array([0.1, 0.3]), np.array([0.5, 0.5])
    found = inference.of_runs(0.3, *map(inference.mean_estimate, (a, b)), inference.Estimate(0.3, 0.1, 50))
    assert found.value == 0.3
    assert found.error**2 == pytest.approx(0.02 / 2 + 0.1**2)
    assert found.degrees == pytest.approx(0.02**2 / (0.01**2 + 0.01**2 / 50))


def test_equal_runs_tell_no_more_of_the_samples_than_one():
    a, b = examples.load(), examples.load("label_smoothing")
    for key in ("accuracy", "nll", "brier", "auroc", "aurc", "calibration_part"):
        metric = COMPARED[key]
        one, three = (metric.paired([Tables(a)] * runs, [Tables(b)] * runs).estimate for runs in (1, 3))
        room = 1e-3 if key == "accuracy" else 1e-9  # one pair of accuracies has an estimate of its own
        assert (three.value, three.error) == pytest.approx((one.value, one.error), rel=room), key


def test_errors_of_unlike_runs_even_out():
    """Four runs that have nothing in common but the labels' law have a quarter of the variance of one."""
    rng = np.random.default_rng(6)

    def run() -> Tables:
        c = rng.uniform(0.5, 1, 4000)
        return Tables(Outcomes.from_scores(c, rng.random(4000) < c**2))

    a, b = [run() for _ in range(4)], [run() for _ in range(4)]
    for key in ("accuracy", "auroc", "aurc", "calibration_part"):
        metric = COMPARED[key]
        single = np.mean([metric.paired([x], [y]).estimate.error ** 2 for x, y in zip(a, b, strict=True)])
        assert metric.paired(a, b).estimate.error ** 2 == pytest.approx(single / 4, rel=0.15), key


def test_variances_that_are_alike_lend_each_other_as_much_as_their_number_allows():
    columns = [np.array([x, x + 1.0, x + 2.0]) for x in range(5)]
    for found, column in zip(inference.moderated(columns), columns, strict=True):
        assert found == inference.Estimate(column.mean(), pytest.approx(np.sqrt(1 / 3)), 2 + 5 / 3)


def test_variances_that_differ_by_far_stay_their_own():
    rng = np.random.default_rng(7)
    columns = [2.0**i * rng.normal(size=30) for i in range(8)]
    for found, column in zip(inference.moderated(columns), columns, strict=True):
        own = inference.mean_estimate(column)
        assert found.error == pytest.approx(own.error, rel=0.15)
        assert own.degrees <= found.degrees < own.degrees + 1


def test_a_column_that_varies_far_more_than_the_others_keeps_to_itself():
    rng = np.random.default_rng(9)
    columns = [rng.normal(size=3) for _ in range(11)]
    plain, found = inference.moderated(columns), inference.moderated([*columns, 100 * rng.normal(size=3)])
    assert found[:-1] == plain
    assert found[-1].degrees == 2


def test_the_common_law_of_variances_is_found():
    """Variances drawn from the law that is assumed, with 6 prior degrees of freedom about a variance of 4."""
    rng = np.random.default_rng(8)
    variances = 4 * 6 / rng.chisquare(6, 4000)
    columns = list(np.sqrt(variances)[:, None] * rng.normal(size=(4000, 3)))
    found = inference.moderated(columns)
    degrees = found[0].degrees - 2
    assert degrees == pytest.approx(6, rel=0.15)
    lent = [i for i, x in enumerate(found) if x.degrees > 2]
    assert len(lent) > 3990  # and hardly any is called an outlier
    shrunken = np.array([found[i].error ** 2 * 3 for i in lent])
    own = np.array([columns[i].var(ddof=1) for i in lent])
    np.testing.assert_allclose(((degrees + 2) * shrunken - 2 * own) / degrees, 4, rtol=0.1)


@pytest.mark.parametrize(("n", "draws"), [(100, 400), (400, 400), pytest.param(170, 4000, marks=pytest.mark.long)])
@pytest.mark.parametrize("design", ["none", "weights", "clusters"])
def test_models_that_differ_by_the_margin_are_seldom_called_equivalent(design, n, draws):
    """The second is wrong where the first is right, once in a hundred: each draw has few such pairs or none."""
    rng, wrong = np.random.default_rng(11), 0
    given = {"none": {}, "weights": {"weights": np.ones(n)}, "clusters": {"cluster": np.arange(n) // 2}}[design]
    size = 2 if design == "clusters" else 1
    for _ in range(draws):
        right = np.repeat(rng.random(n // size) >= 0.01, size)
        a, b = (Outcomes.from_scores(np.full(n, 0.9), k, **given) for k in (np.ones(n, dtype=bool), right))
        wrong += compare(a, b, margin=0.01).verdicts[0].word == "equivalent"
    assert wrong <= binom.ppf(0.999, draws, 0.05)


def test_models_that_answer_alike_are_told_apart_by_the_difference_that_is_said():
    """So many pairs of 10,000, all on one side, are shown 4 times of 5."""
    n, rng = 10_000, np.random.default_rng(12)
    c = rng.uniform(0.5, 1, n)
    o = Outcomes.from_scores(c, rng.random(n) < c)
    size = compare(o, o).verdicts[0].detectable
    seen = 0
    for _ in range(60):
        lost = o.correct & (rng.random(n) < size / o.correct.mean())
        seen += compare(o, replace(o, correct=o.correct & ~lost)).verdicts[0].word == "worse"
    assert 0.65 <= seen / 60 <= 0.95


def test_equivalence_and_its_interval_agree():
    """Equivalent exactly if the interval lies within the margin, also where a small difference is shown."""
    words = set()
    for seed, n, margin in product(range(12), (4000, 40_000), (0.004, 0.01, 0.02)):
        found = compare(*noisy(seed, n, shift=0.004), margin=margin)
        for verdict in found.verdicts:
            if verdict.axis in ("accuracy", "refinement"):
                interval = found[verdict.metric].interval
                inside = -margin < interval.low <= interval.high < margin
                assert (verdict.word == "equivalent") == inside or verdict.word in ("better", "worse")
                assert (verdict.word in ("better", "worse")) <= (interval.low > 0 or interval.high < 0)
                words.add(verdict.word)
    assert {"equivalent", "none shown"} <= words


def test_runs_of_unlike_kinds_share_the_metrics_that_all_have(predictions):
    found = compare([predictions, predictions.outcomes()], [predictions, predictions])
    assert "classwise_ece" not in found.differences
    assert "auroc" in found.differences


def test_few_clusters_tell_nothing():
    rng = np.random.default_rng(13)
    c = rng.uniform(0.5, 1, 300)
    for clusters in (1, 4):
        a, b = (Outcomes.from_scores(c, rng.random(300) < c, cluster=np.arange(300) % clusters) for _ in "ab")
        assert {verdict.word for verdict in compare(a, b).verdicts} == {"cannot tell"}
        found = audit(a)
        assert all(m.interval is None for m in found.measurements.values())
        assert "Too few samples to tell" in str(found)


def test_a_plan_meets_what_comparisons_can_show():
    """As many samples as planned have that power: half a point needs four times as many as a point."""
    a, b = noisy(4, 2000)
    one, half = (plan(a, {"auroc": size}, b)[0].n for size in (0.01, 0.005))
    assert half / one == pytest.approx(4, rel=0.01)
    error = compare(a, b)["auroc"].estimate.error
    # Three axes share 5 %: 2.394 of a two-sided test at a third of it, .842 of a power of 80 %.
    assert one == pytest.approx((3.2356 * error / 0.01) ** 2 * 2000, rel=0.01)


def test_a_plan_of_one_model():
    o = Outcomes.from_scores(np.full(1000, 0.8), np.arange(1000) < 800)
    assert plan(o, {"risk": 0.02})[0].n == pytest.approx((1.96 + 0.8416) ** 2 * 0.16 / 0.02**2, rel=0.01)
    with pytest.raises(InputError, match="cannot plan for 'mce'"):
        plan(o, {"mce": 0.01})
