"""Several confidences of one answer, and several samples of one question."""

from __future__ import annotations

import json

import numpy as np
import pytest
from test_answers import lines
from test_cli import run  # noqa: F401

from assay import Outcomes, compare, evaluate, files, metrics
from assay._core.arrays import InputError
from assay.files import Columns
from assay.side_by_side import side_by_side


def equal(seed: int, n: int = 300) -> dict[str, Outcomes]:
    """Three views of the same chance, none better than another."""
    rng = np.random.default_rng(seed)
    chance = rng.normal(0.5, 1.5, n)
    correct = rng.random(n) < 1 / (1 + np.exp(-chance))
    views = [1 / (1 + np.exp(-chance - rng.normal(0, 1, n))) for _ in range(3)]
    return {name: Outcomes.from_scores(view, correct) for name, view in zip("abc", views, strict=True)}


def test_a_pair_has_the_figures_of_a_comparison():
    rows = equal(0)
    pair = side_by_side(rows)[0]
    alone = compare(rows["a"], rows["b"])["auroc"]
    assert (pair.axis, pair.first, pair.second) == ("refinement", "a", "b")
    assert pair.difference.value == alone.value
    assert pair.p_value >= (alone.p_value or 0)


def test_of_equal_confidences_few_are_told_apart():
    """At a level of 5 %, 12 or more of 100 have a chance of .4 %."""
    assert sum(any(pair.better for pair in side_by_side(equal(seed))) for seed in range(100)) < 12


def test_the_better_of_two_is_named_on_each_axis():
    rng = np.random.default_rng(0)
    chance = rng.random(2000)
    correct = rng.random(2000) < chance
    told = {"sharp": chance**0.2, "calm": (chance + rng.random(2000)) / 2}
    pairs = side_by_side({name: Outcomes.from_scores(c, correct) for name, c in told.items()})
    assert {pair.axis: pair.better for pair in pairs} == {"refinement": "sharp", "calibration": "calm"}


def test_one_confidence_has_no_side():
    with pytest.raises(InputError, match="two confidences or more"):
        side_by_side({"a": equal(0)["a"]})


@pytest.fixture
def table(tmp_path):
    rows = equal(1)
    text = ["question,a,b,c,correct"]
    for i, values in enumerate(zip(*(r.confidence for r in rows.values()), rows["a"].correct, strict=True)):
        a, b, c, correct = values
        text.append(f"q{i},{a if i else ''},{b if i != 1 else 1.5},{c},{int(correct)}")
    (tmp_path / "x.csv").write_text("\n".join(text))
    return tmp_path / "x.csv"


def test_confidences_are_read_on_the_rows_that_have_all(table):
    with pytest.warns(UserWarning, match="2 of 300 rows have no usable confidence in 'a', 'b'; they are left out"):
        found = files.read_confidences(table, Columns(confidence="a,b,c", ids="question", unanswered="drop"))
    expected = equal(1)
    assert list(found) == ["a", "b", "c"]
    for name, rows in found.items():
        assert rows.ids is not None
        assert rows.ids[0] == "q2"
        assert np.allclose(rows.confidence, expected[name].confidence[2:])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (Columns(confidence="a,b"), "2 of 300 rows .* say what they are"),
        (Columns(confidence="a,b", unanswered="wrong"), "so say --unanswered drop"),
        (Columns(confidence="a,d", unanswered="drop"), "no column 'd'"),
        (Columns(confidence="a,b", samples="best"), "needs one confidence"),
        (Columns(confidence="b,agreement", agreement="c"), "needs the question of each row"),
        (Columns(confidence="b,a", confidence_from="question", unanswered="wrong"), "say --unanswered drop"),
    ],
)
def test_what_cannot_be_put_side_by_side_is_refused(table, columns, message):
    with pytest.raises(InputError, match=message):
        files.read_confidences(table, columns)


