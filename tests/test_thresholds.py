"""A bench of laws for thresholds: promises are kept, and no simpler search reaches much further."""

from __future__ import annotations

import os
from dataclasses import replace
from math import ceil, inf, log2
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from assay import Outcomes, Predictions, choose_threshold, examples, files, metrics
from assay._core.arrays import InputError
from assay.thresholds import GroupThresholds, risk_bound

N = 200_000  # samples of a population
FOLDER = os.environ.get("ASSAY_DATA")


def logistic(x):
    return 1 / (1 + np.exp(-np.abs(x)))


def simulated(name):
    """Scores of a population, and the chance that each answer is wrong."""
    rng = np.random.default_rng(99)
    u, good, middling = rng.uniform(size=N), logistic(rng.normal(5, 3, N)), logistic(rng.normal(3, 2, N))
    flat, near_one, three = 0.7 + 0.3 * u, 1 - 1e-4 * u, rng.choice([0.6, 0.9, 0.99], N, p=[0.2, 0.3, 0.5])
    return {
        "good": lambda: (good, 1 - good),
        "middling": lambda: (middling, 1 - middling),
        "flat": lambda: (flat, 1 - flat),
        "near one": lambda: (near_one, 0.02 * u),
        "three values": lambda: (three, 1 - three),
        "ten values": lambda: (np.ceil(10 * u) / 10, 0.25 * (1 - np.ceil(10 * u) / 10) + 0.004),
        "the surest are worst": lambda: (u, np.where(u > 0.95, 0.3, 0.005 + 0.1 * (0.95 - u))),
        "a few sure errors": lambda: (u, np.where(u > 0.99, 0.2, 0.002 + 0.1 * (1 - u))),
        "a bump": lambda: (u, np.where((u > 0.6) & (u < 0.7), 0.15, 0.003 + 0.03 * (1 - u))),
        "one risk": lambda: (u, np.full(N, 0.01)),
        "a step": lambda: (u, np.where(u > 0.3, 0.004, 0.5)),
        "reversed": lambda: (u, 0.001 + 0.1 * u),
        "accuracy .2": lambda: (u, 0.9 * (1 - u**4)),
    }[name]()


SIMULATED = (
    *("good", "middling", "flat", "near one", "three values", "ten values", "the surest are worst"),
    *("a few sure errors", "a bump", "one risk", "a step", "reversed", "accuracy .2"),
)
NETWORKS = (
    *("cifar10_resnet20_clean", "cifar10_resnet56_clean", "cifar10_resnet20_gaussian_noise_1"),
    *("cifar10_resnet20_jpeg_5", "imagenet_effnet_lite0_5000"),
)


def network(name):
    """Answers of a real network as a population."""
    if name == "float32":  # many confidences are 1 then, errors among them
        score, wrong = network("example")
        return score.astype(np.float32).astype(np.float64), wrong
    rows = examples.load() if name == "example" else files.read(Path(FOLDER, "predictions", f"{name}.npz"))
    o = rows.outcomes()
    return o.confidence, (~o.correct).astype(float)


class Population:
    def __init__(self, score, wrong):
        order = np.argsort(-score, kind="stable")
        self.score, self.wrong = score[order], wrong[order]
        self.risks = np.cumsum(self.wrong) / np.arange(1, len(order) + 1)

    def draw(self, n, rng):
        rows = rng.integers(0, len(self.score), n)
        return Outcomes.from_scores(self.score[rows], rng.uniform(size=n) >= self.wrong[rows], is_probability=False)

    def risk(self, value):
        accepted = np.searchsorted(-self.score, -value, side="right")
        return self.risks[accepted - 1] if accepted else 0.0


def sgr(r, risk):
    """Coverage by the binary search of Geifman & El-Yaniv (2017)."""
    steps = ceil(log2(r.n))
    low, high, best = 0, r.n, 0
    for _ in range(steps):
        middle = (low + high + 1) // 2
        row = np.searchsorted(r.kept, middle)
        passed = risk_bound(r.wrong[row], r.kept[row], 1 - 0.05 / steps) <= risk
        low, high = (middle, high) if passed else (low, middle)
        best = max(best, int(row)) if passed else best
    return r.kept[best] / r.n


def bonferroni(r, risk):
    """Coverage by twenty looks, each at a twentieth of the doubt."""
    rows = np.searchsorted(r.kept, r.n * np.arange(1, 21) / 20 - 1e-9)
    passed = rows[binom.cdf(r.wrong[rows], r.kept[rows], risk) <= 0.05 / 20]
    return r.kept[passed.max(initial=0)] / r.n


