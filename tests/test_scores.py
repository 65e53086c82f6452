"""Scores: their definitions, what they refuse, and TrustScore against a plain search."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp, xlogy

from assay import Predictions, evaluate
from assay._core.arrays import InputError, softmax
from assay.scores import (
    SCORES,
    MaxLogitPNorm,
    energy,
    margin,
    max_logit,
    max_logit_p_norm,
    max_probability,
    negative_entropy,
    outcomes_by,
    trust_score,
)


def test_scores_of_logits_are_their_definitions(predictions):
    z = predictions.values.astype(np.float64)
    p = softmax(z)
    top = np.sort(p, 1)[:, ::-1]
    expected = {
        "max_probability": top[:, 0],
        "margin": top[:, 0] - top[:, 1],
        "entropy": xlogy(p, p).sum(1),
        "energy": logsumexp(z, 1),
        "max_logit": z.max(1),
    }
    assert list(SCORES) == list(expected)
    for name, score in SCORES.items():
        assert score(predictions).dtype == np.float64
        assert np.allclose(score(predictions), expected[name], atol=1e-6)


def test_margin_keeps_its_digits_between_two_classes_that_share_nearly_all():
    p = Predictions.from_logits([[10.0 + 1e-9, 10.0, -30.0]], [0])
    assert margin(p).item() == pytest.approx(0.5e-9, rel=1e-5)


def test_scores_of_probabilities():
    p = Predictions.from_probabilities([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]], [0, 0])
    assert max_probability(p).tolist() == [0.5, 1]
    assert margin(p).tolist() == [0, 1]
    assert negative_entropy(p).tolist() == pytest.approx([-np.log(2), 0])
    for score in (energy, max_logit):
        with pytest.raises(InputError, match="needs logits"):
            score(p)


@pytest.mark.parametrize("name", SCORES)
def test_every_score_feeds_the_ranking_metrics(name, predictions):
    found = evaluate(outcomes_by(SCORES[name], predictions))
    assert found["accuracy"] == evaluate(predictions)["accuracy"]
    assert 0.5 < found["auroc"] <= 1
    assert ("ece" in found) == (name == "max_probability")


def test_a_score_keeps_ids_and_group(predictions):
    assert np.array_equal(outcomes_by(energy, predictions).ids, predictions.ids)


def clouds(n: int, seed: int, *, dimensions: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Three classes on a line, the last one small."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(3, n, p=[0.5, 0.4, 0.1])
    return rng.normal(size=(n, dimensions)) + 2 * labels[:, None], labels


@pytest.mark.parametrize("dimensions", [5, 40])  # by a tree, and by products of matrices
@pytest.mark.parametrize("neighbor", [1, 2])
def test_trust_score_is_the_ratio_of_distances(neighbor, dimensions):
    x, y = clouds(200, 0, dimensions=dimensions)
    points, answers = clouds(30, 1, dimensions=dimensions)
    found = trust_score(x, y, n_classes=3, neighbor=neighbor).ratio(points, answers)
    for point, answer, score in zip(points, answers, found.tolist(), strict=True):
        distance = [np.sort(np.linalg.norm(x[y == c] - point, axis=1))[neighbor - 1] for c in range(3)]
        own = distance.pop(answer)
        assert score == pytest.approx(min(distance) / (own + 1e-12))


def test_trust_score_tells_right_from_wrong_answers():
    x, y = clouds(500, 0)
    points, labels = clouds(300, 1)
    score = trust_score(x, y, n_classes=3)
    right, wrong = score.ratio(points, labels), score.ratio(points, (labels + 1) % 3)
    assert np.median(right) > 1 > np.median(wrong)


def test_the_density_filter_drops_the_farthest_of_each_class():
    x, y = clouds(400, 2)
    kept = trust_score(x, y, n_classes=3, alpha=0.1, k=10).classes
    for label, members in enumerate(kept):
        own = x[y == label]
        radius = np.sort(np.linalg.norm(own[:, None] - own, axis=2), axis=1)[:, 9]  # the tenth, itself the first
        assert len(members) == pytest.approx(0.9 * len(own), abs=1)
        assert {tuple(m) for m in members} == {tuple(m) for m in own[np.argsort(radius)[: len(members)]]}


def test_trust_score_is_a_score_of_predictions_with_features():
    x, y = clouds(300, 0)
    points, labels = clouds(40, 1)
    logits = np.random.default_rng(0).normal(size=(40, 3))
    score = trust_score(x, y, n_classes=3)
    p = Predictions.from_logits(logits, labels, features=points)
    assert np.array_equal(score(p), score.ratio(points, logits.argmax(1)))
    assert len(outcomes_by(score, p)) == 40
    with pytest.raises(InputError, match="needs predictions with features"):
        score(Predictions.from_logits(logits, labels))


def test_trust_score_is_finite_on_its_own_training_points_and_zero_for_an_unseen_class():
    x, y = clouds(100, 0)
    score = trust_score(x, y, n_classes=4, alpha=0.1)
    assert np.isfinite(score.ratio(x, y)).all()
    assert score.ratio(x[:5], np.full(5, 3)).tolist() == [0] * 5


def test_trust_score_refuses_one_class_and_a_share_of_one():
    x, y = clouds(20, 0)
    with pytest.raises(InputError, match="all training samples are of class 1"):
        trust_score(x, np.ones(20, dtype=int), n_classes=3)
    with pytest.raises(ValueError, match=r"alpha must be in \[0, 1\), got 1"):
        trust_score(x, y, n_classes=3, alpha=1)


def test_the_p_norm_of_centered_logits_by_hand():
    p = Predictions.from_logits([[4.0, 1.0, 1.0], [3.0, 3.0, 3.0]], [0, 0])
    for power, norm in ((1, 4.0), (2, np.sqrt(6)), (3, 10 ** (1 / 3))):
        assert MaxLogitPNorm(power)(p) == pytest.approx([2 / norm, 0])


@pytest.mark.parametrize("power", [1, 3, 10])
def test_the_p_norm_forgets_offset_and_scale(power, predictions):
    other = Predictions.from_logits(1e30 * predictions.values.astype(float) + 1e29, predictions.labels)
    score = MaxLogitPNorm(power)
    assert score(other) == pytest.approx(score(predictions), rel=1e-6)
    as_probabilities = Predictions.from_probabilities(softmax(predictions.values.astype(float)), predictions.labels)
    assert score(as_probabilities) == pytest.approx(score(predictions), rel=1e-6)


@pytest.mark.parametrize("power", [None, 1, 3])
def test_of_two_classes_the_p_norm_leaves_the_maximum_probability(power):
    """The highest of (a, -a) over its norm is the same whatever a is."""
    rng = np.random.default_rng(0)
    p = Predictions.from_logits(rng.normal(size=(200, 2)), rng.integers(0, 2, 200))
    assert MaxLogitPNorm(power)(p) == pytest.approx(max_probability(p))
    worse_than_chance = Predictions.from_logits(p.values, p.values.argmin(1))
    assert max_logit_p_norm(worse_than_chance).p is None


def test_a_certain_answer_has_a_p_norm():
    p = Predictions.from_probabilities([[1.0, 0.0, 0.0], [0.6, 0.3, 0.1]], [0, 0])
    assert np.isfinite(MaxLogitPNorm(4)(p)).all()


def test_the_power_is_that_of_least_aurc_or_none():
    """Logits of random scale: the probability ranks by scale, the norm does not see it."""
    rng = np.random.default_rng(0)
    labels, size = rng.integers(0, 5, 3000), rng.uniform(0.2, 5, (3000, 1))
    z = rng.normal(size=(3000, 5)) + 2 * np.eye(5)[labels]
    broken, whole = Predictions.from_logits(size * z, labels), Predictions.from_logits(2 * z, labels)
    found = max_logit_p_norm(broken)
    assert found.p is not None
    least = min(evaluate(outcomes_by(MaxLogitPNorm(p), broken))["aurc"] for p in range(1, 11))
    assert evaluate(outcomes_by(found, broken))["aurc"] == least
    assert least < 0.95 * evaluate(broken)["aurc"]
    assert max_logit_p_norm(whole).p is None
    assert np.array_equal(MaxLogitPNorm(None)(whole), max_probability(whole))
