"""Files that evaluations of language models leave: each format gives the numbers of a csv of the same rows.

The Inspect logs were written by inspect_ai 0.3.285 with its mock model (the .json without its events). The other files
are made here by the schema that their libraries write: lm_eval 0.4.13 (`evaluator.py`), HELM's `per_instance_stats`,
the judgements of centerforaisafety/hle, and uqlm's `to_df`.
"""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest

from assay import Outcomes, Predictions, evaluate, files
from assay._core.arrays import InputError
from assay.files import Columns
from assay.files._stated import stated_confidence

HERE = Path(__file__).parent / "answers"
CONFIDENCE = [0.9, 0.55, 0.7, 0.8, 0.6, 0.95]
CORRECT = [1, 0, 1, 0, 1, 1]
EVEN = [math.log(p / (1 - p)) for p in CONFIDENCE]  # log-likelihood of the first of two choices above the second


def lm_eval(i: int) -> dict:
    target = 0 if CORRECT[i] else 1
    responses = [[str(EVEN[i] - 3), "False"], ["-3.0", "False"]]
    return {"doc_id": i, "doc": {}, "target": str(target), "filtered_resps": responses, "filter": "none"} | {
        "resps": [[response] for response in responses],
        "acc": float(CORRECT[i]),
        "acc_norm": 0.0,
    }


def helm(i: int) -> dict:
    stats = {"max_prob": CONFIDENCE[i], "exact_match": float(CORRECT[i]), "num_references": 4}
    listed = [{"name": {"name": name, "split": "test"}, "count": 1, "mean": mean} for name, mean in stats.items()]
    return {"instance_id": f"id{i}", "train_trial_index": 0, "stats": listed}


def hle(i: int) -> dict:
    judged = {"correct": "yes" if CORRECT[i] else "no", "confidence": round(100 * CONFIDENCE[i])}
    return {"model": "m", "response": "...", "judge_response": judged}


ROWS = range(len(CORRECT))


def lines(rows: list[dict]) -> str:
    return "\n".join(map(json.dumps, rows))


TEXTS = {
    "samples_arc.jsonl": lines([lm_eval(i) for i in ROWS]),
    "per_instance_stats.json": json.dumps([helm(i) for i in ROWS]),
    "judged_hle.json": json.dumps({f"q{i}": hle(i) for i in ROWS}),
    "uqlm.csv": "\n".join(
        ["prompts,responses,noncontradiction,correct", *(f"a,b,{CONFIDENCE[i]},{CORRECT[i]}" for i in ROWS)]
    ),
}
SAID = {name: f"read as {format}" for name, format in zip(TEXTS, ("lm-eval", "helm", "hle", "uqlm"), strict=True)}


def by_hand(folder: Path, confidence: list[float], correct: list[int]) -> dict[str, float]:
    """The metrics of a csv of the same rows."""
    rows = [f"{c},{r}" for c, r in zip(confidence, correct, strict=True)]
    (folder / "hand.csv").write_text("\n".join(["confidence,correct", *rows]))
    return evaluate(files.read(folder / "hand.csv"), ["accuracy", "ece", "auroc", "aurc"])


def same(rows: Predictions | Outcomes, expected: dict[str, float]) -> None:
    assert evaluate(rows.outcomes(), list(expected)) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", TEXTS)
def test_a_recognized_format_is_said_and_gives_the_numbers_of_a_csv(tmp_path, name):
    (tmp_path / name).write_text(TEXTS[name])
    with pytest.warns(UserWarning, match=SAID[name]):
        rows = files.read(tmp_path / name)
    same(rows, by_hand(tmp_path, CONFIDENCE, CORRECT))
    assert isinstance(rows, Predictions) == name.startswith("samples")


@pytest.mark.parametrize("ending", ["eval", "json"])
@pytest.mark.parametrize(("column", "rows"), [("confidence", 3), ("token_probability", 4)])
def test_a_log_of_inspect(tmp_path, ending, column, rows):
    found = {"confidence": [0.95, 0.8, 0.9], "token_probability": [0.9, 0.6, 0.7, 0.8]}[column]
    with pytest.warns(UserWarning, match=r"read as inspect|1 of 4 rows have no usable confidence") as said:
        read = files.read(HERE / f"inspect.{ending}", Columns(confidence=column, unanswered="drop"))
    same(read, by_hand(tmp_path, found, [1, 1, 0, 1][:rows]))
    assert len(said) == (2 if column == "confidence" else 1)


