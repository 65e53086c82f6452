"""How many samples to plan for: with weights and clusters, and at the level at which a comparison decides."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from assay import Outcomes, compare, examples
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


@pytest.mark.parametrize("metric", ["ece", "risk"])
def test_weights_count(pilot, metric):
    """The error of the weighted mean on as many samples as planned is what shows the difference 4 times of 5."""
    weighted = replace(pilot, weights=np.where(pilot.correct, 1.0, 20.0))
    column = (pilot.confidence if metric == "ece" else 1.0) - pilot.correct
    error = design_of(weighted).mean(column).error
    found = plan(weighted, {metric: 0.01})[0]
    assert error * np.sqrt(len(pilot) / found.n) * (1.959964 + 0.841621) == pytest.approx(0.01, rel=1e-3)
    assert found.n != pytest.approx(plan(pilot, {metric: 0.01})[0].n, rel=0.05)


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
        (Outcomes.from_scores([0.9], [1]), "ece", "one row does not tell how noisy a model is"),
        (Outcomes.from_scores([0.9, 0.8], [1, 0], cluster=[1, 1]), "risk", "one cluster does not tell"),
        (Outcomes.from_scores([3.0, 2.0], [1, 0], is_probability=False), "ece", "the score is no probability"),
        (Outcomes.from_scores([0.9, 0.8], [1, 1]), "risk", "there is no error among them"),
        (Outcomes.from_scores([0.9, 0.8], [0, 0]), "risk", "every answer is wrong"),
    ],
)
def test_a_pilot_that_tells_nothing_is_refused_for_its_reason(rows, metric, reason):
    with pytest.raises(InputError, match=reason):
        plan(rows, {metric: 0.01})


def test_the_command_says_whose_noise_it_takes(capsys):
    with pytest.raises(SystemExit):
        main(["plan", "--detect", "ece=0.01"])
    assert "the pilot is the embedded example" in capsys.readouterr().out
