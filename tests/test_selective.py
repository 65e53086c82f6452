"""A threshold keeps its promise, is not stricter than it must be, and says so where none can be given."""

from __future__ import annotations

from math import inf, nan

import numpy as np
import pytest
import torch
from conftest import gaussian_predictions
from scipy.stats import beta, binom
from torch import nn

from assay._core.arrays import InputError
from assay.calibrators import CALIBRATORS, temperature
from assay.maps import apply
from assay.predictions import Outcomes, Predictions
from assay.selective import ABSTAIN, SelectiveClassifier
from assay.thresholds import choose_threshold, risk_bound

LAWS = {
    # Confidences of a good network, of a middling one, and of one that is never very sure.
    "good": lambda rng, n: folded(rng.normal(5, 3, n)),
    "middling": lambda rng, n: folded(rng.normal(3, 2, n)),
    "flat": lambda rng, n: rng.uniform(0.7, 1, n),
}


def folded(logit):
    return 1 / (1 + np.exp(-np.abs(logit)))


def draw(law, n, seed):
    """Calibrated confidences, so that the true risk above any threshold is known."""
    rng = np.random.default_rng(seed)
    confidence = LAWS[law](rng, n)
    return Outcomes.from_scores(confidence, rng.uniform(size=n) < confidence)


class Population:
    def __init__(self, law):
        self.confidence = np.sort(LAWS[law](np.random.default_rng(99), 2_000_000))[::-1]
        self.risks = np.cumsum(1 - self.confidence) / np.arange(1, len(self.confidence) + 1)

    def risk(self, threshold):
        accepted = np.searchsorted(-self.confidence, -threshold, side="right")
        return self.risks[accepted - 1] if accepted else 0.0

    def oracle(self, risk):
        """The largest coverage whose true risk is no higher."""
        return np.searchsorted(self.risks, risk, side="right") / len(self.risks)


def promises(law, risk, n, draws):
    population = Population(law)
    chosen = [choose_threshold(draw(law, n, seed), risk=risk) for seed in range(draws)]
    broken = sum(population.risk(t.value) > risk for t in chosen)
    return broken, np.mean([t.coverage for t in chosen]) / population.oracle(risk)


CASES = [("good", 0.01), ("good", 0.05), ("middling", 0.05), ("middling", 0.02), ("flat", 0.1), ("flat", 0.05)]


@pytest.mark.parametrize(("law", "risk"), CASES)
@pytest.mark.parametrize("n", [500, 5000])
def test_a_promise_is_kept(law, risk, n):
    broken, _ = promises(law, risk, n, 100)
    assert broken <= binom.ppf(0.999, 100, 0.05)


@pytest.mark.long
@pytest.mark.parametrize(("law", "risk"), CASES)
@pytest.mark.parametrize("n", [500, 5000])
def test_at_most_67_of_1000_promises_are_broken(law, risk, n):
    broken, _ = promises(law, risk, n, 1000)
    assert broken <= 67


@pytest.mark.parametrize(
    ("law", "risk"), [("good", 0.01), ("good", 0.05), ("middling", 0.05), ("middling", 0.1), ("flat", 0.1)]
)
def test_coverage_is_within_a_tenth_of_the_oracle(law, risk):
    _, share = promises(law, risk, 5000, 40)
    assert 0.9 <= share <= 1.02


def clairvoyant(law, risk, n, draws):
    """Coverage of exact tests that know where to start: all the doubt is there, and each next sample is a look."""
    oracle = Population(law).oracle(risk)
    looks = np.arange(int(0.4 * oracle * n), n + 1)
    reached = []
    for seed in range(draws):
        o = draw(law, n, seed)
        wrong = np.cumsum(~o.correct[np.argsort(-o.confidence)])
        kept = binom.cdf(wrong[looks - 1], looks, risk) <= 0.05
        reached.append(looks[max(kept.argmin() - 1, 0)] * kept[0])
    return np.mean(reached) / n / oracle


@pytest.mark.parametrize(("law", "risk"), CASES)
def test_coverage_is_within_a_tenth_of_what_can_be_proved_at_all(law, risk):
    """Of the true oracle even the clairvoyant reaches but .78 on flat confidences: a promise must be shown to hold."""
    _, share = promises(law, risk, 5000, 40)
    assert 0.9 <= share / clairvoyant(law, risk, 5000, 40) <= 1.02


