"""Files that evaluations of language models leave: each format gives the numbers of a csv of the same rows.

Of the files in `answers`, the Inspect logs were written by inspect_ai 0.3.285 with its mock model (the .json without
its events), the samples by `lm_eval --model dummy --log_samples` 0.4.13, `per_instance_stats.json` by the records and
the serializer of crfm-helm 0.5.16, and `uqlm.csv` by `UQResult.to_df().to_csv()` of uqlm 0.6.7 with a column `correct`.
The judgements of Humanity's Last Exam are made here by their documented schema, as are the variations of all.
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


def test_files_of_the_real_libraries_give_the_numbers_of_a_csv(tmp_path):
    """Their rows are those above, but for the samples of lm-eval, whose log-likelihoods are drawn."""
    for name, said in (("per_instance_stats.json", "helm"), ("uqlm.csv", "uqlm")):
        with pytest.warns(UserWarning, match=f"read as {said}"):
            same(files.read(HERE / name), by_hand(tmp_path, CONFIDENCE, CORRECT))
    rows = [json.loads(line) for line in (HERE / "samples_sums.jsonl").read_text().splitlines()]
    odds = [[math.exp(float(x)) for x, _ in row["filtered_resps"]] for row in rows]
    with pytest.warns(UserWarning, match="read as lm-eval"):
        read = files.read(HERE / "samples_sums.jsonl")
    assert isinstance(read, Predictions)
    same(read, by_hand(tmp_path, [max(row) / sum(row) for row in odds], [int(row["acc"]) for row in rows]))


def test_generated_samples_of_the_real_library():
    """The harness writes whether an answer is right as a float."""
    for rule, correct in (("group", [1, 0, 1, 0, 1, 0, 1, 1]), ("wrong", [0] * 8)):
        columns = Columns(confidence_from="response", unanswered=rule, format="lm-eval")
        with pytest.warns(UserWarning, match=r"7 of 8 rows have no usable confidence in 'stated' \(as row 0: '4'\)"):
            read = files.read(HERE / "samples_sums_generated.jsonl", columns).outcomes()
        assert read.correct.tolist() == correct
        assert read.confidence.tolist() == [0, 0.9, *[0] * 6]


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


def inspect(*samples: dict) -> str:
    return json.dumps({"eval": {}, "samples": list(samples)})


def sample(i: int, **others: object) -> dict:
    value = "C" if CORRECT[i] else "I"
    return {"id": i, "epoch": 1, "scores": {"s": {"value": value}}, "metadata": {"confidence": CONFIDENCE[i]}} | others


def plain(i: int) -> dict:
    return {"ids": i, "confidence": CONFIDENCE[i], "correct": CORRECT[i]}


UQLM = "prompt,response,noncontradiction,correct\na,b,0.9,1\n"

# By format, what every reader must refuse: a cut-off file, another schema, mixed tasks, repeated ids, and NaN.
BAD = {
    "lines": {
        "truncated": ("s.jsonl", lines([plain(0), plain(1)])[:-9], r"line 2 is no JSON, or is cut off"),
        "schema": ("s.jsonl", lines([{"a": 1}]), r"needs one of .*has only a"),
        "mixed": ("s.jsonl", lines([plain(0), {"ids": 1, "correct": 1}]), r"'confidence', row 1: no value"),
        "repeated": ("s.jsonl", lines([plain(0), plain(0)]), r"ids must be unique: 0"),
        "nan": ("s.jsonl", lines([plain(0) | {"confidence": math.nan}]), r"row 0: confidence is nan"),
        "empty": ("s.jsonl", "", r"no rows"),
    },
    "document": {
        "truncated": ("s.json", json.dumps([plain(0)])[:-9], r"the file is no JSON, or is cut off"),
        "schema": ("s.json", "[1, 2]", r"must be a list of objects"),
        "mixed": ("s.json", json.dumps([plain(0), {"ids": 1, "correct": 1}]), r"'confidence', row 1: no value"),
        "repeated": ("s.json", json.dumps([plain(0), plain(0)]), r"ids must be unique: 0"),
        "nan": ("s.json", json.dumps([plain(0) | {"confidence": math.nan}]), r"row 0: confidence is nan"),
    },
    "lm-eval": {
        "truncated": ("s.jsonl", TEXTS["samples_arc.jsonl"][:-20], r"line 6 is no JSON, or is cut off"),
        "schema": ("s.jsonl", lines([{"doc_id": 0, "filtered_resps": ["x"]}]), r"none of the metrics acc"),
        "mixed": (
            "s.jsonl",
            lines([lm_eval(0), lm_eval(1) | {"filtered_resps": ["text"]}]),
            r"row 1 has no log-likelihoods and others have: these are two tasks",
        ),
        "mixed metrics": (
            "s.jsonl",
            lines([lm_eval(0), {name: x for name, x in lm_eval(1).items() if name != "acc"}]),
            r"row 1 has no 'acc' and row 0 has: these are two tasks",
        ),
        "repeated": (
            "s.jsonl",
            lines([lm_eval(0), lm_eval(0) | {"filter": "strict-match"}]),
            r"doc_id 0 occurs 2 times; keep the rows of one filter \(none, strict-match\)",
        ),
        "repeated task": ("s.jsonl", lines([lm_eval(0), lm_eval(0)]), r"doc_id 0 occurs 2 times; keep one task a file"),
        "nan": (
            "s.jsonl",
            lines([lm_eval(0) | {"filtered_resps": [[math.nan, False], [-1.0, False]]}]),
            r"row 0: a log-likelihood is nan",
        ),
    },
    "inspect": {
        "truncated": ("s.eval", "PK\x03\x04 and no more", r"cannot be read as eval"),
        "truncated document": ("s.json", inspect(sample(0))[:-9], r"the file is no JSON, or is cut off"),
        "schema": ("s.json", inspect(), r"the log has no samples"),
        "schema of a sample": ("s.json", inspect({"scores": {}}), r"sample 0 has no 'id'"),
        "mixed": (
            "s.json",
            inspect(sample(0), sample(1, scores={"s": {"value": "C"}, "t": {"value": "I"}})),
            r"'correct', row 1: no value",
        ),
        "partly right": ("s.json", inspect(sample(0, scores={"s": {"value": "P"}})), r"correct must be"),
        "repeated": ("s.json", inspect(sample(0), sample(0)), r"ids must be unique: 0"),
        "nan": ("s.json", inspect(sample(0, metadata={"confidence": math.nan})), r"row 0: confidence is nan"),
    },
    "helm": {
        "truncated": ("s.json", TEXTS["per_instance_stats.json"][:-9], r"the file is no JSON, or is cut off"),
        "schema": ("s.json", json.dumps([helm(0) | {"stats": 1}]), r"row 0: 'stats' must be a list"),
        "mixed": ("s.json", json.dumps([helm(0), helm(1) | {"stats": []}]), r"row 1 has no statistic 'exact_match'"),
        "repeated": ("s.json", json.dumps([helm(0), helm(0)]), r"ids must be unique: id0"),
        "nan": ("s.json", json.dumps([helm(0)]).replace("0.9", "NaN"), r"row 0: confidence is nan"),
    },
    "hle": {
        "truncated": ("s.json", TEXTS["judged_hle.json"][:-9], r"the file is no JSON, or is cut off"),
        "schema": (
            "s.json",
            json.dumps({"q": {"judge_response": {"correct": "maybe"}}}),
            r"question q: the judge's 'correct' must be yes or no",
        ),
        "mixed": (
            "s.json",
            json.dumps({"q": hle(0), "r": {"judge_response": [1]}}),
            r"question r: the judge's 'correct' must be yes or no",
        ),
        "per cents": ("s.json", json.dumps({"q": hle(0)}).replace("90", "9000"), r"9000 is no per cent"),
        "repeated": (
            "s.json",
            f'{{"q": {json.dumps(hle(0))}, "q": {json.dumps(hle(1))}}}',
            r"'q' is there twice in one object",
        ),
        "nan": ("s.json", json.dumps({"q": hle(0)}).replace("90", "NaN"), r"confidence nan is no per cent"),
    },
    "uqlm": {
        "truncated": ("s.csv", UQLM + "c,d", r"row 1 \(from 0\): 2 values, but 4 columns are named"),
        "schema": ("s.csv", "prompt,response,correct\n1,2,1\n", r"has no column of a scorer"),
        "several": ("s.csv", "prompt,response,a,b,correct\n1,2,.5,.5,1\n", r"has the scorers a, b; name one"),
        "mixed": ("s.csv", UQLM + "c,d,,1\n", r"'noncontradiction', row 1: no value"),
        "repeated": (
            "s.csv",
            UQLM.replace("prompt,", "ids,prompt,").replace("a,b", "1,a,b") + "1,c,d,.5,1\n",
            r"ids must be unique: 1",
        ),
        "nan": ("s.csv", UQLM + "c,d,nan,1\n", r"row 1: confidence is nan"),
    },
}
CASES = [(form, fault) for form, faults in BAD.items() for fault in faults]


def test_every_format_is_tried_with_every_fault():
    for faults in BAD.values():
        assert {"truncated", "schema", "mixed", "repeated", "nan"} <= set(faults)


@pytest.mark.filterwarnings("ignore:.*read as")
@pytest.mark.parametrize(("form", "fault"), CASES)
def test_a_bad_file_is_refused_in_one_line(tmp_path, form, fault):
    name, text, message = BAD[form][fault]
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


@pytest.mark.filterwarnings("ignore:.*separated by ';'")
def test_per_cents_with_decimal_commas_follow_the_rule_too(tmp_path):
    (tmp_path / "x.csv").write_text("stated;correct\n90,5%;1\n;0\n60%;1\n")
    columns = Columns(confidence="stated", percent=True, decimal=",", unanswered="wrong")
    with pytest.warns(UserWarning, match="1 of 3 rows have no usable confidence"):
        read = files.read(tmp_path / "x.csv", columns)
    assert isinstance(read, Outcomes)
    assert read.confidence.tolist() == pytest.approx([0.905, 0, 0.6])


def test_a_text_column_of_a_csv_is_parsed_on_request(tmp_path):
    (tmp_path / "x.csv").write_text('answer,right\n"A, 90% sure",1\n"B, no idea",0\n"C, 60% sure",1\n')
    columns = Columns(confidence_from="answer", correct="right", unanswered="wrong")
    with pytest.warns(UserWarning, match=r"1 of 3 rows .*row 1: 'B, no idea'.*count as wrong"):
        read = files.read(tmp_path / "x.csv", columns)
    assert isinstance(read, Outcomes)
    assert read.confidence.tolist() == [0.9, 0, 0.6]