def judged(population, n, risk, draws):
    """Number of broken promises, and coverages of ours, SGR and Bonferroni."""
    broken, reached, rng = 0, [], np.random.default_rng(0)
    for _ in range(draws):
        outcomes = population.draw(n, rng)
        t = choose_threshold(outcomes, risk=risk)
        r = metrics.ranking(outcomes)
        promised = [x for x in (t, t.instead) if x is not None]
        broken += any(population.risk(x.value) > x.guaranteed_risk for x in promised)
        reached.append((t.coverage, sgr(r, risk), bonferroni(r, risk)))
    return broken, np.mean(reached, axis=0)


@pytest.mark.parametrize(
    ("law", "n", "risk"),
    [
        ("the surest are worst", 2000, 0.05),
        ("a few sure errors", 500, 0.1),
        ("good", 2000, 0.02),
        ("reversed", 500, 0.1),
    ],
)
def test_promises_are_kept_and_reach_as_far_as_simpler_searches(law, n, risk):
    broken, (ours, binary, looks) = judged(Population(*simulated(law)), n, risk, 60)
    assert broken <= binom.ppf(0.999, 60, 0.05)
    assert ours >= max(binary, looks) - 0.08  # 60 draws have errors of 3 points


@pytest.mark.long
@pytest.mark.parametrize("risk", [0.01, 0.02, 0.05, 0.1])
@pytest.mark.parametrize("n", [200, 500, 2000, 10_000])
@pytest.mark.parametrize("law", [*SIMULATED, "example", "float32", *(NETWORKS if FOLDER else ())])
def test_bench_of_laws(law, n, risk):
    population = Population(*(simulated if law in SIMULATED else network)(law))
    broken, (ours, binary, looks) = judged(population, n, risk, 400)
    assert broken <= 0.058 * 400
    assert ours >= max(binary, looks) - 0.05


def test_one_early_error_does_not_end_the_search():
    correct = np.ones(5000, bool)
    correct[[0, 1, 2]] = False
    sure = Outcomes.from_scores(np.linspace(1, 0.5, 5000), correct)
    assert choose_threshold(sure, risk=0.01).coverage == 1


def test_the_smallest_bound_of_22_fixed_looks_is_given_instead():
    outcomes = examples.load().outcomes()
    r = metrics.ranking(outcomes)
    refused = choose_threshold(outcomes, risk=0.001)
    assert refused.accepted == 0
    other = refused.instead
    rows = np.searchsorted(r.kept, r.n * np.append([0.01, 0.02], np.arange(1, 21) / 20) - 1e-6)
    bounds = risk_bound(r.wrong[rows], r.kept[rows], 1 - 0.05 / 22)  # 22 looks share the doubt
    assert other.guaranteed_risk == pytest.approx(bounds.min())
    assert other.accepted == r.kept[rows[bounds.argmin()]]
    assert f"at most {other.guaranteed_risk:.2%} can be, on {other.coverage:.1%} of inputs" in str(refused)
    assert choose_threshold(Outcomes.from_scores([0.9, 0.8], [0, 0]), risk=0.1).instead is None


def test_what_is_given_instead_does_not_depend_on_what_was_asked_for():
    """A smaller bound is not left out because more was asked for."""
    outcomes = examples.load().outcomes()[:1000]
    found = {choose_threshold(outcomes, risk=risk).instead for risk in (0.001, 0.01, 0.02)}
    assert len(found) == 1


def test_a_bound_of_a_fixed_look_below_the_refused_risk_is_shown():
    """Errors among the surest, then a risk of 3 % up to 700 rows: the chains of tests fail, one fixed look passes."""
    rng, place = np.random.default_rng(18), np.arange(2000)
    wrong = rng.random(2000) < np.where(place < 700, 0.03, 0.8)
    wrong[:60] |= rng.random(60) < 0.15
    refused = choose_threshold(Outcomes.from_scores(-place.astype(float), ~wrong, is_probability=False), risk=0.06)
    assert refused.accepted == 0
    assert refused.instead.guaranteed_risk == pytest.approx(0.0568, abs=1e-4)
    assert "0.06 cannot be promised at 0.95 by a search for the largest coverage; at most 5.68% can be" in str(refused)


def test_an_error_that_the_next_samples_make_up_for_does_not_end_the_search():
    """The errors of a ResNet-20 under noise: a chain that is tested at each half per cent ends among the first."""
    first = [67, 229, 301, 495, 649, 831, 856, 968, 1005, 1066, 1183, 1189, 1268, 1281, 1301, 1304, 1328, 1337, 1554]
    wrong = np.zeros(10_000, bool)
    wrong[[*first, 1605, 1678, 1702, 1740, 1794, 1810, 1844, 1853, 1861]] = True
    wrong[1900:] = True
    found = choose_threshold(Outcomes.from_scores(np.linspace(1, 0, 10_000), ~wrong), risk=0.02)
    assert found.coverage > 0.17
    assert bonferroni(metrics.ranking(Outcomes.from_scores(np.linspace(1, 0, 10_000), ~wrong)), 0.02) == 0.1


