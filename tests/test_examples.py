"""The examples run in seconds and end with a network that has learned."""

from __future__ import annotations

import ast
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.mark.parametrize("name", ["bare_loop", "lightning_loop"])
def test_loops_of_others_take_the_pieces(name: str):
    run = subprocess.run([sys.executable, str(EXAMPLES / f"{name}.py")], capture_output=True, text=True, check=True)
    found = ast.literal_eval(run.stdout.splitlines()[-1])
    assert found["accuracy"] > 0.9
    assert found["ece"] < 0.2


def run_here(name: str, arguments: list[str], monkeypatch, capsys) -> list[str]:
    """The output of an example, run in this process because a new one would import torch again."""
    monkeypatch.setattr(sys, "argv", [f"{name}.py", *arguments])
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    return capsys.readouterr().out.splitlines()


def test_a_timid_forest_is_calibrated_and_keeps_its_promise(monkeypatch, capsys):
    lines = run_here("sklearn_pipeline", [], monkeypatch, capsys)
    assert lines[0].startswith("forest:     Under-confident")
    assert lines[1].startswith("calibrated: No sign of miscalibration")
    assert "at most 2.00% errors" in lines[-3]
    assert ast.literal_eval(lines[-1])["ece"] < 0.05


def test_stated_confidence_is_corrected_and_said_to_be_simulated(monkeypatch, capsys):
    lines = run_here("llm_confidence", [], monkeypatch, capsys)
    assert "(simulated)" in lines[0]
    assert "Over-confident" in lines[1]
    assert "calibration better" in lines[2]
    assert lines[-1].startswith("threshold:  accept above")


def test_stated_confidence_is_read_from_a_file(tmp_path, monkeypatch, capsys):
    rows = [f"q{i},{0.9 if i % 3 else 0.6},{int(i % 3 > 0)}" for i in range(400)]
    (tmp_path / "answers.csv").write_text("\n".join(["question,stated,right", *rows]))
    lines = run_here("llm_confidence", [str(tmp_path / "answers.csv")], monkeypatch, capsys)
    assert lines[0].startswith("400 answers from")


def test_the_exported_file_answers_and_hands_over(tmp_path, monkeypatch, capsys):
    lines = run_here("onnx_deployment", [str(tmp_path)], monkeypatch, capsys)
    assert (tmp_path / "digits.onnx").is_file()
    assert any('"ask a person"' in line for line in lines)
    assert ast.literal_eval(lines[-1])["accuracy"] > 0.9
