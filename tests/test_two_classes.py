"""Two classes: numbers equal scikit-learn's, and promises about class 1 are kept."""

from __future__ import annotations

from dataclasses import replace
from math import inf, isnan

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm
from sklearn import metrics as reference
from sklearn.datasets import load_breast_cancer
from test_cli import run as run

from assay import Outcomes, Predictions, audit, compare, evaluate
from assay._core.arrays import InputError
from assay.report.quantities import with_arrow
from assay.thresholds import choose_positive_threshold, load_threshold

SHARE, APART = 0.01, 2.5  # of class 1, and how far its scores lie above those of class 0
COSTS = [[0.0, 1.0], [50.0, 0.0]]


def rare(n, seed=0):
    """Calibrated predictions, 1 % of class 1."""
    rng = np.random.default_rng(seed)
    y = rng.uniform(size=n) < SHARE
    return Predictions.from_binary_probabilities(probability(rng.normal(size=n) + APART * y), y)


def probability(score):
    return expit(APART * score - APART**2 / 2 + np.log(SHARE / (1 - SHARE)))


def truth(value):
    """Precision, recall and mean cost of answering 1 from that probability, in the population of `rare`."""
    bounded = np.clip(value, 1e-300, 1 - 1e-16)
    score = (np.log(bounded / (1 - bounded)) - np.log(SHARE / (1 - SHARE)) + APART**2 / 2) / APART
    hits, alarms = SHARE * norm.sf(score - APART), (1 - SHARE) * norm.sf(score)
    return {
        "precision": hits / (hits + alarms),
        "recall": hits / SHARE,
        "cost": COSTS[0][1] * alarms + COSTS[1][0] * (SHARE - hits),
    }


def breast_cancer():
    """One feature as a score, rounded so that there are ties."""
    rows = load_breast_cancer()
    radius = rows.data[:, 0]
    return Predictions.from_binary_probabilities(expit(14.6 - radius).round(2), rows.target)


@pytest.mark.parametrize("rows", [rare(20_000), breast_cancer()], ids=["1 %", "breast cancer"])
def test_every_number_that_scikit_learn_has_is_the_same(rows):
    y, p = rows.labels, rows.probabilities[:, 1]
    answer = rows.probabilities.argmax(1)
    share, mean = reference_bins(y, p)
    expected = {
        "accuracy": reference.accuracy_score(y, answer),
        "roc_auc": reference.roc_auc_score(y, p),
        "average_precision": reference.average_precision_score(y, p),
        "brier": 2 * reference.brier_score_loss(y, p),  # ours is summed over both classes
        "auroc": reference.roc_auc_score(answer == y, np.maximum(p, 1 - p)),
        "ece_positive": float(np.abs(share - mean).sum()),
    }
    if p.min() > 0 and p.max() < 1:
        expected["nll"] = reference.log_loss(y, p)
    assert evaluate(rows, list(expected)) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def reference_bins(y, p):
    """Sums of labels and probabilities in 15 bins (lo, hi], over n."""
    which = np.clip(np.ceil(p * 15).astype(int) - 1, 0, 14)
    return np.bincount(which, y, 15) / len(y), np.bincount(which, p, 15) / len(y)


def test_the_two_areas_cannot_be_mistaken_for_each_other():
    found = audit(rare(20_000))
    assert with_arrow("auroc") == "auroc (errors) ↑"
    assert "The ROC AUC of class 1 is" in str(found)
    assert found["roc_auc"].interval.low < norm.cdf(APART / np.sqrt(2)) < found["roc_auc"].interval.high
    assert audit(rare(200))["roc_auc"].note == "only 3 rows of class 1, at least 20 are needed"


def test_a_comparison_tests_the_area_of_class_1():
    rows = rare(20_000)
    noise = np.random.default_rng(1).normal(size=len(rows))
    worse = Predictions.from_binary_logits(np.diff(rows.logits, axis=1)[:, 0] + 3 * noise, rows.labels)
    assert compare(rows, worse)["roc_auc"].interval.high < 0


