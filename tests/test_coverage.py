"""Error bars must hold: coverage and level by simulation, small here and in full under `make verify`."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import partial
from itertools import cycle, product
from pathlib import Path

import numpy as np
import pytest
from populations import LAWS, SIZES, coverage, real_laws, too_low
from scipy.special import expit
from scipy.stats import binom

from assay import Outcomes, audit, compare, metrics
from assay.grouping import group_tests
from assay.metrics import equal_mass, equal_width, inference, ranking

RANKED = ("auroc", "aupr_success", "aupr_error", "aurc", "e_aurc", "augrc")
INFLUENCES = {key: getattr(inference, f"{key}_influence") for key in RANKED}

DRAWS = [100, pytest.param(1000, marks=pytest.mark.long)]


def biased(rng: np.random.Generator, n: int, error: float) -> Outcomes:
    """Confidence uniform on [.3, 1), right `error` less often than it says: every binned error is `error`."""
    c = rng.uniform(0.3, 1, n)
    return Outcomes.from_scores(c, rng.random(n) < c - error)


@pytest.mark.parametrize("name", LAWS)
def test_intervals_cover_the_truth(name):
    """A few draws of each law and size, taken together; the next test is the full bench."""
    found = Counter()
    for n in (100, 500):
        for key, count in coverage(LAWS[name], n, 20).items():
            found[key, "shown"] += count.shown
            found[key, "covered"] += count.covered
    for key in {key for key, _ in found}:
        shown, covered = found[key, "shown"], found[key, "covered"]
        assert covered >= 0.92 * shown - 3.5 * np.sqrt(0.92 * 0.08 * shown), (key, covered, shown)


@pytest.mark.long
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", [*LAWS, *real_laws()])
def test_every_interval_that_is_shown_covers(name, n):
    """600 draws: at 92 % at least 90 % are seen. Where an interval is seldom shown, chance leaves more room."""
    counts = coverage((LAWS | real_laws())[name], n, 600)
    low = {key: count.share for key, count in counts.items() if count.share < 0.90 and too_low(count)}
    assert not low, low


@pytest.mark.long
def test_intervals_are_no_wider_than_they_must_be():
    """At most 15 % wider than those of the first version wherever these held, but with few errors or tied scores.

    There a sample looks like one of a population in which the first intervals failed. The file has their median widths.
    """
    laws, wider, ratios = LAWS | real_laws(), [], defaultdict(list)
    for name, sizes in json.loads(Path(__file__).with_name("first_widths.json").read_text()).items():
        for size, first in sizes.items() if name in laws else ():
            n = int(size)
            counts = coverage(laws[name], n, 200, keys=first)
            for key, width in first.items():
                ratios[key].append(counts[key].width / width)
                tied = key == "fpr95" and "distinct values" in name
                if ratios[key][-1] > 1.15 and not tied:
                    wider.append((laws[name](n).errors(n), name, n, key))
    assert max(wider)[0] < 45, sorted(wider)
    assert len(wider) < 0.04 * sum(map(len, ratios.values()))
    assert max(map(np.median, ratios.values())) < 1.1


@pytest.mark.parametrize("draws", DRAWS)
@pytest.mark.parametrize(("error_rate", "distance", "stray", "n"), [(0.05, 3.0, 0.0, 600), (0.05, 3.0, 0.1, 600)])
def test_ranking_intervals_cover_near_a_perfect_ranking(error_rate, distance, stray, n, draws):
    """Normal scores, those of errors `distance` lower but for a share of strays: about 30 errors, AUROC .98 and .94."""
    rng = np.random.default_rng(9)

    def draw(size: int) -> Outcomes:
        wrong = rng.random(size) < error_rate
        low = wrong & (rng.random(size) >= stray)
        return Outcomes.from_scores(rng.normal(size=size) - distance * low, ~wrong, is_probability=False)

    everybody = ranking(draw(2_000_000))
    truth = {key: getattr(metrics, key)(everybody) for key in INFLUENCES}
    check_ranking_intervals(draw, truth, n, draws)


def check_ranking_intervals(draw: Callable[[int], Outcomes], truth: dict[str, float], n: int, draws: int) -> None:
    """AUROC and AURC cover the truth in 92 % of draws with 20 errors or more, the others in 90 %."""
    others = {"fpr95": inference.fpr95_interval, "risk_at_90": partial(inference.risk_interval, coverage=0.9)}
    covered = dict.fromkeys(truth, 0)
    done = 0
    while done < draws:
        r = ranking(draw(n))
        if r.n_wrong < 20:
            continue
        done += 1
        for key, true_value in truth.items():
            ranked = key in INFLUENCES
            interval = (
                inference.share_interval(getattr(metrics, key)(r), INFLUENCES[key](r)) if ranked else others[key](r)
            )
            covered[key] += true_value in interval
    assert min(covered["auroc"], covered["aurc"]) >= 0.92 * draws, covered
    assert min(covered.values()) >= 0.90 * draws, covered


def twins(rng: np.random.Generator, n: int, sharpness: float, shared: float) -> tuple[Outcomes, Outcomes]:
    """Two models of one law on the same samples, alike to a degree: no better or worse than each other on any axis."""
    common = rng.normal(1.8, 1.2, n)
    luck = rng.random(n)

    def model() -> Outcomes:
        z = np.sqrt(shared) * common + np.sqrt(1 - shared) * rng.normal(1.8, 1.2, n)
        return Outcomes.from_scores(expit(sharpness * np.abs(z)), luck < expit(z))

    return model(), model()


TWINS = list(product([1.0, 2.0], [0.5, 0.95]))  # calibrated and over-confident; unlike and alike


@pytest.mark.parametrize(
    ("laws", "draws"), [(TWINS, 100), *(pytest.param([law], 1000, marks=pytest.mark.long) for law in TWINS)]
)
@pytest.mark.parametrize("n", [500, 5000])
def test_equal_models_are_seldom_called_different(n, laws, draws):
    """A hundred draws over all laws here, a thousand of each in full."""
    rng = np.random.default_rng(3)
    called = 0
    for _, law in zip(range(draws), cycle(laws), strict=False):
        verdicts = compare(*twins(rng, n, *law)).verdicts
        called += any(verdict.word in ("better", "worse") for verdict in verdicts)
    assert called <= 0.07 * draws


@pytest.mark.parametrize("draws", DRAWS)
@pytest.mark.parametrize("n", [60, 150, 500])
def test_calibrated_models_of_unlike_sharpness_are_not_called_different(n, draws):
    """One says the chance itself, the other the base rate: both are calibrated, whatever their noise."""
    rng = np.random.default_rng(10)
    called = 0
    for _ in range(draws):
        c = rng.uniform(0.3, 1, n)
        correct = rng.random(n) < c
        found = compare(Outcomes.from_scores(c, correct), Outcomes.from_scores(np.full(n, 0.65), correct))
        called += found.verdicts[1].word in ("better", "worse")
    assert called <= 0.07 * draws


@pytest.mark.parametrize("draws", DRAWS)
@pytest.mark.parametrize(("size", "crowd"), [(20, 1), (60, 3), (400, 1)])
def test_equal_groups_are_seldom_called_worse(size, crowd, draws):
    """Calibrated, spread out or crowded towards 1, in small groups and large."""
    rng = np.random.default_rng(4)
    called = 0
    for _ in range(draws):
        c = 1 - 0.6 * rng.random(5 * size) ** crowd
        o = Outcomes.from_scores(c, rng.random(5 * size) < c)
        rows = {str(i): np.arange(5 * size) % 5 == i for i in range(5)}
        called += bool(group_tests(o, rows, by_label=False).findings)
    assert called <= 0.07 * draws


@pytest.mark.parametrize(("size", "least"), [(500, 0.8), (1000, 0.95)])
def test_one_over_confident_group_of_twenty_is_named(size, least):
    """One of 20 groups is 10 points over-confident, all others are calibrated."""
    rng = np.random.default_rng(13)
    named = 0
    rows = {str(i): np.arange(20 * size) // size == i for i in range(20)}
    for _ in range(40):
        c = rng.uniform(0.5, 1, 20 * size)
        o = Outcomes.from_scores(c, rng.random(20 * size) < c - 0.1 * rows["7"])
        findings = group_tests(o, rows, by_label=False).findings
        named += any(f.group == "7" and f.metric == "over_confidence" for f in findings)
    assert named >= least * 40


def test_noise_floor_is_what_calibrated_answers_show():
    """Against answers drawn one by one, with no runs of neighbors."""
    rng = np.random.default_rng(5)
    c = 1 - 0.6 * rng.random(5000) ** 2
    o = Outcomes.from_scores(c, rng.random(5000) < c)
    floors = inference.noise_floors(ranking(o), draws=1000)
    drawn = [Outcomes.from_scores(c, rng.random(5000) < c) for _ in range(300)]
    ece = np.array([metrics.ece(equal_width(x)) for x in drawn])
    ada = np.array([metrics.ece(equal_mass(ranking(x))) for x in drawn])
    squared = np.array([metrics.ece(equal_mass(ranking(x)), norm=2) for x in drawn])
    for floor, sample in ((floors.ece, ece), (floors.ada_ece, ada), (floors.ece_l2_mass, squared)):
        assert floor.mean == pytest.approx(sample.mean(), abs=4 * sample.std() / np.sqrt(300))
        assert floor.draws.std() == pytest.approx(sample.std(), rel=0.2)


def test_an_interval_holds_its_own_value_and_does_not_collapse():
    """Also where luck shows less error than noise usually does."""
    rng = np.random.default_rng(11)
    lucky = Outcomes.from_scores([0.5] * 100, [1, 0] * 50)
    draws = [lucky, *(biased(rng, 300, error) for error in (0.0, 0.1, 0.2) for _ in range(10))]
    for o in draws:
        found = audit(o, draws=100)
        for key in ("ece", "ada_ece", "ece_l2_mass", "debiased_ece"):
            assert found[key].value in found[key].interval
            assert found[key].interval.high > 0.02
        assert found["ece"].interval.low == 0 or found.calibrated_p < 0.05


def test_what_noise_explains_has_a_lower_end_of_zero():
    o = biased(np.random.default_rng(12), 2000, 0.1)
    width, mass = equal_width(o), equal_mass(ranking(o))
    explained, refuted = inference.NoiseFloor(np.full(9, 0.5)), inference.NoiseFloor(np.full(9, 0.01))
    square = inference.calibration_estimate(inference.calibration_part(o, ranking(o)))
    l2_interval = partial(inference.ece_l2_interval, square=square)
    for interval, bins in ((inference.ece_interval, width), (l2_interval, mass)):
        assert interval(bins, explained).low == 0
        assert interval(bins, refuted).low > 0.05


def test_p_value_of_calibrated_data_is_uniform():
    rng = np.random.default_rng(6)
    p = []
    for seed in range(200):
        o = biased(rng, 400, 0.0)
        floors = inference.noise_floors(ranking(o), draws=200, seed=seed)
        p.append(floors.ece.p_value(metrics.ece(equal_width(o))))
    assert np.mean(p) == pytest.approx(0.5, abs=0.08)
    assert np.mean(np.array(p) <= 0.1) == pytest.approx(0.1, abs=0.065)


@pytest.mark.parametrize("levels", [3, 40])
@pytest.mark.parametrize("key", INFLUENCES)
def test_influence_is_what_leaving_a_sample_out_does(key, levels):
    rng = np.random.default_rng(7)
    c = rng.integers(1, levels + 1, 250) / levels
    o = Outcomes.from_scores(c, rng.random(250) < 0.2 + 0.7 * c)
    metric, influence = getattr(metrics, key), INFLUENCES[key](ranking(o)).of(o)
    keep = ~np.eye(250, dtype=bool)
    left_out = np.array([metric(ranking(o[keep[i]])) for i in range(250)])
    jackknife = 249 * (metric(ranking(o)) - left_out)
    assert np.corrcoef(influence, jackknife)[0, 1] > 0.998
    assert influence.std() == pytest.approx(jackknife.std(), rel=0.03)
    assert influence.mean() == pytest.approx(0, abs=1e-9)


def test_auroc_variance_is_delongs():
    """V10 and V01 of DeLong et al. (1988), pair by pair."""
    rng = np.random.default_rng(8)
    c = rng.integers(1, 15, 120) / 15
    o = Outcomes.from_scores(c, rng.random(120) < c)
    right, wrong = o.confidence[o.correct], o.confidence[~o.correct]
    wins = (right[:, None] > wrong) + 0.5 * (right[:, None] == wrong)
    expected = float(wins.mean(1).var(ddof=1) / len(right) + wins.mean(0).var(ddof=1) / len(wrong))
    assert INFLUENCES["auroc"](ranking(o)).variance() == pytest.approx(expected, rel=1e-12)


def weighted_groups(rng: np.random.Generator, c: np.ndarray) -> Outcomes:
    return Outcomes.from_scores(c, rng.random(len(c)) < c, weights=rng.choice([1.0, 3.0], len(c)))


def clustered_groups(rng: np.random.Generator, c: np.ndarray) -> Outcomes:
    """Clusters of five, whose answers share their luck half of the time."""
    cluster = np.arange(len(c)) // 5
    luck = np.where(rng.random(len(c)) < 0.5, rng.random(len(c) // 5)[cluster], rng.random(len(c)))
    return Outcomes.from_scores(c, luck < c, cluster=cluster)


@pytest.mark.parametrize("draws", [10, pytest.param(600, marks=pytest.mark.long)])
@pytest.mark.parametrize("design", [weighted_groups, clustered_groups])
@pytest.mark.parametrize("crowd", [1, 4])
def test_equal_groups_with_weights_or_clusters_are_seldom_called_worse(crowd, design, draws):
    called = 0
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        o = design(rng, 1 - 0.6 * rng.random(10_000) ** crowd)
        rows = {str(i): np.arange(10_000) // 500 == i for i in range(20)}
        called += bool(group_tests(o, rows, by_label=False).findings)
    assert called <= binom.ppf(0.999, draws, 0.05)