def test_where_confidence_misleads_the_promise_is_kept_too():
    """The surest tenth is wrong more often than the rest: risk falls with coverage before it rises."""
    broken = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        confidence = rng.uniform(size=2000)
        error = np.where(confidence > 0.9, 0.08, 0.04 + 0.2 * (0.9 - confidence))
        t = choose_threshold(Outcomes.from_scores(confidence, rng.uniform(size=2000) >= error), risk=0.08)
        above = np.linspace(min(max(t.value, 0), 1), 1, 100_001)
        true = np.where(above > 0.9, 0.08, 0.04 + 0.2 * (0.9 - above)).mean() if t.accepted else 0
        broken += true > 0.08
    assert broken <= binom.ppf(0.999, 200, 0.05)


def test_the_bound_is_that_of_clopper_and_pearson():
    assert float(risk_bound(3, 100, 0.95)) == pytest.approx(beta.ppf(0.95, 4, 97), abs=1e-12)
    assert float(risk_bound(5, 5, 0.95)) == 1


def test_without_an_error_one_per_cent_takes_299_samples():
    sure = Outcomes.from_scores(np.linspace(0.5, 1, 299), np.ones(299, bool))
    kept = choose_threshold(sure, risk=0.01)
    assert (kept.accepted, kept.value, kept.observed_risk) == (299, -inf, 0)
    refused = choose_threshold(sure[:298], risk=0.01)
    assert refused.value == inf
    assert refused.coverage == 0
    assert "takes 299 samples and there are 298" in str(refused)


def test_hopeless_predictions_are_refused_with_a_reason():
    wrong = Outcomes.from_scores(np.linspace(0.5, 1, 1000), np.zeros(1000, bool))
    t = choose_threshold(wrong, risk=0.05)
    assert t.value == inf
    assert "errors among the" in t.reason
    assert np.isnan(t.observed_risk)


def test_the_threshold_lies_midway_between_two_scores():
    rng = np.random.default_rng(0)
    outcomes = draw("good", 2000, 1)
    t = choose_threshold(outcomes, coverage=0.5)
    score = np.sort(outcomes.confidence)[::-1]
    assert t.accepted == 1000
    assert t.value == pytest.approx((score[999] + score[1000]) / 2, abs=1e-15)
    assert (score >= t.value).sum() == 1000
    shuffled = outcomes[rng.permutation(2000)]
    assert choose_threshold(shuffled, risk=0.02) == choose_threshold(outcomes, risk=0.02)


def test_a_coverage_is_not_rounded_up():
    outcomes = draw("good", 100, 1)
    asked = [0.07, 0.14, 0.28, 0.55, 0.56]
    assert [choose_threshold(outcomes, coverage=c).accepted for c in asked] == [7, 14, 28, 55, 56]


def test_tied_scores_are_accepted_together():
    tied = Outcomes.from_scores(np.repeat([0.9, 0.6], 500), np.repeat([True, False], 500))
    t = choose_threshold(tied, coverage=0.2)
    assert t.accepted == 500
    assert t.value == pytest.approx(0.75)
    assert choose_threshold(tied, risk=0.05).accepted == 500


def test_neighbouring_doubles_can_be_told_apart():
    high = np.nextafter(0.5, 1)
    close = Outcomes.from_scores(np.repeat([high, 0.5], 300), np.repeat([True, False], 300))
    t = choose_threshold(close, risk=0.05)
    assert int((close.confidence >= t.value).sum()) == t.accepted == 300


def test_cost_weighs_errors_against_reviews():
    outcomes = draw("flat", 200_000, 0)
    t = choose_threshold(outcomes, error_cost=10)
    # An answer pays where its chance of error is below one in ten; half a step to either side costs next to nothing.
    population = LAWS["flat"](np.random.default_rng(1), 1_000_000)
    cost = [np.where(population >= at, 10 * (1 - population), 1).mean() for at in (t.value, 0.9)]
    assert cost[0] == pytest.approx(cost[1], rel=0.01)
    assert t.guaranteed_risk > t.observed_risk
    assert choose_threshold(outcomes, error_cost=0.5).coverage == 1
    hopeless = Outcomes.from_scores(outcomes.confidence[:100], np.zeros(100, bool))
    assert "reviewing everything" in choose_threshold(hopeless, error_cost=2).reason


