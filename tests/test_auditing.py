"""The audit: what it measures, what it says, and what it admits not to know."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import hypergeom

from assay import Outcomes, Predictions, audit, evaluate, examples
from assay.auditing import Finding
from assay.metrics import inference

WITH_INTERVAL = {
    *("accuracy", "nll", "brier", "ece", "ada_ece", "ece_l2_mass", "debiased_ece", "auroc", "aupr_success"),
    *("aupr_error", "fpr95", "aurc", "e_aurc", "augrc", "risk_at_80", "risk_at_90", "risk_at_95"),
}


def test_values_are_those_of_evaluate(predictions):
    found = audit(predictions, draws=20)
    assert {key: m.value for key, m in found.measurements.items()} == evaluate(predictions)


def test_each_metric_has_an_interval_or_says_why_not(predictions):
    found = audit(predictions, draws=20)
    assert {key for key, m in found.measurements.items() if m.interval} == WITH_INTERVAL
    for m in found.measurements.values():
        assert (m.interval is None) == bool(m.note)
        assert m.interval is None or m.interval.low <= m.value <= m.interval.high


def test_ece_carries_its_noise_floor(predictions):
    found = audit(predictions)
    assert 0 < found["ece"].floor < found["ece"].interval.low
    assert found.calibrated_p == pytest.approx(1 / 1001)


def test_a_calibrated_model_shows_its_floor_and_may_be_calibrated():
    rng = np.random.default_rng(0)
    c = rng.uniform(0.4, 1, 3000)
    found = audit(Outcomes.from_scores(c, rng.random(3000) < c))
    assert found.calibrated_p > 0.05
    assert found["ece"].interval.low == 0
    assert str(found).startswith("No sign of miscalibration")


def test_the_same_seed_gives_the_same_audit(predictions):
    assert audit(predictions, draws=50, seed=3) == audit(predictions, draws=50, seed=3)
    assert audit(predictions, draws=50, seed=3) != audit(predictions, draws=50, seed=4)


def test_too_few_errors_are_said_not_hidden():
    correct = np.arange(500) >= 7
    found = audit(Outcomes.from_scores(np.linspace(0.5, 1, 500), correct), draws=20)
    assert found["auroc"].interval is None
    assert found["auroc"].note == "only 7 errors, at least 20 are needed"
    assert "only 7 errors" in str(found)
    assert found["accuracy"].interval is not None


def test_all_right_is_said():
    found = audit(Outcomes.from_scores([0.9, 0.8], [1, 1]), draws=20)
    assert math.isnan(found["auroc"].value)
    assert "all answers are right" in str(found)


def test_infinite_nll_has_no_interval():
    found = audit(Predictions.from_probabilities([[1.0, 0.0]] * 3, [0, 0, 1]), draws=20)
    assert found["nll"].value == math.inf
    assert found["nll"].interval is None
    assert "infinite" in found["nll"].note


def test_a_mere_score_is_only_ranked(predictions):
    o = predictions.outcomes()
    found = audit(Outcomes.from_scores(np.log(o.confidence), o.correct, is_probability=False))
    assert found.calibrated_p is None
    assert "ece" not in found.measurements
    assert found["auroc"].interval == audit(predictions, draws=5)["auroc"].interval
    assert "can only rank" in str(found)


def binary(power: float, n: int = 4000) -> Predictions:
    """A probability of class 1 that is too high by a power; top labels of class 0 and 1 err in opposite directions."""
    rng = np.random.default_rng(0)
    p = rng.random(n)
    return Predictions.from_binary_probabilities(p, (rng.random(n) < p**power).astype(int))


def test_of_two_classes_the_positive_one_is_tested_too():
    found = audit(binary(1.5))
    assert found.calibrated_p > 0.05
    assert found.positive.p_value == pytest.approx(1 / 1001)
    assert found.positive.excess == pytest.approx(1 / 2 - 1 / 2.5, abs=0.02)
    ece = found["ece_positive"]
    assert 0 < ece.floor < ece.interval.low < ece.value < ece.interval.high
    assert str(found).startswith("The probability of class 1 is too high by 9.9 points: ECE 9.86%, where noise")
    assert "No sign" not in str(found)


def test_two_calibrated_classes_show_no_sign_of_either_kind():
    found = audit(binary(1.0))
    assert str(found).startswith("No sign of miscalibration in the confidence of the answers: ECE")
    assert "No sign of it in the probability of class 1: ECE" in str(found)
    assert found["ece_positive"].interval.low == found["ada_ece_positive"].interval.low == 0


def test_two_classes_both_over_confident_are_said_both():
    rng = np.random.default_rng(0)
    z = rng.normal(0, 1.5, 8000)
    labels = (rng.random(8000) < 1 / (1 + np.exp(-z))).astype(int)
    words = str(audit(Predictions.from_binary_logits(2.5 * z, labels), draws=200))
    assert words.startswith("Over-confident by")
    assert "The probability of class 1 is too high here and too low there: ECE" in words


def test_a_calibrated_positive_class_gets_its_p_value_fairly():
    """Under 5 % of false alarms, and an interval that holds the truth, 0."""
    rng = np.random.default_rng(5)
    alarms = misses = 0
    for _ in range(200):
        p = rng.beta(0.4, 2, 600)  # few positives
        found = audit(Predictions.from_binary_probabilities(p, (rng.random(600) < p).astype(int)), draws=200)
        alarms += not str(found).startswith("No sign") or "is too" in str(found)
        misses += found["ece_positive"].interval.low > 0
    assert alarms <= 16
    assert misses <= 16


def test_more_than_two_classes_have_no_positive_one(predictions):
    assert audit(predictions, draws=20).positive is None


@pytest.mark.parametrize(
    ("shift", "words"),
    [(-0.15, "Over-confident by 15"), (0.1, "Under-confident by 10")],
)
def test_the_verdict_has_a_direction(shift, words):
    rng = np.random.default_rng(1)
    c = rng.uniform(0.3, 0.85, 20_000)
    assert str(audit(Outcomes.from_scores(c, rng.random(20_000) < c + shift), draws=50)).startswith(words)


def test_miscalibration_without_a_direction_is_said():
    rng = np.random.default_rng(2)
    c = rng.uniform(0.3, 0.9, 20_000)
    o = Outcomes.from_scores(c, rng.random(20_000) < np.where(c > 0.6, c - 0.1, c + 0.1))
    assert str(audit(o, draws=50)).startswith("Miscalibrated, too high here and too low there")


def grouped() -> Outcomes:
    """Three groups of one law, and one whose confidence is too high and says little."""
    rng = np.random.default_rng(3)
    c = rng.uniform(0.4, 1, 4000)
    group = np.repeat(["a", "b", "c", "d"], 1000)
    right = np.where(group == "d", 0.55, c)
    return Outcomes.from_scores(c, rng.random(4000) < right, group=group)


def test_each_group_is_audited_like_a_file_of_its_own():
    o = grouped()
    found = audit(o, draws=30)
    assert list(found.groups) == ["a", "b", "c", "d"]
    assert found.worst_first[0] == "d"
    assert sorted(found.worst_first) == ["a", "b", "c", "d"]
    rows = o.group == "b"
    alone = Outcomes.from_scores(o.confidence[rows], o.correct[rows])
    assert found.groups["b"] == audit(alone, draws=30)


def test_the_worse_group_is_named_and_no_other():
    findings = audit(grouped(), draws=30).findings
    assert {finding.group for finding in findings} == {"d"}
    assert {finding.metric for finding in findings} == {"accuracy", "over_confidence", "calibration_part", "auroc"}
    assert all(isinstance(finding, Finding) and finding.p_value < 0.05 for finding in findings)


def test_an_over_confident_group_is_told_by_how_much():
    found = next(f for f in audit(grouped(), draws=30).findings if f.metric == "over_confidence")
    assert found.interval.low < found.value < found.interval.high
    assert str(found).startswith("d: over-confident by ")
    mirrored = replace(found, value=-found.value, interval=inference.Interval(-0.2, -0.1))
    assert "under-confident by" in str(mirrored)
    assert "(10.0 to 20.0)" in str(mirrored)


def test_groups_chosen_by_the_true_label_are_compared_by_accuracy_alone():
    """Of a calibrated model the answers to a rare class are over-confident, whatever the model."""
    rng = np.random.default_rng(0)
    p = rng.beta(1, 4, 3000)
    label = rng.random(3000) < p
    group = np.where(label, "ill", "well")
    found = audit(Predictions.from_binary_probabilities(p, label.astype(int), group=group), draws=30)
    assert found.by_label
    assert {finding.metric for finding in found.findings} == {"accuracy"}
    assert list(found.groups["ill"].measurements) == ["accuracy"]
    assert "only its accuracy can be judged" in str(found.groups["ill"])
    by_answer = Predictions.from_binary_probabilities(p, label.astype(int), group=p > 0.5)
    assert not audit(by_answer, draws=30).by_label


def test_what_a_group_could_have_shown_falls_with_its_size():
    rng = np.random.default_rng(1)
    c = rng.uniform(0.4, 1, 3000)
    group = np.repeat(["large", "small"], [2800, 200])
    found = audit(Outcomes.from_scores(c, rng.random(3000) < c, group=group), draws=5)
    assert 0.05 < found.detectable["small"] < 0.2
    assert found.detectable["large"] == pytest.approx(found.detectable["small"], rel=0.1)  # the rest is the small one


@pytest.mark.parametrize("n", [1, 3, 10])
def test_few_rows_are_too_few_to_tell(n):
    assert str(audit(Outcomes.from_scores([0.9] * n, [True] * n), draws=100)).startswith("Too few samples to tell")


def test_a_group_of_one_is_legal():
    o = Outcomes.from_scores([0.9, 0.8, 0.7], [1, 1, 0], group=["a", "a", "b"])
    assert audit(o, draws=5).groups["b"].n == 1


def test_groups_of_predictions_keep_the_classwise_metrics(predictions):
    tagged = Predictions.from_logits(predictions.values, predictions.labels, group=np.arange(len(predictions)) % 2)
    assert "classwise_ece" in audit(tagged, draws=5).groups["1"].measurements


def test_embedded_networks_are_as_described():
    for model in examples.MODELS:
        assert len(examples.load(model, "held_out")) == 5000
        found = evaluate(examples.load(model))
        assert found["accuracy"] > 0.7
    assert evaluate(examples.load("cross_entropy"))["ece"] > 0.1
    with pytest.raises(ValueError, match="no embedded 'x' on 'test'"):
        examples.load("x")


@pytest.mark.parametrize(
    ("wrong", "n", "other_wrong", "other_n"), [(3, 10, 5, 90), (0, 5, 7, 20), (10, 10, 0, 30), (40, 2000, 500, 50_000)]
)
def test_fishers_test_is_scipys(wrong, n, other_wrong, other_n):
    expected = hypergeom.sf(wrong - 1, n + other_n, wrong + other_wrong, n)
    assert inference.fisher(wrong, n, other_wrong, other_n) == pytest.approx(expected, rel=1e-8)
