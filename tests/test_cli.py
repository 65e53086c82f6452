"""The command as a user runs it."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
import torch

from assay import Predictions, audit, cli, files
from assay.metrics import METRICS


@pytest.fixture
def run(monkeypatch, capsys):
    """Run `assay ...` in this process; gives exit code, output and errors."""

    def call(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["assay", *map(str, words)])
        code = 0
        try:
            cli.main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        out, err = capsys.readouterr()
        return code, out, err

    return call


@pytest.fixture
def file(tmp_path, predictions):
    path = tmp_path / "model.npz"
    files.write(predictions, path)
    return path


def test_audit_prints_one_table_and_the_verdict(run, file, predictions):
    code, out, _ = run("audit", file)
    assert code == 0
    lines = out.splitlines()
    headings = [line.strip() for line in lines if line.strip() in ("calibration", "refinement", "scoring")]
    assert headings == ["calibration", "refinement", "scoring"]
    row = next(line for line in lines if line.strip().startswith("ece ↓"))
    ece = audit(predictions)["ece"]
    numbers = [f"{100 * x:.2f}" for x in (ece.value, ece.interval.low, ece.interval.high, ece.floor)]
    assert all(number in row for number in numbers)
    assert "Over-confident by" in out
    assert "no interval of known coverage: smooth_ece, classwise_ece" in out
    assert max(map(len, lines)) <= 80


def test_audit_without_a_file_shows_the_example(run):
    code, out, _ = run("audit")
    assert code == 0
    assert "embedded example" in out
    assert "10,000 samples" in out


def test_audit_of_several_models_has_a_column_each(run, file, tmp_path, predictions):
    others = [tmp_path / f"other{i}.npz" for i in range(4)]
    for other in others:
        files.write(Predictions.from_logits(predictions.values / 2, predictions.labels), other)
    code, out, _ = run("audit", file, *others)
    assert code == 0
    assert all(name in out for name in ("model", "other0", "other3"))
    assert max(map(len, out.splitlines())) <= 80


def test_audit_writes_json_with_every_number(run, file, tmp_path, predictions):
    target = tmp_path / "out.json"
    assert run("audit", file, "--json", target)[0] == 0
    found = json.loads(target.read_text())["model"]
    expected = audit(predictions)
    assert found["measurements"]["ece"]["value"] == expected["ece"].value
    assert found["measurements"]["aurc"]["interval"]["low"] == expected["aurc"].interval.low
    assert found["verdict"] == str(expected)


def test_json_has_no_bare_nan_or_infinity(run, tmp_path):
    files.write(Predictions.from_probabilities([[1.0, 0.0]] * 3, [0, 0, 1]), tmp_path / "x.npz")
    assert run("audit", tmp_path / "x.npz", "--json", tmp_path / "x.json")[0] == 0
    found = json.loads((tmp_path / "x.json").read_text(), parse_constant=pytest.fail)["x"]["measurements"]
    assert found["nll"]["value"] == "inf"
    assert found["s99_accuracy"]["value"] == pytest.approx(2 / 3)


def test_all_prints_every_metric(run, file):
    _, out, _ = run("audit", file, "--all")
    binary = {"ece_positive", "ada_ece_positive"}
    assert all(f" {key} " in out for key in METRICS if key not in binary)


def test_groups_are_printed_and_the_worse_named(run, tmp_path):
    rng = np.random.default_rng(0)
    c = rng.uniform(0.4, 1, 3000)
    where = np.repeat(["here", "there", "[red]<b>"], 1000)
    correct = (rng.random(3000) < np.where(where == "there", 0.4, c)).astype(int)
    rows = "\n".join(f"{x},{a},{g}" for x, a, g in zip(c, correct, where, strict=True))
    (tmp_path / "x.csv").write_text(f"conf,hit,place\n{rows}\n")
    code, out, _ = run(
        "audit", tmp_path / "x.csv", "--confidence", "conf", "--correct", "hit", "--group", "place"
    )  # fmt: skip
    assert code == 0
    assert "[red]<b>" in out
    assert "there: accuracy 0." in out
    assert "here: accuracy 0." not in out.replace("there", "")


def test_compare_prints_the_verdict(run, file, tmp_path, predictions):
    other = tmp_path / "cooler.parquet"
    files.write(Predictions.from_logits(predictions.values / 2, predictions.labels, ids=predictions.ids), other)
    code, out, _ = run("compare", file, other, "--json", tmp_path / "c.json")
    assert code == 0
    assert "calibration: better (squared_ce, p = " in out
    assert max(map(len, out.splitlines())) <= 80
    found = json.loads((tmp_path / "c.json").read_text())
    assert found["differences"]["squared_ce"]["p_value"] < 0.05
    assert found["verdict"].startswith("accuracy no difference, calibration better")


def test_compare_without_files_shows_the_example(run):
    code, out, _ = run("compare")
    assert code == 0
    assert "B = label_smoothing" in out


def test_list_metrics_explains_each(run):
    _, out, _ = run("list", "metrics")
    assert all(key in out for key in METRICS)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["audit", "missing.npz"], "missing.npz: no such file"),
        (["audit", "{file}", "{file}"], "the same file is given twice"),
        (["audit", "{file}", "--group", "colour"], "no column 'colour'"),
        (["audit", "{file}", "--json", "{dir}/no/where.json"], "where.json: cannot be written: No such file"),
        (["audit", "{bad}"], "bad.npz: row 1, class 0: logit is nan"),
        (["compare", "{file}"], "compare needs two files"),
        (["compare", "{file}", "{bad}"], "bad.npz: row 1, class 0: logit is nan"),
        (["audit", "--lable", "x"], "Did you mean --label?"),
        (["list", "metric"], "metrics"),
        (["adit"], "Did you mean"),
    ],
)
def test_errors_are_one_line_and_exit_code_2(run, file, tmp_path, words, message):
    bad = tmp_path / "bad.npz"
    np.savez(bad, logits=np.array([[0.0, 1.0], [np.nan, 1.0]]), labels=np.array([0, 1]))
    places = {"file": file, "bad": bad, "dir": tmp_path}
    before = set(tmp_path.iterdir())
    code, _, err = run(*(word.format(**places) for word in words))
    assert code == 2
    assert message in err
    assert err.count("\n") == 1
    assert err.startswith("assay: ")
    assert set(tmp_path.iterdir()) == before


def test_the_module_is_the_command():
    done = subprocess.run([sys.executable, "-m", "assay", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0.1.0"


def test_threads_do_not_change_the_numbers(predictions):
    one = audit(predictions, draws=10)
    torch.set_num_threads(2)
    try:
        assert audit(predictions, draws=10) == one
    finally:
        torch.set_num_threads(1)
