"""Error bars must hold: coverage and level by simulation, small here and in full under `make verify`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import cycle, product

import numpy as np
import pytest
from scipy.special import expit

from assay import Outcomes, audit, compare, metrics
from assay.metrics import equal_mass, equal_width, inference, ranking

RANKED = ("auroc", "aupr_success", "aupr_error", "aurc", "e_aurc", "augrc")
INFLUENCES = {key: getattr(inference, f"{key}_influence") for key in RANKED}

DRAWS = [100, pytest.param(1000, marks=pytest.mark.long)]


def biased(rng: np.random.Generator, n: int, error: float) -> Outcomes:
    """Confidence uniform on [.3, 1), right `error` less often than it says: every binned error is `error`."""
    c = rng.uniform(0.3, 1, n)
    return Outcomes.from_scores(c, rng.random(n) < c - error)


def wavy(rng: np.random.Generator, n: int, error: float) -> Outcomes:
    """Crowded towards 1, over- and under-confident by turns from bin to bin: the equal-width l1 error is `error`."""
    c = 1 - 0.6 * rng.random(n) ** 2
    sign = np.where(np.ceil(c * 15) % 2 == 0, 1, -1)
    return Outcomes.from_scores(c, rng.random(n) < np.where(c > 14 / 15, c - error, c + sign * error))


@pytest.mark.parametrize("draws", DRAWS)
@pytest.mark.parametrize("law", [biased, wavy])
@pytest.mark.parametrize("n", [500, 5000])
@pytest.mark.parametrize("error", [0.0, 0.015, 0.05])
def test_ece_intervals_cover_the_truth(law, error, n, draws):
    rng = np.random.default_rng(1)
    covered = {"ece": 0, "ada_ece": 0, "ece_l2_mass": 0}
    for seed in range(draws):
        o = law(rng, n, error)
        r = ranking(o)
        floors = inference.noise_floors(r, draws=300, seed=seed)
        interval = inference.ece_interval(equal_width(o), floors.ece)
        covered["ece"] += error in interval
        if law is biased:
            covered["ada_ece"] += error in inference.ece_interval(equal_mass(r), floors.ada_ece)
            covered["ece_l2_mass"] += error in inference.ece_l2_interval(equal_mass(r), floors.ece_l2_mass)
        if error == 0:
            assert interval.high <= 2 * floors.ece.quantile(0.975)
    for key in covered if law is biased else ["ece"]:
        assert covered[key] >= 0.90 * draws, (key, covered[key])


@pytest.mark.parametrize("draws", DRAWS)
@pytest.mark.parametrize(("n", "confidence", "accuracy"), [(2000, 0.98, 0.9995), (200, 0.999, 0.99), (3, 0.98, 0.8)])
def test_ece_intervals_cover_where_errors_are_few(n, confidence, accuracy, draws):
    """One bin, and an error or none in it: that none is seen does not mean that there is none."""
    rng = np.random.default_rng(3)
    covered = 0
    for seed in range(draws):
        o = Outcomes.from_scores(np.full(n, confidence), rng.random(n) < accuracy)
        floor = inference.noise_floors(ranking(o), draws=300, seed=seed).ece
        covered += abs(confidence - accuracy) in inference.ece_interval(equal_width(o), floor)
    assert covered >= 0.90 * draws


@pytest.mark.parametrize("draws", DRAWS)
@pytest.mark.parametrize(("lowest", "n"), [(0.8, 300), (0.8, 3000), (0.4, 150)])
def test_ranking_intervals_cover_the_truth(lowest, n, draws):
    """Calibrated confidence uniform on [lowest, 1): 30, 300 and 45 errors on average. AURC is (1 - lowest) / 4."""
    rng = np.random.default_rng(2)

    def draw(size: int) -> Outcomes:
        c = rng.uniform(lowest, 1, size)
        return Outcomes.from_scores(c, rng.random(size) < c)

    everybody = ranking(_exhaustive(lowest))
    truth = {key: getattr(metrics, key)(everybody) for key in INFLUENCES} | {"aurc": (1 - lowest) / 4}
    truth |= {"fpr95": metrics.fpr95(everybody), "risk_at_90": 0.9 * (1 - lowest) / 2}
    assert metrics.aurc(everybody) == pytest.approx(truth["aurc"], rel=1e-3)
    check_ranking_intervals(draw, truth, n, draws)


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


def _exhaustive(lowest: float) -> Outcomes:
    """A population without noise: at each of many confidences, right and wrong answers in exact proportion."""
    c = np.linspace(lowest, 1, 2001)[:-1] + (1 - lowest) / 4000
    right = np.round(c * 1000).astype(int)
    confidence = np.repeat(c, 1000)
    return Outcomes.from_scores(confidence, np.tile(np.arange(1000), 2000) < np.repeat(right, 1000))


def twins(rng: np.random.Generator, n: int, sharpness: float, shared: float) -> tuple[Outcomes, Outcomes]:
    """Two models of one law on the same samples, alike to a degree: no better or worse than each other on any axis."""
    common = rng.normal(1.8, 1.2, n)
    luck = rng.random(n)

    def model() -> Outcomes:
        z = np.sqrt(shared) * common + np.sqrt(1 - shared) * rng.normal(1.8, 1.2, n)
        return Outcomes.from_scores(expit(sharpness * np.abs(z)), luck < expit(z))

    return model(), model()


LAWS = list(product([1.0, 2.0], [0.5, 0.95]))  # calibrated and over-confident; unlike and alike


@pytest.mark.parametrize(
    ("laws", "draws"), [(LAWS, 100), *(pytest.param([law], 1000, marks=pytest.mark.long) for law in LAWS)]
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
        o = Outcomes.from_scores(c, rng.random(5 * size) < c, group=np.arange(5 * size) % 5)
        called += bool(audit(o, draws=2).findings)
    assert called <= 0.07 * draws


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
    for interval, bins in ((inference.ece_interval, width), (inference.ece_l2_interval, mass)):
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