def test_a_given_format_is_not_said_and_must_fit(tmp_path):
    name = "per_instance_stats.json"
    (tmp_path / name).write_text(TEXTS[name])
    same(files.read(tmp_path / name, Columns(format="helm")), by_hand(tmp_path, CONFIDENCE, CORRECT))
    with pytest.raises(InputError, match="no Inspect log"):
        files.read(tmp_path / name, Columns(format="inspect"))
    with pytest.raises(InputError, match="unknown format 'helmet'"):
        files.read(tmp_path / name, Columns(format="helmet"))


def test_plain_json_lines_with_nested_names(tmp_path):
    rows = [{"q": i, "scores": {"confidence": CONFIDENCE[i]}, "judge": {"right": bool(CORRECT[i])}} for i in ROWS]
    (tmp_path / "x.jsonl").write_text(lines(rows))
    (tmp_path / "x.json").write_text(json.dumps(rows))
    columns = Columns(confidence="scores.confidence", correct="judge.right", ids="q")
    for ending in ("jsonl", "json"):
        read = files.read(tmp_path / f"x.{ending}", columns)
        same(read, by_hand(tmp_path, CONFIDENCE, CORRECT))
        assert read.ids is not None
        assert read.ids.tolist() == list(ROWS)


def test_uneven_choices_give_the_probability_of_the_likeliest(tmp_path):
    three = lm_eval(0) | {"filtered_resps": [[math.log(0.5), False], [math.log(0.3), False], [math.log(0.2), False]]}
    (tmp_path / "s.jsonl").write_text(lines([three, *(lm_eval(i) for i in ROWS[1:])]))
    read = files.read(tmp_path / "s.jsonl", Columns(format="lm-eval"))
    assert isinstance(read, Outcomes)
    assert read.confidence.tolist() == pytest.approx([0.5, *CONFIDENCE[1:]])


def test_generated_answers_state_their_confidence(tmp_path):
    texts = ["B. Confidence: 90%", "A. Confidence: 0.55", "C", "D, confidence 8/10"]
    rows = [
        {"doc_id": i, "target": "x", "resps": [[text]], "filtered_resps": [text[0]], "exact_match": CORRECT[i]}
        for i, text in enumerate(texts)
    ]
    (tmp_path / "s.jsonl").write_text(lines(rows))
    columns = Columns(format="lm-eval", confidence_from="response")
    with pytest.raises(InputError, match=r"1 of 4 rows .*\(as row 2: 'C'\); say what they are by --unanswered"):
        files.read(tmp_path / "s.jsonl", columns)


BAD = {
    "truncated line": ("s.jsonl", TEXTS["samples_arc.jsonl"][:-20], r"line 6 is no JSON, or is cut off"),
    "truncated document": ("s.json", TEXTS["judged_hle.json"][:-9], r"the file is no JSON, or is cut off"),
    "truncated archive": ("s.eval", "PK\x03\x04 and no more", r"cannot be read as eval"),
    "no rows": ("s.jsonl", "", r"no rows"),
    "wrong schema": ("s.jsonl", lines([{"a": 1}]), r"needs one of .*has only a"),
    "numbers": ("s.json", "[1, 2]", r"must be a list of objects"),
    "two tasks": (
        "s.jsonl",
        lines([lm_eval(0), lm_eval(1) | {"filtered_resps": ["text"]}]),
        r"row 1 has no log-likelihoods and others have: these are two tasks",
    ),
    "two filters": (
        "s.jsonl",
        lines([lm_eval(0), lm_eval(0) | {"filter": "strict-match"}]),
        r"doc_id 0 occurs 2 times; keep the rows of one filter \(none, strict-match\)",
    ),
    "NaN": (
        "s.jsonl",
        lines([lm_eval(0) | {"filtered_resps": [[float("nan"), False], [-1.0, False]]}]),
        r"row 0: a log-likelihood is nan",
    ),
    "no metric": ("s.jsonl", lines([{"doc_id": 0, "filtered_resps": ["x"]}]), r"none of the metrics acc"),
    "helm twice": ("s.json", json.dumps([helm(0), helm(0)]), r"ids must be unique: id0"),
    "helm without a verdict": ("s.json", json.dumps([helm(0) | {"stats": []}]), r"row 0 has no statistic"),
    "helm NaN": ("s.json", json.dumps([helm(0)]).replace("0.9", "NaN"), r"row 0: confidence is nan"),
    "hle without a verdict": (
        "s.json",
        json.dumps({"q": {"judge_response": {"correct": "maybe"}}}),
        r"question q: the judge's 'correct' must be yes or no",
    ),
    "hle per cents": ("s.json", json.dumps({"q": hle(0)}).replace("90", "9000"), r"9000 is no per cent"),
    "inspect without samples": ("s.json", json.dumps({"eval": {}, "samples": []}), r"the log has no samples"),
    "inspect partly right": (
        "s.json",
        json.dumps(
            {"eval": {}, "samples": [{"id": 1, "scores": {"s": {"value": "P"}}, "metadata": {"confidence": 1}}]}
        ),
        r"correct must be",
    ),
    "uqlm with two scorers": ("s.csv", "prompt,response,a,b,correct\n1,2,.5,.5,1\n", r"has the scorers a, b; name one"),
    "uqlm without scorers": ("s.csv", "prompt,response,correct\n1,2,1\n", r"has no column of a scorer"),
}