@pytest.mark.skipif(not FOLDER, reason="needs the predictions of public networks, ASSAY_DATA")
@pytest.mark.parametrize("risk", [0.002, 0.005, 0.01, 0.02, 0.025, 0.03, 0.05, 0.1])
def test_no_simpler_search_reaches_five_points_further_on_any_network(risk):
    for path in sorted(Path(FOLDER, "predictions").glob("*.npz")):
        r = metrics.ranking(files.read(path).outcomes())
        ours = choose_threshold(r, risk=risk).coverage
        assert ours >= max(sgr(r, risk), bonferroni(r, risk)) - 0.05, path.name


def test_an_unknown_way_to_group_is_refused():
    with pytest.raises(InputError, match="by must be one of group, class, got 'foo'"):
        choose_threshold(two_groups(100, 0), by="foo", risk=0.2)


def two_groups(n, seed, *, hard=0.3):
    """Calibrated answers in an easy group; in a hard one a share is wrong at any confidence."""
    rng = np.random.default_rng(seed)
    confidence, easy = logistic(rng.normal(5, 3, n)), rng.uniform(size=n) < 0.7
    correct = rng.uniform(size=n) < np.where(easy, confidence, 1 - hard)
    return Outcomes.from_scores(confidence, correct, group=np.where(easy, "easy", "hard"))


def test_each_group_has_its_promise():
    chosen = choose_threshold(two_groups(4000, 0), by="group", risk=0.05)
    assert isinstance(chosen, GroupThresholds)
    assert {name: t.confidence for name, t in chosen.groups.items()} == pytest.approx({"easy": 0.975, "hard": 0.975})
    assert chosen.groups["easy"].observed_risk < 0.05
    assert chosen.groups["hard"].value == inf
    assert chosen.groups["hard"].instead.guaranteed_risk > 0.25
    alone = replace(two_groups(4000, 0), group=None)[two_groups(4000, 0).group == "easy"]
    assert chosen.groups["easy"] == choose_threshold(alone, risk=0.05, confidence=0.975)
    assert chosen.accepts([0.9999, 0.9999], ["easy", "hard"]).tolist() == [True, False]
    with pytest.raises(InputError, match="row 1: there is no threshold for group other"):
        chosen.accepts([0.9, 0.9], ["easy", "other"])
    assert "all promises hold together at 95% confidence" in str(chosen)


def test_promises_of_groups_hold_together():
    """Ten groups that follow one law: each promise alone at 95 % would break one of them in four draws of ten."""
    population = Population(*simulated("flat"))
    broken = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        rows = population.draw(3000, rng)
        grouped = replace(rows, group=rng.integers(0, 10, 3000).astype(str))
        thresholds = choose_threshold(grouped, by="group", risk=0.1).groups.values()
        broken += any(population.risk(t.value) > 0.1 for t in thresholds)
    assert broken <= binom.ppf(0.999, 60, 0.05)


def test_a_group_in_which_the_promise_is_broken_is_named():
    chosen = choose_threshold(two_groups(4000, 0), risk=0.15)
    assert [risk.group for risk in chosen.broken] == ["hard"]
    assert chosen.broken[0].wrong / chosen.broken[0].accepted > 0.25
    assert "not kept in hard: " in str(chosen)
    assert choose_threshold(two_groups(4000, 0, hard=0.01), risk=0.15).broken == ()


def test_groups_of_one_law_are_not_accused():
    accused = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        confidence = rng.uniform(0.7, 1, 2000)
        rows = Outcomes.from_scores(confidence, rng.uniform(size=2000) < confidence, group=rng.integers(0, 10, 2000))
        accused += bool(choose_threshold(rows, risk=0.1).broken)
    assert accused <= binom.ppf(0.999, 100, 0.05)


def test_each_predicted_class_has_its_promise():
    p = replace(examples.load(), classes=tuple("abcdefghij"))
    chosen = choose_threshold(p, by="class", risk=0.1)
    assert list(chosen.groups) == list("abcdefghij")
    assert sum(t.n for t in chosen.groups.values()) == len(p)
    assert chosen.groups["d"].n == (p.values.argmax(1) == 3).sum()


def test_groups_must_exist():
    with pytest.raises(InputError, match="no column of groups"):
        choose_threshold(examples.load(), by="group")
    with pytest.raises(InputError, match="needs predictions of all classes"):
        choose_threshold(examples.load().outcomes(), by="class")
    with pytest.raises(InputError, match="a ranking has no groups"):
        choose_threshold(metrics.ranking(Predictions.from_logits([[1.0, 0.0]], [0])), by="group")
