"""Weighted and clustered samples: intervals cover and tests keep their level whatever clusters have in common."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from populations import Population
from scipy.special import expit, ndtr

from assay import Outcomes, Predictions, audit, compare, metrics
from assay._core.arrays import InputError
from assay.grouping import group_tests
from assay.metrics import METRICS, Tables, inference
from assay.metrics.inference import Interval

DRAWS = [40, pytest.param(600, marks=pytest.mark.long)]
GRID = 0.5 + 0.5 * (np.arange(4000) + 0.5) / 4000
EVERYBODY = Population(GRID, GRID - 0.05)


def clustered(rng: np.random.Generator, n_clusters: int, size: int, gap: float = 0.05) -> Outcomes:
    """Half of what decides confidence and correctness is common to a cluster; each by itself follows one law."""
    cluster = np.repeat(np.arange(n_clusters), size)

    def uniform() -> np.ndarray:
        common, own = rng.normal(size=n_clusters)[cluster], rng.normal(size=len(cluster))
        return np.asarray(ndtr(np.sqrt(0.5) * (common + own)))

    c = 0.5 + 0.5 * uniform()
    correct = uniform() < c - gap
    brier = 2 * np.where(correct, 1 - c, c) ** 2
    nll = -np.log(np.where(correct, c, 1 - c))
    return Outcomes(c, correct, nll=nll, brier=brier, cluster=cluster)


def weighted(rng: np.random.Generator, n: int, gap: float = 0.05) -> Outcomes:
    """Sure answers are sampled less often, and weigh more: the law is that of `EVERYBODY`."""
    chance = expit(6 * (0.7 - GRID))
    c = rng.choice(GRID, n, p=chance / chance.sum())
    correct = rng.random(n) < c - gap
    brier = 2 * np.where(correct, 1 - c, c) ** 2
    nll = -np.log(np.where(correct, c, 1 - c))
    return Outcomes(c, correct, nll=nll, brier=brier, weights=1 / expit(6 * (0.7 - c)))


def heavy(rng: np.random.Generator, n: int, sigma: float, gap: float = 0.05) -> Outcomes:
    """Weights that have nothing to do with the answers, of which a few are most: the law is that of `EVERYBODY`."""
    c = rng.choice(GRID, n)
    correct = rng.random(n) < c - gap
    brier = 2 * np.where(correct, 1 - c, c) ** 2
    nll = -np.log(np.where(correct, c, 1 - c))
    return Outcomes(c, correct, nll=nll, brier=brier, weights=rng.lognormal(0, sigma, n))


LAWS = {
    "few heavy weights": lambda rng, gap=0.05: heavy(rng, 1000, 2, gap),
    "heavy weights": lambda rng, gap=0.05: heavy(rng, 1500, 1.5, gap),
    "100 clusters of 10": lambda rng, gap=0.05: clustered(rng, 100, 10, gap),
    "400 clusters of 5": lambda rng, gap=0.05: clustered(rng, 400, 5, gap),
    "weights": lambda rng, gap=0.05: weighted(rng, 1500, gap),
    "weights and clusters": lambda rng, gap=0.05: replace(clustered(rng, 300, 5, gap), weights=np.full(1500, 2.0)),
}


@pytest.mark.parametrize("draws", DRAWS)
@pytest.mark.parametrize("name", LAWS)
def test_intervals_cover_the_truth(name, draws):
    rng, whole = np.random.default_rng(0), Tables(EVERYBODY.everybody())
    truth = {key: m.of(whole) for key, m in METRICS.items() if m.interval and m.needs(whole)}
    covered, shown = Counter(), Counter()
    for draw in range(draws):
        t = Tables(LAWS[name](rng), draws=200, seed=draw)
        for key, value in truth.items():
            interval = METRICS[key].interval(t)
            if isinstance(interval, Interval):
                shown[key] += 1
                covered[key] += value in interval
    assert set(shown) == set(truth) - {"fpr95"}
    room = 2 if draws > 100 else 3
    low = {key: covered[key] for key, n in shown.items() if covered[key] < 0.92 * n - room * np.sqrt(0.0736 * n)}
    assert not low, low


@pytest.mark.parametrize("draws", DRAWS)
@pytest.mark.parametrize("name", LAWS)
def test_tests_keep_their_level(name, draws):
    """Calibrated models, equal models and equal groups are called otherwise one time in twenty."""
    rng = np.random.default_rng(1)
    called = Counter()
    for draw in range(draws):
        o = LAWS[name](rng, 0.0)
        floor = inference.floors(Tables(o, draws=200, seed=draw)).ece
        called["calibrated"] += floor.p_value(metrics.ece(o)) < 0.05
        first, second = twins(rng, o)
        called["equal"] += any(v.word in ("better", "worse") for v in compare(first, second).verdicts)
        halves = np.arange(len(o)) // 5 % 2 == 0
        called["groups"] += bool(group_tests(o, {"a": halves, "b": ~halves}, by_label=False).findings)
    for what, count in called.items():
        assert count <= 0.055 * draws + (2 if draws > 100 else 2.5) * np.sqrt(0.052 * draws), (what, count)


def twins(rng: np.random.Generator, o: Outcomes) -> tuple[Outcomes, Outcomes]:
    """Two models that state half of the odds, or twice, each for one half of the clusters or rows at random."""
    unit = np.arange(len(o)) if o.cluster is None else o.cluster
    coin = rng.random(unit.max() + 1)[unit] < 0.5
    odds = np.log(o.confidence / (1 - o.confidence))
    unsure, sure = expit(odds / 2), expit(2 * odds)
    models = (np.where(coin, unsure, sure), np.where(coin, sure, unsure))
    first, second = (replace(o, confidence=c.clip(0, 1), nll=None, brier=None) for c in models)
    return first, second


def test_independent_rows_of_equal_weight_are_no_design():
    o = Outcomes.from_scores([0.9, 0.6, 0.7], [1, 0, 1])
    assert inference.design_of(o) is None


def test_a_cluster_for_each_row_changes_no_variance():
    rng = np.random.default_rng(2)
    o = weighted(rng, 400)
    plain = replace(o, weights=None)
    alone = replace(plain, cluster=np.arange(400))
    a, b = (
        compare(plain, replace(plain, confidence=plain.confidence**2)),
        compare(alone, replace(alone, confidence=alone.confidence**2)),
    )
    for key in ("brier", "auroc", "calibration_part", "aurc"):
        assert a[key].estimate.error == pytest.approx(b[key].estimate.error, rel=0.01), key


def test_doubled_rows_in_clusters_are_no_more_certain():
    """Each row twice, and a cluster for each pair: the standard errors are those of the single rows."""
    rng = np.random.default_rng(3)
    o = weighted(rng, 500)
    once = replace(o, cluster=np.arange(500))
    twice = once[np.repeat(np.arange(500), 2)]
    for key in ("accuracy", "brier", "auroc"):
        one, two = (METRICS[key].interval(Tables(x)) for x in (once, twice))
        assert (two.low, two.high) == pytest.approx((one.low, one.high), abs=0.002), key


def test_samples_of_one_comparison_have_one_design():
    a = Outcomes.from_scores([0.9, 0.6], [1, 0], weights=[1.0, 2.0])
    with pytest.raises(
        InputError, match="the weights of the same samples must be the same in the first and the second"
    ):
        compare(a, replace(a, weights=None))


def test_an_audit_of_few_clusters_says_so():
    rng = np.random.default_rng(4)
    found = audit(clustered(rng, 12, 50), draws=50)
    assert found["auroc"].note == "only 10 clusters with any error, at least 20 are needed"


@pytest.mark.parametrize(("every", "errors"), [(5, 34), (10, 18)])
def test_few_heavy_rows_count_as_few(every, errors):
    """Some rows have almost all the weight, so the errors among them count; all in all there are hundreds."""
    o = heavy(np.random.default_rng(4), 800, 0.0)
    found = audit(replace(o, weights=np.where(np.arange(800) % every == 0, 1000.0, 1.0)), draws=50)["auroc"]
    assert (~o.correct[::every]).sum() == errors
    note = f"only as much as {errors} errors of equal weight, at least 20 are needed"
    assert (found.interval is None, found.note) == ((True, note) if errors < 20 else (False, ""))


def test_a_prior_shift_reaches_the_audit():
    rng = np.random.default_rng(5)
    p = rng.random(2000)
    enriched = Predictions.from_binary_probabilities(p, (rng.random(2000) < p).astype(int))
    found = audit(enriched.with_prior([0.9, 0.1]), draws=50)
    assert found.positive.excess > 0.1
    assert found.positive.p_value < 0.05


def whole_clusters(
    rng: np.random.Generator, n_clusters: int, size: int, accuracy: float, confidence: float
) -> Outcomes:
    """Clusters whose answers are all right or all wrong."""
    correct = np.repeat(rng.random(n_clusters) < accuracy, size)
    return Outcomes.from_scores(
        np.full(n_clusters * size, confidence), correct, cluster=np.repeat(np.arange(n_clusters), size)
    )


@pytest.mark.parametrize("draws", DRAWS)
@pytest.mark.parametrize(
    ("n_clusters", "size", "accuracy", "confidence"),
    [(100, 10, 0.99, 0.999), (50, 10, 0.97, 0.999), (40, 10, 0.02, 0.6), (20, 10, 0.95, 0.6)],
)
def test_few_bad_clusters_are_no_sign_that_answers_are_independent(n_clusters, size, accuracy, confidence, draws):
    """Often no cluster, or one, is seen to be wrong; then nothing shows that its answers hang together."""
    rng, covered = np.random.default_rng(6), Counter()
    truth = {"accuracy": accuracy, "risk_at_90": 1 - accuracy}
    truth |= dict.fromkeys(("ece", "ada_ece"), abs(confidence - accuracy))
    for _ in range(draws):
        t = Tables(whole_clusters(rng, n_clusters, size, accuracy, confidence), draws=100)
        for key, value in truth.items():
            covered[key] += METRICS[key].interval(t).low - 1e-9 <= value <= METRICS[key].interval(t).high + 1e-9
    assert min(covered.values()) >= 0.92 * draws - 2 * np.sqrt(0.0736 * draws), covered


@pytest.mark.parametrize("draws", DRAWS)
@pytest.mark.parametrize(("n_clusters", "size"), [(6, 30), (15, 20), (60, 10)])
@pytest.mark.parametrize("confidence", ["of a cluster", "near 1"])
def test_calibrated_clusters_are_seldom_accused(confidence, n_clusters, size, draws):
    """Answers of a cluster share their luck almost wholly; its confidence is one, as of one patient, or near 1."""
    rng, accused = np.random.default_rng(7), 0
    cluster = np.repeat(np.arange(n_clusters), size)
    for draw in range(draws):
        common, own = rng.normal(size=n_clusters)[cluster], rng.normal(size=len(cluster))
        luck = ndtr(np.sqrt(0.9) * common + np.sqrt(0.1) * own)
        one = rng.uniform(0.5, 1, n_clusters)[cluster]
        c = one if confidence == "of a cluster" else 1 - 0.02 * rng.random(len(cluster))
        o = Outcomes.from_scores(c, luck < c, cluster=cluster)
        accused += inference.floors(Tables(o, draws=200, seed=draw)).ece.p_value(metrics.ece(o)) < 0.05
    assert accused <= 0.055 * draws + 2 * np.sqrt(0.052 * draws)


def test_the_noise_floor_of_rows_with_a_prior_is_what_calibrated_models_show():
    """Rows of the rare class weigh least and are wrong most, so weights do depend on correctness."""
    rng, seen, floor = np.random.default_rng(8), [], []
    for _ in range(40):
        labels = rng.integers(0, 2, 1000)
        odds = 2 * rng.normal(size=1000) + 4 * labels - 2 + np.log(0.05 / 0.95)
        rows = Predictions.from_binary_probabilities(expit(odds), labels).with_prior([0.95, 0.05])
        t = Tables(rows, draws=100)
        seen.append(METRICS["ece"].of(t))
        floor.append(inference.floors(t).ece.mean)
    assert 0.9 < np.mean(floor) / np.mean(seen) < 1.3  # weights taken for independent of correctness give 1.6


def test_answers_that_are_all_right_have_an_interval_whatever_their_weights():
    rng = np.random.default_rng(9)
    for n in (10, 30, 1000):
        weights = rng.exponential(size=n)
        one = METRICS["accuracy"].interval(Tables(Outcomes.from_scores(np.full(n, 0.9), np.ones(n), weights=weights)))
        effective = weights.sum() ** 2 / (weights**2).sum()
        assert one.high == 1.0
        assert one.low <= inference.proportion_interval(effective, effective).low + 1e-9


def test_clusters_of_independent_rows_keep_most_of_their_power():
    shown = Counter()
    for seed in range(20):
        rng = np.random.default_rng(seed)
        first, luck, c = rng.random(1000) < 0.9, rng.random(1000), rng.uniform(0.5, 1, 1000)
        second = np.where(first, luck < 0.975, luck < 0.65)  # four points more
        for name, cluster in {"rows": None, "clusters": np.arange(1000) // 10}.items():
            a, b = (Outcomes.from_scores(c, x, cluster=cluster) for x in (first, second))
            verdict = compare(a, b).verdicts[0]
            shown[name] += verdict.word == "better"
            assert verdict.detectable < 0.05  # .09 if all rows of an unseen cluster are taken to change
    assert shown["rows"] >= 18
    assert shown["clusters"] >= 16


def test_what_would_have_been_shown_of_several_runs_is_about_as_wide_as_their_interval():
    rng = np.random.default_rng(10)
    c = rng.uniform(0.5, 1, 5000)
    a, b = ([Outcomes.from_scores(c, rng.random(5000) < c) for _ in range(3)] for _ in range(2))
    compared = compare(a, b)
    interval, verdict = compared["accuracy"].interval, compared.verdicts[0]
    assert (interval.high - interval.low) / 2 < verdict.detectable < interval.high - interval.low


def test_clusters_of_one_share_of_errors_are_rows():
    """They show no spread of their own, and metrics whose noise is not seen have no interval."""
    correct, cluster = np.tile([1, 1, 1, 0], 60), np.repeat(np.arange(60), 4)
    rng = np.random.default_rng(0)
    found = audit(Outcomes.from_scores(rng.uniform(0.5, 1, 240), correct, cluster=cluster))
    interval = found["accuracy"].interval
    assert interval.high - interval.low == pytest.approx(2 * 1.96 * np.sqrt(0.75 * 0.25 / 240), rel=0.1)
    same = audit(Outcomes.from_scores(np.tile([0.9, 0.8, 0.7, 0.75], 60), correct, cluster=cluster))
    interval = same["aurc"].interval
    assert interval is None or interval.high - interval.low > 0.005


@pytest.mark.parametrize("seed", [3, 7])
def test_rows_of_next_to_no_weight_are_audited(seed):
    """In units of the mean weight, the first rows of the ranking are too light to be seen in its sums."""
    rng = np.random.default_rng(seed)
    c = rng.uniform(0.5, 1, 500)
    rows = Outcomes.from_scores(c, rng.random(500) < c, weights=10 ** rng.uniform(-6, 6, 500))
    assert 0 <= audit(rows)["ece"].value <= 1
    errors = Outcomes.from_scores(c, rng.random(500) < c)
    assert audit(replace(errors, weights=np.where(errors.correct, 1e-12, 1.0)))["accuracy"].value < 1e-10