@pytest.mark.filterwarnings("ignore:.*read as")
@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_is_refused_in_one_line(tmp_path, case):
    name, text, message = BAD[case]
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=message) as refused:
        files.read(tmp_path / name)
    assert "\n" not in str(refused.value)


def test_a_log_that_was_not_finished_is_refused(tmp_path):
    with ZipFile(tmp_path / "x.eval", "w") as archive:
        archive.writestr("_journal/start.json", "{}")
    with pytest.raises(InputError, match="no finished Inspect log"):
        files.read(tmp_path / "x.eval")


def test_a_plain_zip_is_read_like_a_compressed_one(tmp_path):
    whole = json.loads((HERE / "inspect.json").read_text())
    samples = whole.pop("samples")
    with ZipFile(tmp_path / "x.eval", "w") as archive:
        archive.writestr("header.json", json.dumps(whole))
        for sample in samples:
            archive.writestr(f"samples/{sample['id']}_epoch_1.json", json.dumps(sample))
    shutil.copy(HERE / "inspect.eval", tmp_path / "y.eval")
    columns = Columns(confidence="token_probability", format="inspect")
    a, b = (files.read(tmp_path / name, columns).outcomes() for name in ("x.eval", "y.eval"))
    assert np.array_equal(a.confidence, b.confidence)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("90%", 0.9),
        ("0.9", 0.9),
        ("Confidence: 9/10", 0.9),
        ("**Confidence:** 95 %", 0.95),
        ("My confidence in this answer is 70%.", 0.7),
        ("Confidence: 60%. On reflection, confidence: 40%", 0.4),
        ("I am 85 per cent sure", 0.85),
        ("1", 1.0),
        ("7 out of 10", 0.7),
        ("0/0", None),
        ("", None),
        ("90", None),
        ("Confidence: high", None),
        ("11/10", None),
    ],
)
def test_what_a_text_states(text, value):
    assert stated_confidence(text) == (None if value is None else pytest.approx(value))


@pytest.mark.parametrize(("rule", "n", "accuracy"), [("drop", 3, 2 / 3), ("wrong", 5, 2 / 5), ("group", 5, 3 / 5)])
@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_rows_without_a_confidence_follow_the_rule_and_are_counted(tmp_path, rule, n, accuracy, ending):
    import pyarrow as pa
    from pyarrow import csv, parquet

    table = pa.table({"stated": [0.9, None, 0.7, 7.5, 0.6], "correct": [True, True, False, False, True]})
    file = tmp_path / f"x.{ending}"
    if ending == "jsonl":
        file.write_text(lines(table.to_pylist()))
    else:
        {"csv": csv.write_csv, "parquet": parquet.write_table}[ending](table, file)
    with pytest.warns(UserWarning, match="2 of 5 rows have no usable confidence in 'stated'; they"):
        read = files.read(file, Columns(confidence="stated", unanswered=rule))
    assert isinstance(read, Outcomes)
    assert len(read) == n
    assert read.correct.mean() == accuracy
    assert (read.group is not None and (read.group == "unanswered").sum() == 2) == (rule == "group")


def test_a_text_column_of_a_csv_is_parsed_on_request(tmp_path):
    (tmp_path / "x.csv").write_text('answer,right\n"A, 90% sure",1\n"B, no idea",0\n"C, 60% sure",1\n')
    columns = Columns(confidence_from="answer", correct="right", unanswered="wrong")
    with pytest.warns(UserWarning, match=r"1 of 3 rows .*row 1: 'B, no idea'.*count as wrong"):
        read = files.read(tmp_path / "x.csv", columns)
    assert isinstance(read, Outcomes)
    assert read.confidence.tolist() == [0.9, 0, 0.6]
