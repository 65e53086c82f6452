"""How many samples to plan for: with weights and clusters, and at the level at which a comparison decides."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from assay import Outcomes, audit, compare, examples
from assay._core.arrays import InputError
from assay.cli import main
from assay.metrics.inference import design_of
from assay.planning import DETECTABLE, plan

SIZES = dict.fromkeys(DETECTABLE, 0.01)


@pytest.fixture
def pilot():
    return examples.load()[:1000].outcomes()


def repeated(rows, times):
    """Each row so many times, as one cluster."""
    return replace(rows[np.repeat(np.arange(len(rows)), times)], cluster=np.repeat(np.arange(len(rows)), times))


def test_rows_that_are_repeated_are_needed_as_often(pilot):
    for once, often in zip(plan(pilot, SIZES), plan(repeated(pilot, 10), SIZES), strict=True):
        assert often.n == pytest.approx(10 * once.n, rel=0.003)
        assert "samples in clusters like these show" in str(often)


def test_clusters_of_one_row_change_nothing(pilot):
    alone = replace(pilot, cluster=np.arange(len(pilot)))
    assert [p.n for p in plan(alone, SIZES)] == pytest.approx([p.n for p in plan(pilot, SIZES)], rel=0.003)


def test_weights_count(pilot):
    """The error of the weighted mean on as many samples as planned is what shows the difference 4 times of 5."""
    weighted = replace(pilot, weights=np.where(pilot.correct, 1.0, 20.0))
    error = design_of(weighted).mean(1.0 - pilot.correct).error
    [found] = plan(weighted, {"risk": 0.01})
    assert error * np.sqrt(len(pilot) / found.n) * (1.959964 + 0.841621) == pytest.approx(0.01, rel=1e-3)
    assert found.n != pytest.approx(plan(pilot, {"risk": 0.01})[0].n, rel=0.05)
    assert plan(weighted, {"ece": 0.01})[0].n > 1.5 * plan(pilot, {"ece": 0.01})[0].n


@pytest.mark.parametrize("draws", [60, pytest.param(600, marks=pytest.mark.long)])
@pytest.mark.parametrize("near_1", [False, True])
def test_an_audit_of_as_many_rows_as_planned_finds_the_over_confidence(near_1, draws):
    rng = np.random.default_rng(0)

    def answers(n, over):
        c = 1 - 0.12 * rng.random(n) ** 2 if near_1 else rng.uniform(0.4, 0.9, n)
        return Outcomes.from_scores(c, rng.random(n) < c - over)

    [found] = plan(answers(20_000, 0.0), {"ece": 0.05})
    shown = sum(audit(answers(found.n, 0.05), draws=200).calibrated_p < 0.05 for _ in range(draws))
    assert shown / draws == pytest.approx(0.8, abs=0.08 + 2.5 * np.sqrt(0.16 / draws))


def test_what_two_models_do_not_tell_has_its_own_reason(pilot):
    with pytest.raises(InputError, match="'auroc': both models answer alike"):
        plan(pilot, {"auroc": 0.01}, pilot)
    three = replace(pilot, cluster=np.arange(len(pilot)) % 3)
    with pytest.raises(InputError, match="only 3 clusters, at least 5 are needed"):
        plan(three, {"risk": 0.01}, three)


def test_two_models_are_planned_for_at_the_level_at_which_they_are_compared():
    """What a comparison that shows nothing could just have shown takes as many samples as it had."""
    a = examples.load()
    b = replace(a, values=a.values + np.random.default_rng(0).normal(0, 0.2, a.values.shape))
    compared = compare(a, b)
    assert [verdict.word for verdict in compared.verdicts] == ["none shown"] * 3
    accuracy, _, refinement = (verdict.detectable for verdict in compared.verdicts)
    found = plan(a, {"auroc": refinement, "risk": accuracy}, b)
    assert [p.n for p in found] == pytest.approx([len(a)] * 2, rel=0.01)
    assert "if 3 axes are compared and share the level of 5 %" in str(found[0])


def test_words_are_right():
    a, b = examples.load()[:2000], examples.load("label_smoothing")[:2000]
    assert "samples show a difference in error rate of 1 point 4 times" in str(plan(a, {"risk": 0.01}, b)[0])
    assert "over-confidence of 2 points" in str(plan(a, {"ece": 0.02})[0])


@pytest.mark.parametrize(
    ("rows", "metric", "reason"),
    [
        (Outcomes.from_scores([0.9], [1]), "ece", "only 1 row, at least 2 are needed to tell how noisy"),
        (
            Outcomes.from_scores([0.9, 0.8], [1, 0], cluster=[1, 1]),
            "risk",
            "only 1 cluster, at least 5 are needed to tell how noisy",
        ),
        (Outcomes.from_scores([3.0, 2.0], [1, 0], is_probability=False), "ece", "the score is no probability"),
        (Outcomes.from_scores([0.9, 0.8], [1, 1]), "risk", "there is no error among them"),
        (Outcomes.from_scores([0.9, 0.8], [0, 0]), "risk", "every answer is wrong"),
        (Outcomes.from_scores([0.9, 0.8], [0, 0], weights=[1, 3]), "risk", "every answer is wrong"),
        (
            Outcomes.from_scores([0.9, 0.8, 0.7] * 5, [1, 0, 1] * 5, cluster=np.repeat(np.arange(5), 3)),
            "risk",
            "all clusters are alike",
        ),
    ],
)
def test_a_pilot_that_tells_nothing_is_refused_for_its_reason(rows, metric, reason):
    with pytest.raises(InputError, match=reason):
        plan(rows, {metric: 0.01})


def test_the_command_says_whose_noise_it_takes(capsys):
    with pytest.raises(SystemExit):
        main(["plan", "--detect", "ece=0.01"])
    assert "the pilot is the embedded example" in capsys.readouterr().out


@pytest.mark.parametrize("differing", [0, 12])
def test_models_that_hardly_differ_are_told_apart_as_often_as_planned(differing):
    """The pairs that a pilot has not seen are a number of pairs, not a share of them."""
    rng = np.random.default_rng(0)
    c, first = rng.uniform(0.5, 1, 4000), rng.random(4000) < 0.9
    second = first ^ (np.arange(4000) < differing)
    a, b = (Outcomes.from_scores(c, x) for x in (first, second))
    n = plan(a, {"risk": 0.01}, b)[0].n
    shown = 0
    for _ in range(100):
        first, pair = rng.random(n) < 0.9, rng.random(n)
        lost = differing / 4000 / 2
        first = np.where(pair < 0.01 + lost, False, np.where(pair < 0.01 + 2 * lost, True, first))
        second = first ^ (pair < 0.01 + 2 * lost)
        c = rng.uniform(0.5, 1, n)
        a, b = (Outcomes.from_scores(c, x) for x in (first, second))
        shown += compare(a, b).verdicts[0].word == "better"
    assert shown >= 65