def enriched(n, seed=0):
    """The same population, of whose class 0 only one row in ten was kept and counts ten times."""
    rows, rng = rare(n, seed), np.random.default_rng([seed, 1])
    some = rows[(rows.labels == 1) | (rng.random(n) < 0.1)]
    return replace(some, weights=np.where(some.labels == 1, 1.0, 10.0))


def repeated(n, seed=0):
    """Every row twice, in a cluster of its own."""
    rows = rare(n // 2, seed)
    return replace(rows[np.repeat(np.arange(n // 2), 2)], cluster=np.arange(n // 2 * 2) // 2)


def kept(goal, asked, draws, n=20_000, draw=rare):
    """Share of draws whose promise the population keeps, and how often there was one."""
    held, given = 0, 0
    for seed in range(draws):
        t = choose_positive_threshold(draw(n, seed), **{goal: asked})
        name = "cost" if goal == "costs" else goal
        true = truth(t.value)[name]
        given += not t.reason
        held += bool(t.reason) or (true <= t.promised if name == "cost" else true >= t.promised)
    return held / draws, given / draws


GOALS = [("precision", 0.5), ("precision", 0.25), ("recall", 0.8), ("recall", 0.95), ("costs", COSTS)]


@pytest.mark.parametrize(("goal", "asked"), GOALS)
def test_promises_about_class_1_are_kept(goal, asked):
    held, given = kept(goal, asked, 60)
    assert held >= 0.9
    assert given >= 0.9


@pytest.mark.long
@pytest.mark.parametrize(("goal", "asked"), GOALS)
def test_promises_about_class_1_are_kept_in_a_thousand_draws(goal, asked):
    held, given = kept(goal, asked, 1000)
    print(f"\n{goal} {asked}: kept in {held:.1%}, given in {given:.1%} of 1,000 draws")
    assert held >= 0.94
    assert given >= 0.9


WEIGHED = [("precision", 0.3), ("recall", 0.8), ("recall", 0.9), ("costs", COSTS)]


@pytest.mark.parametrize(("goal", "asked"), WEIGHED)
@pytest.mark.parametrize("draw", [enriched, repeated])
def test_promises_about_class_1_are_kept_with_weights_and_clusters(draw, goal, asked):
    held, given = kept(goal, asked, 25, 40_000, draw)
    assert held >= 0.9
    assert given >= 0.9


@pytest.mark.long
@pytest.mark.parametrize(("goal", "asked"), WEIGHED)
@pytest.mark.parametrize("draw", [enriched, repeated])
def test_promises_about_class_1_are_kept_with_weights_and_clusters_in_a_thousand_draws(draw, goal, asked):
    held, given = kept(goal, asked, 1000, 40_000, draw)
    print(f"\n{draw.__name__}, {goal} {asked}: kept in {held:.1%}, given in {given:.1%} of 1,000 draws")
    assert held >= 0.942  # at most 5.8 % are broken
    assert given >= 0.9


@pytest.mark.parametrize("goal", [{"precision": 0.4}, {"recall": 0.85}, {"costs": COSTS}])
def test_rows_that_count_alike_promise_the_same_of_class_1(goal):
    rows = rare(20_000)
    plain = choose_positive_threshold(rows, **goal)
    for same in (replace(rows, weights=np.full(20_000, 3.0)), replace(rows, cluster=np.arange(20_000))):
        assert choose_positive_threshold(same, **goal) == replace(plain, weighted=None)


@pytest.mark.parametrize("goal", [{"precision": 0.3}, {"recall": 0.85}, {"costs": COSTS}])
def test_bets_on_class_1_are_no_bolder_than_exact_bounds_and_not_far_from_them(goal):
    """Weights that hardly differ: the population is the same, and bets do without the binomial law."""
    rows = rare(40_000)
    exact = choose_positive_threshold(rows, **goal)
    bets = choose_positive_threshold(replace(rows, weights=1 + 1e-9 * (np.arange(40_000) % 2)), **goal)
    if "costs" in goal:
        assert exact.promised <= bets.promised < 1.3 * exact.promised
    else:
        sign = 1 if "precision" in goal else -1
        assert 0 <= sign * (exact.flagged - bets.flagged) < 0.5 * exact.flagged


def test_precision_and_recall_are_those_by_weight(run, tmp_path):
    rows = enriched(40_000)
    t = choose_positive_threshold(rows, recall=0.8)
    one, seen = rows.probabilities[:, 1] >= t.value, rows.weights
    assert t.precision == pytest.approx(seen[one & (rows.labels == 1)].sum() / seen[one].sum())
    assert t.recall == pytest.approx(seen[one & (rows.labels == 1)].sum() / seen[rows.labels == 1].sum())
    assert t.coverage == pytest.approx(seen[one].sum() / seen.sum())
    np.savetxt(tmp_path / "x.csv", np.c_[rows.probabilities[:, 1], rows.labels, seen], delimiter=",", header="p,y,w")
    (tmp_path / "x.csv").write_text((tmp_path / "x.csv").read_text().removeprefix("# "))
    flags = ["--positive", "p", "--label", "y", "--weight", "w"]
    code, out, _ = run("threshold", tmp_path / "x.csv", *flags, "--recall", 0.8, "--json", tmp_path / "t.json")
    assert code == 0
    assert "by weight" in out
    assert load_threshold(tmp_path / "t.json").weighted == pytest.approx(t.weighted)


def test_a_recall_does_not_depend_on_how_often_the_other_class_occurs():
    rows = rare(20_000)
    plain = choose_positive_threshold(rows, recall=0.8)
    assert choose_positive_threshold(rows.with_prior([0.5, 0.5]), recall=0.8).value == plain.value
    none = rows.with_prior([0.5, 0.5])[rows.labels == 0]
    assert choose_positive_threshold(none, recall=0.8).instead is None


def test_clusters_of_class_1_count_once():
    """Of 59 rows none may be missed for .95: .95^59 < .05. Of 58 clusters of two it is as if there were 58 rows."""
    p = np.repeat(np.linspace(0.1, 0.9, 59), 2)
    rows = replace(Predictions.from_binary_probabilities(p, np.ones(118)), cluster=np.arange(118) // 2)
    assert choose_positive_threshold(rows, recall=0.95).value == -inf
    less = choose_positive_threshold(rows[:116], recall=0.95)
    assert "takes 59 rows of class 1 of equal weight that are independent and there are 116" in less.reason
    assert 0.94 < less.instead.promised <= 0.05 ** (1 / 58)


def test_a_recall_is_promised_by_order_statistics():
    p = np.linspace(0.1, 0.9, 59)
    rows = Predictions.from_binary_probabilities(p, np.ones(59))
    t = choose_positive_threshold(rows, recall=0.95)  # .95^59 < .05: of 59 rows none may be missed
    assert (t.value, t.recall) == (-inf, 1.0)
    less = choose_positive_threshold(rows[:58], recall=0.95)
    assert "takes 59 rows of class 1 and there are 58" in less.reason
    assert less.instead.promised == pytest.approx(0.05 ** (1 / 58))


def test_the_costs_decide_the_threshold():
    rows = rare(100_000)
    for miss in (5.0, 50.0):
        t = choose_positive_threshold(rows, costs=[[0, 1], [miss, 0]])
        assert t.value == pytest.approx(1 / (1 + miss), rel=0.5)  # the least cost of calibrated probabilities
        assert t.cost <= t.promised
    shifted = choose_positive_threshold(rows, costs=[[2, 3], [52, 2]])
    plain = choose_positive_threshold(rows, costs=COSTS)
    assert (shifted.value, shifted.promised) == pytest.approx((plain.value, plain.promised + 2))


def test_what_cannot_be_promised_says_what_can():
    t = choose_positive_threshold(rare(20_000), precision=0.97)
    assert t.value == inf
    assert "cannot be promised" in t.reason
    assert 0.2 < t.instead.promised < 0.97
    nobody = choose_positive_threshold(Predictions.from_binary_probabilities([0.1, 0.2], [0, 0]), recall=0.9)
    assert (nobody.instead, isnan(nobody.recall)) == (None, True)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "give one of precision, recall and costs"),
        ({"precision": 0.5, "recall": 0.5}, "give one of precision, recall and costs"),
        ({"precision": 1.0}, "precision must lie between 0 and 1, got 1.0"),
        ({"costs": [[0, 1], [0, 0]]}, "a wrong answer must cost more"),
        ({"costs": [1, 2]}, "costs must be"),
    ],
)
def test_senseless_goals_are_refused(given, message):
    with pytest.raises(InputError, match=message):
        choose_positive_threshold(rare(1000), **given)


def test_outcomes_have_no_class_1():
    with pytest.raises(InputError, match="need predictions of two classes"):
        choose_positive_threshold(Outcomes.from_scores([0.9], [1]), precision=0.5)


def csv(path, rows):
    np.savetxt(path, np.c_[rows.probabilities[:, 1], rows.labels], delimiter=",", header="p,y", comments="")
    return [path, "--positive", "p", "--label", "y"]


def test_the_command_promises_precision(run, tmp_path):
    code, out, _ = run("threshold", *csv(tmp_path / "x.csv", rare(20_000)), "--precision", 0.5)
    assert code == 0
    assert "answer class 1 from" in out
    assert "precision at least, at 95% confidence" in out


def test_calibrate_tells_better_from_calibrated_now_and_shows_class_1(run, tmp_path):
    rows = rare(10_000)
    off = Predictions.from_binary_logits(np.diff(rows.logits, axis=1)[:, 0] + 2, rows.labels)
    files = csv(tmp_path / "x.csv", off)
    out = run("calibrate", *files, "--method", "temperature")[1]
    assert "calibration better" in " ".join(out.split())
    assert "Now: " in out
    assert "The probability of class 1 is too high by" in " ".join(out.split())
    marks = [line.split() for line in out.splitlines() if line.startswith((" none", " temperature"))]
    assert [line[-1] for line in marks[:2]] == ["✗", "✗"]
    out = run("calibrate", *files, "--method", "structured_matrix")[1]
    assert "ece of" in out
    assert next(line for line in out.splitlines() if line.startswith(" structured")).split()[-1] == "✓"


def test_the_threshold_of_least_cost_does_not_depend_on_how_well_it_is_bounded():
    """In clusters bounds are wide: answering 1 always, which costs 1 at most, would be bounded better."""
    rng = np.random.default_rng(3)
    p = rng.random(600)
    rows = Predictions.from_binary_probabilities(p, rng.random(600) < p**2)
    alone = choose_positive_threshold(rows, costs=[[0, 1], [50, 0]])
    clustered = choose_positive_threshold(replace(rows, cluster=np.arange(600) // 10), costs=[[0, 1], [50, 0]])
    assert (alone.value, alone.cost) == (clustered.value, clustered.cost)
    assert alone.promised < clustered.promised <= 50
    always = Predictions.from_binary_probabilities(p, np.ones(600))
    assert choose_positive_threshold(always, costs=[[0, 1], [50, 0]]).promised <= 1
    never = choose_positive_threshold(Predictions.from_binary_probabilities(p, np.zeros(600)), costs=[[0, 1], [5, 0]])
    assert str(never).startswith("never answer class 1: mean cost at most")


def test_a_refused_precision_says_what_weights_and_clusters_count_for():
    rng = np.random.default_rng(4)
    p = rng.random(600)
    rows = replace(Predictions.from_binary_probabilities(p, rng.random(600) < p), cluster=np.arange(600) // 30)
    refused = choose_positive_threshold(rows, precision=0.99)
    assert "which count for 20 by their weights and clusters" in refused.reason
    assert "which count for 20" in choose_positive_threshold(rows, recall=0.99).reason