def test_any_score_can_be_thresholded():
    outcomes = draw("good", 3000, 0)
    score = Outcomes.from_scores(np.log(outcomes.confidence) * 7 - 3, outcomes.correct, is_probability=False)
    assert choose_threshold(score, risk=0.02).accepted == choose_threshold(outcomes, risk=0.02).accepted


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"risk": 0.0}, "risk must lie"),
        ({"risk": 0.1, "coverage": 0.5}, "only one"),
        ({"coverage": 1.5}, "coverage must lie"),
        ({"error_cost": -1}, "error_cost must be positive"),
        ({"confidence": 1}, "confidence must lie"),
    ],
)
def test_a_wrong_wish_is_named(arguments, says):
    with pytest.raises(InputError, match=says):
        choose_threshold(draw("good", 500, 0), **arguments)


def test_a_classifier_abstains_as_promised():
    held_out, test = gaussian_predictions(4000, 5, seed=0), gaussian_predictions(4000, 5, seed=1)
    mapping = temperature(held_out)
    t = choose_threshold(apply(mapping, test), risk=0.05)
    report = SelectiveClassifier(np.asarray, mapping, t).report(test.logits, test.labels)
    assert report.coverage == pytest.approx(t.coverage, abs=1e-12)
    assert report.risk == pytest.approx(t.observed_risk, abs=1e-12)
    assert len(report.rejected_by_class) == 5
    decided = SelectiveClassifier(np.asarray, mapping, t).decide(test.logits)
    assert (decided.label[~decided.accepted] == ABSTAIN).all()
    assert np.array_equal(decided.label[decided.accepted], test.logits.argmax(1)[decided.accepted])


def test_a_torch_module_decides_as_its_logits_do_and_keeps_no_graph():
    class Network(nn.Linear):
        def forward(self, x):
            assert not torch.is_grad_enabled()
            return super().forward(x)

    network, x = Network(6, 3), torch.randn(50, 6)
    with torch.no_grad():
        logits = network(x)
    found, expected = (
        SelectiveClassifier(model, None, 0.5).decide(given) for model, given in ((network, x), (np.asarray, logits))
    )
    assert np.array_equal(found.label, expected.label)
    assert np.array_equal(found.confidence, expected.confidence)


def test_an_estimator_abstains_by_its_probabilities():
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 2))
    y = np.where(x[:, 0] + rng.normal(size=600) > 0, "yes", "no")
    model = LogisticRegression().fit(x, y)
    decided = SelectiveClassifier(model, None, 0.8).decide(x)
    sure = model.predict_proba(x).max(1) >= 0.8
    assert np.array_equal(decided.accepted, sure)
    assert np.array_equal(model.classes_[decided.label[sure]], model.predict(x)[sure])


def test_an_estimator_refuses_a_map_of_logits():
    """It gives probabilities, whose logarithms differ from the logits by a shift of each row."""
    from sklearn.linear_model import LogisticRegression

    rows = gaussian_predictions(500, 3, seed=0)
    model = LogisticRegression().fit(rows.logits, rows.labels)
    with pytest.raises(InputError, match="fitted on logits and these are probabilities"):
        SelectiveClassifier(model, CALIBRATORS["matrix"](rows), 0.5)


def test_a_class_that_is_absent_has_no_share_of_rejections():
    predictions = Predictions.from_logits([[2.0, 0, 0], [0, 0.1, 0]], [0, 1])
    report = SelectiveClassifier(np.asarray, None, 0.5).report(predictions.logits, predictions.labels)
    assert report.rejected_by_class == pytest.approx((0, 1, nan), nan_ok=True)
    assert "class 1 is rejected most" in str(report)


def test_a_torch_module_takes_numpy_and_loaders():
    from torch.utils.data import DataLoader, TensorDataset

    x = torch.randn(10, 4, generator=torch.Generator().manual_seed(0))
    model = SelectiveClassifier(torch.nn.Linear(4, 3).eval(), None, threshold=0.4)
    decided = model(x).label
    assert np.array_equal(model(x.double().numpy()).label, decided)
    assert np.array_equal(model(DataLoader(TensorDataset(x, torch.zeros(10)), 4)).label, decided)
    assert np.array_equal(model(DataLoader(list(x), 4)).label, decided)
