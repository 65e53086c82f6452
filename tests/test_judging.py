"""Judges: verdicts held against a few human labels, and the share of right answers corrected by them."""

from __future__ import annotations

import json
from math import sqrt

import numpy as np
import pytest
from scipy.stats import t as student
from test_cli import run  # noqa: F401

from assay import Predictions, audit, choose_threshold
from assay._core.arrays import InputError
from assay.judging import judge, prediction_powered

LAWS = [(accuracy, sharp, bias) for accuracy in (0.5, 0.8, 0.95) for sharp, bias in ((0.01, 0), (1.5, 1.5), (6, 1))]


def answers(rng: np.random.Generator, accuracy: float, sharp: float, bias: float, n: int) -> tuple[np.ndarray, ...]:
    """Whether each answer is right, and the score of a judge that sees its odds but for a bias."""
    odds = np.log(accuracy / (1 - accuracy)) * sqrt(1 + sharp**2 / 2.9) + rng.normal(0, sharp, n)
    right = rng.random(n) < 1 / (1 + np.exp(-odds))
    return right.astype(float), 1 / (1 + np.exp(-odds - bias))


def covered(law: tuple[float, float, float], labels: int, draws: int) -> tuple[float, float]:
    """How often the interval contains the true share, and its mean width against that of the labels alone."""
    rng = np.random.default_rng(labels)
    truth = answers(rng, *law, 1_000_000)[0].mean()
    inside, width = 0, 0.0
    for _ in range(draws):
        right, score = answers(rng, *law, labels + 1000)
        bar = prediction_powered(right[:labels], score[:labels], score[labels:])[0].interval
        inside += bar.low <= truth <= bar.high
        p = (right[:labels].sum() + 2) / (labels + 4)
        width += (bar.high - bar.low) / (2 * 1.96 * sqrt(p * (1 - p) / (labels + 4)))
    return inside / draws, width / draws


@pytest.mark.parametrize("law", LAWS[::4])
def test_the_interval_of_few_labels_covers_the_truth(law):
    """Less than 91 % of 300 has a chance of one in 500 at 95 %."""
    assert covered(law, 30, 300)[0] >= 0.91


@pytest.mark.long
@pytest.mark.parametrize("labels", [20, 50, 200])
@pytest.mark.parametrize("law", LAWS)
def test_the_interval_covers_the_truth(law, labels):
    """Less than 93.5 % of 4,000 has a chance of one in 100,000 at 95 %."""
    assert covered(law, labels, 4000)[0] >= 0.935


def test_a_sharp_judge_narrows_the_interval_and_a_blind_one_does_not_widen_it():
    assert covered((0.8, 6, 1), 200, 100)[1] < 0.7
    assert covered((0.8, 0.01, 0), 200, 100)[1] < 1.05


def test_the_estimate_is_that_of_the_formula():
    rng = np.random.default_rng(0)
    right, score = answers(rng, 0.8, 3, 1, 1100)
    label, own, others = right[:100], score[:100], score[100:]
    found, weight = prediction_powered(label, own, others)
    lam = np.cov(label, own)[0, 1] / ((1 + 100 / 1000) * score.var(ddof=1))
    assert weight == pytest.approx(lam)
    assert found.value == pytest.approx(lam * others.mean() + (label - lam * own).mean())
    rest = np.append(label - lam * own, [-lam * own.mean(), 1 - lam * own.mean()])
    half = student.ppf(0.975, 101) * sqrt(rest.var(ddof=1) / 102 + lam**2 * score.var(ddof=1) / 1000)
    assert found.interval.high == pytest.approx(lam * others.mean() + rest.mean() + half)


def test_labels_of_all_answers_leave_nothing_to_the_judge():
    right, score = answers(np.random.default_rng(0), 0.8, 3, 1, 400)
    found = judge(score, right)
    assert found.weight == 0
    assert found.accuracy.value == pytest.approx(right.mean())
    assert found.unlike == 1


def test_the_audit_and_the_threshold_are_those_of_the_labelled_verdicts():
    right, score = answers(np.random.default_rng(1), 0.7, 4, 0.5, 3000)
    found = judge(score, np.where(np.arange(3000) < 1000, right, np.nan), risk=0.1)
    seen = Predictions.from_binary_probabilities(score[:1000], right[:1000].astype(int))
    assert found.audit == audit(seen)
    assert found.threshold == choose_threshold(seen, risk=0.1)
    sure = np.maximum(score, 1 - score) >= found.threshold.value
    assert found.trusted == sure.mean() > 0.3
    assert ((score > 0.5) != right)[sure].mean() <= 0.1


def test_labelled_answers_that_were_picked_are_noticed():
    right, score = answers(np.random.default_rng(2), 0.7, 2, 0, 2000)
    easy = np.argsort(-score)[:200]
    labels = np.full(2000, np.nan)
    labels[easy] = right[easy]
    assert "not like the others" in str(judge(score, labels))


@pytest.mark.parametrize(
    ("scores", "labels", "message"),
    [
        ([0.5] * 19, [1.0] * 19, "19 answers have a human label; 20 or more"),
        ([7.0] * 30, [1.0] * 30, "score 7.0 of the judge is outside"),
        ([0.5] * 30, [2.0] * 30, "label 2.0 is neither 0 nor 1"),
        ([0.5] * 30, [1.0] * 29, "30 scores but 29 labels"),
    ],
)
def test_what_is_no_judgement_is_refused(scores, labels, message):
    with pytest.raises(InputError, match=message):
        judge(scores, labels)


def test_the_command_reads_scores_and_labels_with_gaps(run, tmp_path):  # noqa: F811
    right, score = answers(np.random.default_rng(1), 0.7, 4, 0.5, 800)
    rows = [{"s": s, "said": bool(r) if i < 200 else None} for i, (r, s) in enumerate(zip(right, score, strict=True))]
    (tmp_path / "x.jsonl").write_text("\n".join(map(json.dumps, rows)))
    cells = [f"{row['s']},{'' if row['said'] is None else int(row['said'])}" for row in rows]
    (tmp_path / "x.csv").write_text("\n".join(["s,said", *cells]))
    found = []
    for ending in ("jsonl", "csv"):
        words = ("--judge", "s", "--human", "said", "--json", tmp_path / "out.json")
        code, out, err = run("judge", tmp_path / f"x.{ending}", *words)
        assert code == 0, err
        assert "800 answers, 200 with a human label" in out
        found.append(json.loads((tmp_path / "out.json").read_text()))
    assert found[0] == found[1]
    expected = judge(score, np.where(np.arange(800) < 200, right, np.nan))
    assert found[0]["accuracy"]["value"] == pytest.approx(expected.accuracy.value)
    for words, message in (
        (("--judge", "t"), "no column 't'"),
        (("--judge", "said", "--human", "s"), "row 200: the judge must score every answer"),
    ):
        code, _, err = run("judge", tmp_path / "x.jsonl", *words, *(() if "--human" in words else ("--human", "said")))
        assert code == 2
        assert message in " ".join(err.split())
