"""Boards of many models: each line is an audit, ranks say what cannot be told apart, nothing is judged where fitted."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO

import numpy as np
import pytest
from rich.console import Console
from test_cli import run  # noqa: F401

from assay import Outcomes, Predictions, audit, evaluate, files, metrics
from assay._core.arrays import InputError
from assay.boards import KEYS, RANKED, Sheet, _measuring, auroc_within, board, cross_fitted, measure, rank_ranges
from assay.boards._ranks import _critical
from assay.calibrators import auto
from assay.files import Columns
from assay.report import boards
from assay.report.page import board_page


def answers(rng: np.random.Generator, difficulty: np.ndarray, skill: float, noise: float = 1.0) -> Outcomes:
    """Answers to shared questions; the confidence is a noisy view of the chance of being right."""
    logit = skill - difficulty
    correct = rng.random(len(logit)) < 1 / (1 + np.exp(-logit))
    return Outcomes.from_scores(1 / (1 + np.exp(-logit - rng.normal(0, noise, len(logit)))), correct)


def family(seed: int, skills: list[float], n: int = 400) -> list[Sheet]:
    rng = np.random.default_rng(seed)
    difficulty = rng.normal(0, 1.5, n)
    return [
        Sheet(f"m{i}", "stated", answers(rng, difficulty, skill), np.arange(n), n) for i, skill in enumerate(skills)
    ]


def false_alarms(families: int) -> dict[str, tuple[int, int]]:
    """In how many families of 20 equal models one is called the best, and any is called better than another."""
    found = [rank_ranges(family(seed, [0.5] * 20)) for seed in range(families)]
    return {
        key: (
            sum(any(ranks[key].high == 1 for ranks in each) for each in found),
            sum(any(ranks[key].high < 20 for ranks in each) for each in found),
        )
        for key in RANKED
    }


def test_of_equal_models_few_are_told_apart():
    """At a level of 5 %, 8 or more of 40 families have a chance of .1 %."""
    for best, better in false_alarms(40).values():
        assert best <= better < 8


@pytest.mark.long
def test_of_equal_models_one_is_called_the_best_in_at_most_five_of_a_hundred_families():
    """And any better than another within three standard errors of 5 % of 1,000."""
    for best, better in false_alarms(1000).values():
        assert best <= 50
        assert better <= 50 + 3 * 6.9


def test_two_models_differ_at_the_usual_two_standard_errors():
    """The quantile of 2,000 draws has a standard error of .04."""
    noise = np.random.default_rng(0).normal(size=(2, 500))
    spread = np.full((2, 2), np.linalg.norm(noise[0] - noise[1]))
    assert _critical(noise, spread, seed=0) == pytest.approx(1.96, abs=0.13)


def covered(families: int) -> dict[str, float]:
    """How often the interval of a line contains the value of two million answers by the same law."""
    truth = evaluate(family(-1 % 2**32, [0.5], n=2_000_000)[0].rows, list(KEYS))
    inside = dict.fromkeys(KEYS, 0)
    for seed in range(families):
        line = measure(family(seed, [0.5])[0])
        for key in KEYS:
            bar = line.cells[key].interval
            inside[key] += bar is not None and bar.low <= truth[key] <= bar.high
    return {key: count / families for key, count in inside.items()}


@pytest.mark.long
def test_intervals_of_lines_cover_the_truth():
    """Less than 92 % of 1,000 has a chance of one in a hundred thousand at 95 %."""
    assert min(covered(1000).values()) >= 0.92


def test_a_better_model_is_told_apart_and_the_rest_are_not():
    ranks = rank_ranges(family(1, [2.5, 0.0, 0.0, 0.0], n=1500))
    assert (ranks[0]["accuracy"].low, ranks[0]["accuracy"].high) == (1, 1)
    assert all((each["accuracy"].low, each["accuracy"].high) == (2, 4) for each in ranks[1:])


def test_repeated_answers_are_no_new_questions():
    """A copy of every row tells nothing new, so the ranges stay those of the single rows."""
    once = family(3, [0.8, 0.5, 0.5])
    copies = [
        Sheet(s.model, s.confidence, s.rows + s.rows + s.rows + s.rows, np.tile(s.question, 4), 4 * s.asked)
        for s in once
    ]
    assert rank_ranges(copies) == rank_ranges(once)


def thrice(sheet: Sheet) -> Sheet:
    rows = sheet.rows + sheet.rows + sheet.rows
    return Sheet("m", "stated", rows, np.tile(sheet.question, 3), 3 * sheet.asked)


def test_intervals_of_repeated_answers_are_those_of_the_questions():
    """Copies tell nothing new, and no more is promised of them than of the single rows."""
    [once] = family(3, [0.8])
    copies = thrice(once)
    alone, many = measure(once), measure(copies)
    for key in ("accuracy", "auroc", "aurc"):
        wide, narrow = many.cells[key].interval, alone.cells[key].interval
        assert wide is not None
        assert narrow is not None
        assert wide.high - wide.low == pytest.approx(narrow.high - narrow.low, rel=0.1)
    sure = [family(seed, [3.0])[0] for seed in range(4)]
    alone, many = (sum(measure(sheet).answerable for sheet in sheets) for sheets in (sure, map(thrice, sure)))
    assert 0 < many < alone
    assert "nan" not in boards.markdown(board([copies]))


def test_a_line_has_the_figures_of_an_audit():
    [sheet] = family(0, [0.5])
    found, line = audit(sheet.rows), measure(sheet)
    for key in ("accuracy", "ece", "auroc", "aurc", "risk_at_80"):
        assert line.cells[key].value == found[key].value
        if key != "ece":  # the noise floor has other draws
            assert line.cells[key].interval == found[key].interval
    assert line.cells["ece"].floor == pytest.approx(found["ece"].floor, rel=0.05)


def test_correction_is_fitted_on_other_questions(monkeypatch):
    """Ten answers to each question with the same confidence, by which they are known again."""
    rng = np.random.default_rng(0)
    question = np.repeat(np.arange(300), 10)
    rows = Outcomes.from_scores(np.repeat(rng.random(300), 10), rng.random(3000) < 0.5)
    fitted_on = []

    def noting(part: Outcomes, folds: int):
        fitted_on.append(set(part.confidence.tolist()))
        return auto(part, folds=folds)

    monkeypatch.setattr(_measuring, "auto", noting)
    _, fold = cross_fitted(rows, question)
    judged = [set(rows.confidence[fold == i].tolist()) for i in range(3)]
    assert [len(own & other) for own, other in zip(judged, fitted_on, strict=True)] == [0, 0, 0]
    assert [len(own) for own in judged] == [100, 100, 100]


def test_a_corrected_line_is_calibrated_and_keeps_its_ranking():
    rng = np.random.default_rng(1)
    right = answers(rng, rng.normal(0, 1.5, 3000), 0.5, noise=0.3)
    sheet = Sheet("m", "stated", Outcomes.from_scores(0.5 + right.confidence / 2, right.correct), np.arange(3000), 3000)
    line = measure(sheet)
    assert line.cells["ece"].value > 0.15
    assert line.corrected is not None
    assert line.corrected.ece.value < 0.03
    assert line.corrected.auroc > line.cells["auroc"].value - 0.01


def test_fewer_than_twenty_questions_a_fold_are_not_corrected():
    assert measure(family(0, [0.5], n=59)[0]).corrected is None
    assert measure(family(0, [0.5], n=60)[0]).corrected is not None


@pytest.mark.parametrize("digits", [2, 15])
@pytest.mark.parametrize("slope", [1.0, 0.02, -0.3])
def test_no_auroc_falls_by_a_correction(slope, digits):
    """Confidences that rank well, hardly, and below chance, with and without ties; the maps differ between folds."""
    rng = np.random.default_rng(0)
    odds = rng.normal(1, 1.5, 2400)
    correct = rng.random(2400) < 1 / (1 + np.exp(-slope * odds))
    rows = Outcomes.from_scores(np.round(1 / (1 + np.exp(-odds)), digits), correct)
    after, fold = cross_fitted(rows, np.arange(2400))
    assert auroc_within(after, fold) == auroc_within(rows, fold)
    assert auroc_within(rows, fold) == pytest.approx(metrics.auroc(rows), abs=0.002)


def test_auroc_within_folds_counts_the_pairs_of_each_fold():
    rng = np.random.default_rng(0)
    rows = Outcomes.from_scores(np.round(rng.random(60), 1), rng.random(60) < 0.6)
    fold = np.arange(60) % 3
    c, right = rows.confidence, rows.correct
    pairs = [(i, j) for i in range(60) for j in range(60) if right[i] and not right[j] and fold[i] == fold[j]]
    assert auroc_within(rows, fold) == pytest.approx(np.mean([(c[i] > c[j]) + (c[i] == c[j]) / 2 for i, j in pairs]))


@pytest.fixture
def table(tmp_path):
    """Two models, two confidences with gaps, one of them in per cents by mistake."""
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(5)
    n = 300
    both = [answers(rng, rng.normal(0, 1.5, n), skill) for skill in (1.5, 0.0)]
    stated = [float(c) for rows in both for c in rows.confidence]
    stated[3], stated[7] = None, 95.0
    columns = {
        "model": ["<b>one</b>"] * n + ["two|2"] * n,
        "question": [*range(n), *range(n)],
        "category": ["math", "law"] * n,
        "stated": stated,
        "felt": [None] * n + stated[n:],
        "correct": np.concatenate([rows.correct for rows in both]),
    }
    parquet.write_table(pa.table(columns), tmp_path / "answers.parquet")
    return tmp_path / "answers.parquet"


COLUMNS = Columns(confidence="stated,felt", ids="question", group="category")


def test_a_file_of_many_models_has_a_sheet_for_each_confidence_that_is_there(table):
    sheets = files.read_sheets(table, COLUMNS, by="model")
    assert [(s.model, s.confidence, len(s.rows), s.asked) for s in sheets] == [
        ("<b>one</b>", "stated", 298, 300),
        ("two|2", "stated", 300, 300),
        ("two|2", "felt", 300, 300),
    ]


def test_the_command_prints_and_writes_the_same_lines(run, table, tmp_path):  # noqa: F811
    words = ("--by", "model", "--confidence", "stated,felt", "--ids", "question", "--group", "category")
    code, out, err = run("board", table, *words, "--to", tmp_path / "b.md", "--html", tmp_path / "b.html")
    assert code == 0, err
    assert "two|2" in out
    text = (tmp_path / "b.md").read_text()
    assert "(2 without)" in text
    assert text.count("\n| ") == 4  # the rule and three lines
    assert r"two\|2" in text
    page = (tmp_path / "b.html").read_text()
    data = json.loads(page.split('id="data">')[1].split("</script>")[0])
    assert len(data["points"]) == len(data["board"]["rows"]) == 3
    assert len(data["categories"]["rows"]) == 6
    assert "<b>one</b>" not in page


def test_one_model_a_file_in_a_folder(run, table, tmp_path):  # noqa: F811
    for sheet in files.read_sheets(table, COLUMNS, by="model")[:2]:
        files.write(replace(sheet.rows, ids=sheet.question), tmp_path / f"{len(sheet.rows)}.csv")
    table.unlink()
    code, out, err = run("board", tmp_path)
    assert code == 0, err
    assert " 298 " in out
    assert " 300 " in out


def test_the_terminal_shows_intervals_where_there_is_room(table):
    made = board(files.read_sheets(table, COLUMNS, by="model"))
    texts = {}
    for width in (80, 160):
        with (console := Console(width=width, file=StringIO())).capture() as shown:
            console.print(boards.view(made, width))
        texts[width] = shown.get()
    assert "floor" in texts[160]
    assert "floor" not in texts[80]
    assert "<b>one</b> " in texts[80]
    assert "Rows and intervals: --to, --html" in " ".join(texts[80].split())


def test_files_of_logits_are_models_too(run, tmp_path):  # noqa: F811
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 300)
    for name, noise in (("good", 1.0), ("bad", 3.0)):
        made = Predictions.from_logits(3.0 * np.eye(3)[labels] + rng.normal(0, noise, (300, 3)), labels)
        files.write(made, tmp_path / f"{name}.npz")
        [sheet] = files.read_sheets(tmp_path / f"{name}.npz")
        assert (sheet.model, sheet.confidence, sheet.asked) == (name, "max_probability", 300)
        assert metrics.auroc(sheet.rows) == metrics.auroc(made)
    code, out, err = run("board", tmp_path)
    assert code == 0, err
    assert out.index("good") < out.index("bad")
    files.write(made[np.arange(200)], tmp_path / "other.npz")
    code, _, err = run("board", tmp_path)
    assert code == 2
    assert "bad has 300 rows and other 200: without --ids they must" in " ".join(err.split())


def test_wrong_input_is_one_line(run, table, tmp_path):  # noqa: F811
    (tmp_path / "empty").mkdir()
    for words, message in (
        ((tmp_path / "empty",), "the folder has no file"),
        ((table, "--by", "model"), "no column 'confidence'"),
        ((table, "--by", "models", "--confidence", "stated"), "no column 'models'"),
        ((), "board needs files"),
    ):
        code, _, err = run("board", *words)
        assert code == 2
        assert message in " ".join(err.split())
        assert "Traceback" not in err


def test_the_same_line_twice_is_refused(table):
    sheets = files.read_sheets(table, COLUMNS, by="model")
    with pytest.raises(InputError, match="is there twice"):
        board([*sheets, sheets[0]])


def test_processes_give_the_same_board(table, tmp_path):
    sheets = files.read_sheets(table, COLUMNS, by="model")
    a, b = board(sheets), board(sheets, workers=2)
    assert a == b
    board_page(a, tmp_path / "x.html")
    assert boards.table(a) == boards.table(b)