@pytest.mark.filterwarnings("ignore:.*they are left out")
def test_the_command_prints_the_pairs_and_writes_them(run, table, tmp_path):  # noqa: F811
    out_files = ("--json", tmp_path / "x.json", "--html", tmp_path / "x.html")
    code, out, err = run("audit", table, "--confidence", "a,b,c", "--unanswered", "drop", *out_files)
    assert code == 0, err
    assert out.count("no difference shown") == 6
    written = json.loads((tmp_path / "x.json").read_text())
    assert list(written) == ["a", "b", "c"]
    assert len(written["a"]["pairs"]) == 4
    data = json.loads((tmp_path / "x.html").read_text().split('id="data">')[1].split("</script>")[0])
    assert len(data["pairs"]) == 6
    chosen = [f"assay threshold {table} --confidence {name} --unanswered drop" for name in "abc"]
    assert [model["command"] for model in data["models"]] == chosen
    assert run("audit", table, tmp_path / "y.csv", "--confidence", "a,b")[0] == 2


def samples(tmp_path, rows: list[dict]):
    (tmp_path / "s.jsonl").write_text(lines(rows))
    return tmp_path / "s.jsonl"


FOUR = [
    {"q": q, "answer": answer, "correct": answer.strip() == truth, "p": p}
    for q, truth, told in (
        (0, "A", (("A", 0.5), ("A ", 0.9), ("B", 0.6))),
        (1, "C", (("B", 0.3), ("B", 0.7), ("B", 0.4))),
        (2, "D", (("A", 0.2), ("D", 0.8), ("C", 0.1))),
    )
    for answer, p in told
]


def test_agreement_is_the_share_of_a_questions_samples_that_say_the_same(tmp_path):
    rows = files.read(samples(tmp_path, FOUR), Columns(agreement="answer", cluster="q"))
    assert isinstance(rows, Outcomes)
    assert rows.confidence.tolist() == pytest.approx([2 / 3, 2 / 3, 1 / 3, 1, 1, 1, 1 / 3, 1 / 3, 1 / 3])
    assert rows.cluster is not None
    assert rows.cluster.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_samples_of_one_question_are_no_new_evidence(tmp_path):
    """Ten copies of each question: the interval is as wide as that of the questions, not of the rows."""
    rng = np.random.default_rng(0)
    rows = [{"q": q, "answer": "A", "correct": bool(rng.random() < 0.5), "p": rng.random()} for q in range(200)]
    once = files.read(samples(tmp_path, rows), Columns(confidence="p"))
    many = files.read(samples(tmp_path, rows * 10), Columns(confidence="p", cluster="q"))
    auroc = metrics.METRICS["auroc"]
    assert auroc.interval is not None
    narrow, wide = (auroc.interval(metrics.Tables(each)) for each in (once, many))
    assert wide.high - wide.low == pytest.approx(narrow.high - narrow.low, rel=0.05)


def test_an_answer_that_is_missing_agrees_with_none_and_counts_as_a_sample(tmp_path):
    rows = [*FOUR[:2], FOUR[2] | {"answer": None}]
    columns = Columns(agreement="answer", cluster="q", unanswered="wrong")
    with pytest.warns(UserWarning, match="1 of 3 rows have no usable confidence in 'agreement'"):
        read = files.read(samples(tmp_path, rows), columns)
    assert read.outcomes().confidence.tolist() == pytest.approx([2 / 3, 2 / 3, 0])


def test_the_best_of_n_is_the_most_confident_sample_of_each_question(tmp_path):
    file = samples(tmp_path, FOUR)
    best = files.read(file, Columns(confidence="p", cluster="q", samples="best"))
    assert best.outcomes().confidence.tolist() == [0.9, 0.7, 0.8]
    assert best.outcomes().correct.tolist() == [True, False, True]
    assert best.cluster is None
    voted = files.read(file, Columns(agreement="answer", cluster="q", samples="best"))
    assert voted.outcomes().confidence.tolist() == pytest.approx([2 / 3, 1, 1 / 3])
    with pytest.raises(InputError, match="--samples best needs the question"):
        files.read(file, Columns(confidence="p", samples="best"))


def test_agreement_stands_beside_another_confidence(tmp_path):
    found = files.read_confidences(
        samples(tmp_path, FOUR), Columns(confidence="p,agreement", agreement="answer", cluster="q")
    )
    assert found["p"].confidence.tolist() == [row["p"] for row in FOUR]
    assert evaluate(found["agreement"], ["accuracy"]) == evaluate(found["p"], ["accuracy"])
