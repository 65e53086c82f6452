"""The core needs numpy and scipy alone: everything but training, figures and export works without the rest."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import lowest
import pytest

from assay import calibrators, examples, files, maps

BLOCKED = ("torch", "lightning", "sklearn", "matplotlib", "ray", "onnx", "onnxruntime", "PIL")
RUN = f"""
import sys
class Blocked:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in {BLOCKED}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocked())
from assay.cli import main
main()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("light")
    files.write(examples.load()[:2000], path / "test.parquet")
    files.write(examples.load("label_smoothing")[:2000], path / "other.npz")
    files.write(examples.load(split="held_out")[:1500], path / "held_out.csv")
    maps.save(calibrators.temperature(examples.load(split="held_out")), path / "given.json")
    return path


def assay(folder: Path, *words: str) -> str:
    """What the command prints, in an interpreter in which heavy packages cannot be imported."""
    done = subprocess.run([sys.executable, "-c", RUN, *words], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_lowest_versions_are_those_that_are_tested(monkeypatch):
    monkeypatch.setattr(lowest, "available", lambda package: ["2.1.0", "1.26.4", "1.26.0", "1.25.2"])
    assert lowest.lowest("numpy>=1.26") == "numpy==1.26.0"
    assert lowest.lowest("numpy>=1.26.1") == "numpy==1.26.4"


def test_every_extra_with_torch_has_the_exporter_that_is_used():
    """torch.onnx.export(dynamo=True) takes the shapes of `*inputs` and returns a program from 2.7 on."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    asked = [each for extra in extras for each in extra if each.startswith("torch>=")]
    assert len(asked) >= 2
    assert all(lowest.parsed(each.removeprefix("torch>=")) >= (2, 7) for each in asked)


def test_audit(folder):
    assert "ECE" in assay(folder, "audit", "test.parquet", "--html", "audit.html", "--json", "audit.json")
    assert (folder / "audit.html").stat().st_size > 1_000_000
    assert json.loads((folder / "audit.json").read_text())


def test_compare(folder):
    assert "calibration" in assay(folder, "compare", "test.parquet", "other.npz", "--html", "compare.html")


def test_calibrate_and_threshold(folder):
    table = assay(folder, "calibrate", "held_out.csv", "--apply", "test.parquet", "--method", "all")
    assert all(name in table for name in ("temperature", "matrix", "isotonic_one_vs_rest", "auto"))
    save = ("--save", "map.json", "--out", "calibrated.npz")
    assay(folder, "calibrate", "held_out.csv", "--apply", "test.parquet", "--method", "temperature", *save)
    assert "accept" in assay(folder, "threshold", "test.parquet", "--map", "map.json", "--risk", "0.1")


def test_lists(folder):
    assert "aurc" in assay(folder, "list", "metrics")
    assert "temperature" in assay(folder, "list", "calibrators")


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (("train", "--data", "digits", "--network", "mlp", "--recipe", "focal", "--out", "run"), "train"),
        (("export", "model.onnx", "--map", "given.json", "--out", "new.onnx"), "onnx"),
    ],
)
def test_what_needs_an_extra_says_which(folder, words, extra):
    (folder / "model.onnx").write_bytes(b"")
    done = subprocess.run([sys.executable, "-c", RUN, *words], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"pip install 'assay-ml[{extra}]'" in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_importing_assay_imports_little():
    code = "import sys, assay; print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    heavy = (*BLOCKED, "pyarrow", "pydantic", "rich", "cyclopts", "scipy.stats", "scipy.optimize", "pandas", "polars")
    assert not {name for name in heavy if name in found}
