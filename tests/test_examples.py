"""The examples run in seconds and end with a network that has learned."""

from __future__ import annotations

import ast
import json
import re
import runpy
import shlex
import subprocess
import sys
from importlib.util import find_spec
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


def test_stated_confidence_is_read_from_text_corrected_and_given_a_threshold(tmp_path, monkeypatch, capsys):
    """Rows as an evaluation leaves them: four in five say 95 % and are right three times in four."""
    said = ["Confidence: 60%", "Confidence: 95%", "confidence: 0.95", "I am 95% sure", "Confidence: 19/20"]
    rows = [
        {"question": i, "response": f"B. {said[i % 5]}", "correct": i % 4 > 0 if i % 5 else i % 2 == 0}
        for i in range(2000)
    ]
    rows.append({"question": 2000, "response": "I cannot answer that.", "correct": False})
    (tmp_path / "answers.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with pytest.warns(UserWarning, match="1 of 2001 rows have no usable confidence"):
        lines = run_here("llm_confidence", [str(tmp_path / "answers.jsonl")], monkeypatch, capsys)
    assert lines[0] == "2000 answers with a stated confidence"
    assert "Over-confident" in lines[1]
    assert "calibration better" in lines[3]
    assert lines[-1].startswith("threshold:  accept")


def test_the_exported_file_answers_and_hands_over(tmp_path, monkeypatch, capsys):
    lines = run_here("onnx_deployment", [str(tmp_path)], monkeypatch, capsys)
    assert (tmp_path / "digits.onnx").is_file()
    assert any('"ask a person"' in line for line in lines)
    assert ast.literal_eval(lines[-1])["accuracy"] > 0.9


def test_data_frames_go_in_and_out(monkeypatch, capsys):
    found = {row[0]: row[1] for row in ast.literal_eval(run_here("data_frames", [], monkeypatch, capsys)[-1])}
    assert found["ece"] == pytest.approx(0.1586, abs=1e-4)


def test_the_workflow_runs_as_written(tmp_path, monkeypatch):
    """The command of examples/check.yml, on the embedded models."""
    from assay import examples, files
    from assay.cli import main

    command = re.search(r">-\n(.*)", (EXAMPLES / "check.yml").read_text(), re.DOTALL)[1]
    (tmp_path / "predictions").mkdir()
    monkeypatch.chdir(tmp_path)
    for name in ("new", "old"):
        files.write(examples.load(), tmp_path / "predictions" / f"{name}.npz")
    with pytest.raises(SystemExit, match="0"):
        main(shlex.split(command)[1:])
    assert (tmp_path / "trust.xml").is_file()


HEAVY = {
    "huggingface_trainer": ["transformers", "accelerate"],
    "boosted_trees": ["xgboost", "lightgbm"],
    "jax_logits": ["jax"],
    "keras_model": ["keras"],
    "trackers": ["mlflow", "wandb", "tensorboard"],
}


@pytest.mark.long
@pytest.mark.parametrize("name", HEAVY)
def test_examples_of_heavy_packages_run(name, tmp_path):
    """With the extra `integrations` installed."""
    for package in HEAVY[name]:
        if find_spec(package) is None:  # importing it here would take Keras' default backend
            pytest.skip(f"{package} is not installed")
    words = [sys.executable, "-W", "ignore", str(EXAMPLES / f"{name}.py"), str(tmp_path)]
    lines = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    if name == "trackers":
        assert [line.partition(":")[0] for line in lines[-3:]] == ["mlflow", "wandb", "tensorboard"]
        assert lines[-3].split()[1] == lines[-2].split()[1]
    else:
        assert ast.literal_eval(lines[-1])


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_the_notebook_runs():
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(EXAMPLES / "notebook.ipynb", 4)
    nbclient.NotebookClient(notebook, timeout=120).execute()
    shown = [output["data"] for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert ["text/html" in data or "image/png" in data for data in shown] == [True] * 4
