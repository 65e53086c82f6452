"""Promises about weighted and clustered rows: kept in every law of a bench, and exact where nothing is weighed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom

from assay import Outcomes, Predictions, choose_threshold, examples, metrics
from assay._core.arrays import InputError
from assay.checking import check_promise
from assay.metrics import Tables
from assay.rechecking import confidence_drift, recheck
from assay.report.jsons import write_json
from assay.report.page._content import decisions
from assay.thresholds import Threshold, evidence_of, load_threshold, predicted_class

MANY = 300_000  # rows that stand for everybody


def scored(rng, score, chance_wrong, **columns):
    return Outcomes.from_scores(score, rng.random(len(score)) >= chance_wrong, is_probability=False, **columns)


def chosen_by_score(rng, n):
    """Sure answers are sampled a fifth as often."""
    u = rng.random(3 * n)
    u = u[rng.random(3 * n) < np.where(u > 0.5, 0.2, 1)][:n]
    return scored(rng, u, 0.15 * (1 - u) + 0.02, weights=np.where(u > 0.5, 5.0, 1.0))


def errors_enriched(rng, n):
    """Errors are sampled four times as often, as where a rare class was collected."""
    u = rng.random(5 * n)
    wrong = rng.random(5 * n) < 0.1 * (1 - u) + 0.01
    taken = np.flatnonzero(rng.random(5 * n) < np.where(wrong, 1, 0.25))[:n]
    weights = np.where(wrong[taken], 0.25, 1)
    return Outcomes.from_scores(u[taken], ~wrong[taken], is_probability=False, weights=weights)


def errors_rare(rng, n):
    """Errors are sampled a third as often, so each weighs three."""
    u = rng.random(3 * n)
    wrong = rng.random(3 * n) < 0.1 * (1 - u) + 0.02
    taken = np.flatnonzero(rng.random(3 * n) < np.where(wrong, 1 / 3, 1))[:n]
    weights = np.where(wrong[taken], 3.0, 1.0)
    return Outcomes.from_scores(u[taken], ~wrong[taken], is_probability=False, weights=weights)


def uneven_weights(rng, n):
    u = rng.random(n)
    return scored(rng, u, np.full(n, 0.05), weights=np.exp(rng.normal(size=n)).clip(max=10))


def clusters(size, *, shared):
    """Rows of a cluster share what decides the score, the errors, or both."""

    def draw(rng, n):
        count = -(-n // size)
        cluster = np.repeat(np.arange(count), size)

        def uniform(common):
            return rng.random(count)[cluster] if common else rng.random(len(cluster))

        u, luck = uniform("score" in shared), uniform("error" in shared)
        wrong = luck < 0.1 * (1 - u) + 0.01
        return Outcomes.from_scores(u, ~wrong, is_probability=False, cluster=cluster)

    return draw


def large_clusters_are_worse(rng, n):
    sizes = rng.choice([1, 2, 20], n // 3, p=[0.5, 0.4, 0.1])
    cluster = np.repeat(np.arange(len(sizes)), sizes)
    bad = np.where(sizes == 20, rng.random(len(sizes)) < 0.3, False)[cluster]
    u = rng.random(len(cluster))
    return scored(rng, u, np.where(bad, 0.4, 0.02) * (1.2 - u), cluster=cluster)


def weights_and_clusters(rng, n):
    rows = clusters(4, shared=("error",))(rng, n)
    return replace(rows, weights=np.where(np.asarray(rows.cluster) % 3 == 0, 4.0, 1.0))


LAWS = {
    "chosen by score": chosen_by_score,
    "errors enriched": errors_enriched,
    "errors rare": errors_rare,
    "uneven weights": uneven_weights,
    "clusters of 5": clusters(5, shared=()),
    "clusters of 10, errors shared": clusters(10, shared=("error",)),
    "clusters of 10, scores shared": clusters(10, shared=("score",)),
    "clusters of 10, all shared": clusters(10, shared=("score", "error")),
    "large clusters are worse": large_clusters_are_worse,
    "weights and clusters": weights_and_clusters,
}


def judged(name, n, risk, draws):
    """Number of broken promises and mean coverage."""
    everybody = metrics.ranking(LAWS[name](np.random.default_rng(99), MANY))
    truth = np.append(0.0, everybody.wrong[1:] / everybody.kept[1:])
    broken, reached = 0, 0.0
    for draw in range(draws):
        t = choose_threshold(LAWS[name](np.random.default_rng(draw), n), risk=risk)
        for promised in (x for x in (t, t.instead) if x is not None):
            accepted = np.searchsorted(-everybody.score, -promised.value, side="right")
            broken += bool(truth[accepted] > promised.guaranteed_risk)
        reached += t.coverage / draws
    return broken, reached


@pytest.mark.parametrize("name", ["errors rare", "clusters of 10, all shared"])
def test_promises_are_kept(name):
    broken, reached = judged(name, 2000, 0.1, 25)
    assert broken <= binom.ppf(0.999, 25, 0.05)
    assert reached > 0.15


@pytest.mark.long
@pytest.mark.parametrize("risk", [0.02, 0.05, 0.1])
@pytest.mark.parametrize("n", [500, 2000, 10_000])
@pytest.mark.parametrize("name", LAWS)
def test_bench_of_laws(name, n, risk):
    broken, _ = judged(name, n, risk, 400)
    assert broken <= 0.058 * 400


@pytest.mark.parametrize("column", [{"weights": np.full(10_000, 3.0)}, {"cluster": np.arange(10_000)}])
def test_rows_that_count_alike_keep_the_exact_bounds(column):
    rows = examples.load().outcomes()
    for goal in ({"risk": 0.1}, {"coverage": 0.7}, {"error_cost": 10}):
        assert choose_threshold(replace(rows, **column), **goal) == choose_threshold(rows, **goal)


def test_clusters_without_an_error_count_once():
    """No errors in c clusters of one size exclude the risk r with (1 - r)^c = .05, as c rows would."""
    rows = Outcomes.from_scores(np.full(200, 0.9), np.ones(200), cluster=np.repeat(np.arange(100), 2))
    assert choose_threshold(rows, coverage=1.0).guaranteed_risk == pytest.approx(1 - 0.05**0.01, rel=0.003)
    refused = choose_threshold(rows, risk=0.01)
    assert "takes 299 samples and there are 200, which count for 100 by their weights" in refused.reason


def test_promises_depend_on_neither_order_nor_unit_of_weights():
    rows = weights_and_clusters(np.random.default_rng(0), 3000)
    moved = rows[np.random.default_rng(1).permutation(len(rows))]
    other = replace(moved, weights=7 * moved.weights)
    for goal in ({"risk": 0.1}, {"coverage": 0.7}, {"error_cost": 5}):
        a, b = choose_threshold(rows, **goal), choose_threshold(other, **goal)
        assert (a.value, a.accepted, a.wrong) == (b.value, b.accepted, b.wrong)
        assert (a.guaranteed_risk, a.coverage) == pytest.approx((b.guaranteed_risk, b.coverage), rel=1e-9)


def test_coverage_and_errors_are_those_by_weight():
    rows = Outcomes.from_scores([0.9, 0.8, 0.7, 0.6], [1, 0, 1, 1], weights=[1.0, 3.0, 4.0, 2.0])
    t = choose_threshold(rows, coverage=0.4)
    assert (t.accepted, t.wrong) == (2, 1)
    assert (t.coverage, t.observed_risk) == pytest.approx((0.4, 0.75), rel=1e-12)


def test_bets_are_no_bolder_than_exact_bounds():
    """Half of the rows weigh a little less: the bound is above the exact one of equal weights, but not far."""
    rows = examples.load().outcomes()
    exact = evidence_of(rows).bound(6000, 0.05)
    bet = evidence_of(replace(rows, weights=np.resize([1.0, 0.999], len(rows)))).bound(6000, 0.05)
    assert exact < bet < 1.1 * exact


def test_a_group_in_which_the_promise_is_broken_is_named():
    rng = np.random.default_rng(0)
    group = np.where(np.arange(6000) // 5 % 3 == 0, "hard", "easy")
    rows = scored(
        rng, rng.random(6000), np.where(group == "hard", 0.25, 0.01), cluster=np.arange(6000) // 5, group=group
    )
    chosen = choose_threshold(rows, risk=0.15)
    assert [each.group for each in chosen.broken] == ["hard"]
    each = choose_threshold(replace(rows, weights=np.where(group == "hard", 2.0, 1.0)), by="group", risk=0.15)
    assert each.coverage == pytest.approx(each.groups["easy"].coverage / 2)


def test_new_clusters_refute_a_promise_only_by_their_number():
    """Three of ten clusters of a hundred rows are wrong: far more than 10 % of rows, but it may be chance."""
    cluster = np.repeat(np.arange(10), 100)
    rows = Outcomes.from_scores(np.full(1000, 0.9), cluster >= 3, cluster=cluster)
    promise = choose_threshold(Outcomes.from_scores(np.full(100, 0.9), np.ones(100)), risk=0.1)
    assert check_promise(rows, promise).passed
    assert not check_promise(replace(rows, cluster=None), promise).passed


def test_a_check_and_a_recheck_say_the_same_of_clusters():
    """Of each cluster of five one row is accepted: the others say how heavy a cluster can be."""
    rng = np.random.default_rng(0)
    score = np.where(np.arange(3000) % 5 == 0, 0.9, 0.1)
    rows = Outcomes.from_scores(score, rng.random(3000) < 0.1 + 0.95 * score, cluster=np.arange(3000) // 5)
    promise = Threshold(0.5, 0.05, 0.95, 3000, 600, 20)
    bound = recheck(rows, promise).bound
    assert f"to {bound:.4g})" in check_promise(rows, promise).found


def test_a_weighted_threshold_is_read_back(tmp_path):
    chosen = choose_threshold(errors_rare(np.random.default_rng(0), 3000), risk=0.15)
    assert chosen.weighted is not None
    write_json(chosen, tmp_path / "t.json")
    assert load_threshold(tmp_path / "t.json") == chosen
    with pytest.raises(InputError, match="chosen on weighted rows"):
        confidence_drift(Outcomes.from_scores([0.9, 0.8], [1, 0]), chosen)


def test_a_page_shows_the_bounds_of_bets():
    t = Tables(weights_and_clusters(np.random.default_rng(0), 2000))
    promise = choose_threshold(t, risk=0.15)
    shown = decisions(t, [promise])
    seen = evidence_of(t)
    row = int(np.searchsorted(seen.ranking.kept, promise.accepted))
    assert shown["bound"][shown["start"]] == pytest.approx(seen.bound(row, 0.05), rel=1e-4)
    assert shown["kept"][shown["start"]] == round(promise.coverage * promise.n)
    assert max(shown["boundOfCurve"]) <= 1
    assert shown["boundOfCurve"][0] > 0.9  # of hardly any row


def test_a_ranking_has_lost_what_a_promise_needs():
    rows = Outcomes.from_scores([0.9, 0.8], [1, 0], weights=[1.0, 2.0])
    with pytest.raises(InputError, match="a ranking of weighted rows is not enough"):
        choose_threshold(metrics.ranking(rows))


def test_a_group_may_have_rows_as_heavy_as_those_of_the_others():
    """With a prior the right answers of a predicted class may weigh alike, and an unseen error fifty times more."""
    rng, broken = np.random.default_rng(0), 0

    def draw(n):
        labels = rng.integers(0, 2, n)
        odds = 2.3 * 2 * (rng.normal(size=n) + 2.3 * (2 * labels - 1))
        return Predictions.from_binary_probabilities(expit(odds), labels).with_prior([0.98, 0.02])

    rows = draw(200_000)
    everybody, answers = rows.outcomes(), predicted_class(rows)
    for _ in range(40):
        chosen = choose_threshold(draw(200), by="class", risk=0.2)
        for name, threshold in chosen.groups.items():
            some = everybody[(answers == name) & (everybody.confidence >= threshold.value)]
            broken += len(some) > 0 and np.average(~some.correct, weights=some.weights) > 0.2
    assert broken <= 4  # 31 % of such samples broke a promise that took the weights of each class for all there are
