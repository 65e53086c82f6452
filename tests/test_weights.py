"""Rows that do not count alike: weights in every metric, on disk, and by known shares of the classes."""

from __future__ import annotations

import numpy as np
import pytest

from assay import Outcomes, Predictions, evaluate, files, metrics
from assay._core.arrays import InputError

# These count samples, not shares of them: repeating every row changes them by a part in n.
BY_COUNT = {"aurc", "e_aurc", "sweep_ece", "risk_at_80", "risk_at_90", "risk_at_95"}


def weighted(p: Predictions, weights: np.ndarray) -> Predictions:
    return Predictions.from_logits(p.logits, p.labels, weights=weights)


def pair(seed: int, n: int = 400, ties: bool = False) -> Predictions:
    rng = np.random.default_rng(seed)
    logit = rng.normal(size=n).round(1) if ties else rng.normal(size=n)
    return Predictions.from_binary_logits(2 * logit, rng.random(n) < 1 / (1 + np.exp(-logit)))


@pytest.mark.parametrize("weight", [1.0, 0.001, 250.0])
@pytest.mark.parametrize("ties", [False, True])
def test_equal_weights_are_none(weight, ties):
    p = pair(0, ties=ties)
    expected = evaluate(p)
    assert evaluate(weighted(p, np.full(len(p), weight))) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("ties", [False, True])
def test_a_weight_counts_as_that_many_rows(ties):
    p = pair(1, ties=ties)
    times = np.random.default_rng(2).integers(1, 5, len(p))
    found, expected = evaluate(weighted(p, times)), evaluate(p[np.repeat(np.arange(len(p)), times)])
    for key in expected.keys() - {"debiased_ece"}:
        tolerance = 0.03 if key in BY_COUNT else 1e-9
        assert found[key] == pytest.approx(expected[key], rel=tolerance, abs=1e-12), key


def test_noise_taken_off_is_that_of_the_effective_number_of_samples():
    """Weights 1 and 3 in equal number tell as much as 4/5 of the samples; one bin of confidence .8, half are right."""
    o = Outcomes.from_scores([0.8] * 40, [True, True, False, False] * 10, weights=[1.0, 3.0] * 20)
    assert metrics.squared_ce(o, n_bins=1) == pytest.approx(0.3**2 - 0.25 / (0.8 * 40 - 1))


def test_weights_of_many_classes(predictions):
    times = np.random.default_rng(3).integers(1, 4, len(predictions))
    found = evaluate(weighted(predictions, times), ["classwise_ece", "tace", "nll", "brier", "mean_entropy"])
    repeated = predictions[np.repeat(np.arange(len(predictions)), times)]
    repeated = Predictions.from_logits(repeated.logits, repeated.labels)
    assert found == pytest.approx(evaluate(repeated, list(found)), rel=1e-6)


def test_weighted_rankings_merge_to_the_whole():
    rng = np.random.default_rng(4)
    c = rng.integers(1, 30, 300) / 30
    o = Outcomes.from_scores(c, rng.random(300) < c, weights=np.exp(rng.normal(size=300)))
    plain = Outcomes.from_scores([0.35, 0.7], [False, True])
    merged, whole = metrics.ranking(o[:100]) + metrics.ranking(o[100:]), metrics.ranking(o)
    for table in ("score", "kept", "wrong"):
        assert getattr(merged, table) == pytest.approx(getattr(whole, table), rel=1e-12)
    assert merged.weighing.squares == pytest.approx(whole.weighing.squares, rel=1e-12)
    assert (merged.n, merged.n_wrong) == (whole.n, whole.n_wrong)
    both = o + Outcomes.from_scores(plain.confidence, plain.correct, weights=[1.0, 1.0])
    assert metrics.auroc(whole + metrics.ranking(plain)) == pytest.approx(metrics.auroc(both), rel=1e-12)


def test_a_prior_weighs_the_classes():
    """One of ten rows is positive in the file, one of a hundred where the model is used."""
    p = Predictions.from_binary_probabilities([0.8] * 2 + [0.6] * 2 + [0.1] * 16, [1, 0, 0, 1] + [0] * 16)
    shifted = p.with_prior([0.99, 0.01])
    assert shifted.weights[p.labels == 1].sum() / shifted.weights.sum() == pytest.approx(0.01)
    assert metrics.accuracy(shifted) == pytest.approx(0.01 * 1 + 0.99 * 16 / 18)
    with pytest.raises(InputError, match=r"2 shares that sum to 1, got 0.9, 0.2"):
        p.with_prior([0.9, 0.2])
    with pytest.raises(InputError, match="class 1 has a share of 0 in the prior but not in the rows"):
        p.with_prior([1.0, 0.0])


def test_a_prior_is_given_by_number_or_name(tmp_path):
    (tmp_path / "a.csv").write_text("labels,p_ham,p_spam\nspam,.2,.8\nham,.6,.4\nspam,.7,.3\nham,.9,.1\n")
    (tmp_path / "b.csv").write_text("confidence,correct\n.9,1\n")
    names = {"probabilities": "p_*"}
    plain = files.read(tmp_path / "a.csv", files.Columns(**names))
    expected = plain.with_prior([0.9, 0.1]).weights.tolist()
    assert expected == pytest.approx([0.2, 1.8, 0.2, 1.8])
    for prior in ("0.9,0.1", "spam=0.1,ham=0.9"):
        found = files.read(tmp_path / "a.csv", files.Columns(**names, prior=prior))
        assert found.weights.tolist() == expected
    for prior, problem in (
        ("half", "write '0.9,0.1' or 'ham=0.9,spam=0.1'"),
        ("ham=0.9,eggs=0.1", "prior names the classes ham, eggs; the predictions have ham, spam"),
    ):
        with pytest.raises(InputError, match=problem):
            files.read(tmp_path / "a.csv", files.Columns(**names, prior=prior))
    with pytest.raises(InputError, match="--prior needs the true classes"):
        files.read(tmp_path / "b.csv", files.Columns(prior="0.9,0.1"))


@pytest.mark.parametrize("ending", ["npz", "parquet", "csv"])
def test_weights_and_clusters_are_read_and_written(tmp_path, ending):
    weights, cluster = [1.0, 2.5, 0.5], ["anna", "bo", "anna"]
    p = Predictions.from_binary_probabilities([0.9, 0.2, 0.6], [1, 0, 1], weights=weights, cluster=cluster)
    files.write(p.outcomes(), tmp_path / f"rows.{ending}")
    found = files.read(tmp_path / f"rows.{ending}")
    assert found.weights.tolist() == weights
    assert found.cluster.tolist() == cluster
    assert files.read(tmp_path / f"rows.{ending}")[1:].cluster.tolist() == cluster[1:]


def test_columns_of_weights_and_clusters_have_flags(tmp_path):
    (tmp_path / "a.csv").write_text("confidence,correct,w,patient\n.9,1,2,07\n.6,0,1,7\n")
    found = files.read(tmp_path / "a.csv", files.Columns(weight="w", cluster="patient"))
    assert found.weights.tolist() == [2.0, 1.0]
    assert found.cluster.tolist() == ["07", "7"]
    with pytest.raises(InputError, match=r"no column 'v'; .* name it by --weight"):
        files.read(tmp_path / "a.csv", files.Columns(weight="v"))


@pytest.mark.parametrize("weight", [0.0, -1.0, float("nan"), float("inf")])
def test_a_weight_that_is_none_is_refused(weight):
    with pytest.raises(InputError, match=f"row 1: weight is {weight}"):
        Outcomes.from_scores([0.9, 0.8], [True, False], weights=[1.0, weight])
