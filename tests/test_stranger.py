"""README as a stranger follows it: the built wheel in a clean environment, without a clone."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
NEEDS_MORE = ("assay train", "assay study", "assay export", "pip ", "make ")  # training, ONNX, or a clone


def commands() -> list[str]:
    """The indented commands of the README that need no extra."""
    lines = re.findall(r"^    (\S.*)$", (ROOT / "README.md").read_text(), re.MULTILINE)
    return [line for line in lines if not line.startswith(NEEDS_MORE)]


def write_files(folder: Path) -> None:
    """The files that the README names, with the embedded network's predictions."""
    from assay import examples, files

    halves = {"held_out": examples.load(split="held_out"), "test": examples.load()}
    for name in ("model", "test", "before", "new", "held_out"):
        files.write(halves["held_out" if name == "held_out" else "test"], folder / f"{name}.npz")
    files.write(examples.load("label_smoothing"), folder / "after.npz")
    rows = halves["test"][:2000]
    by_class = [f"p_{i}" for i in range(10)]
    head, table = (
        ",".join([*by_class, "y"]),
        np.c_[rows.probabilities / rows.probabilities.sum(1, keepdims=True), rows.labels],
    )
    np.savetxt(folder / "answers.csv", table, delimiter=",", header=head, comments="")
    for name in ("small", "large"):
        from dataclasses import replace

        files.write(replace(rows, group=np.arange(len(rows)) % 3), folder / f"{name}.parquet")


def test_the_readme_has_commands_for_a_stranger():
    assert {line.split()[1] for line in commands()} >= {"audit", "compare", "calibrate", "threshold", "recheck"}


@pytest.mark.long
def test_readme_commands_work_from_the_wheel_alone(tmp_path):
    build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "-q", "-w", str(tmp_path), str(ROOT)]
    subprocess.run(build, check=True)
    [wheel] = tmp_path.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    there = tmp_path / "venv" / "bin"
    install = [str(there / "python"), "-m", "pip", "install", "-q", "-c", str(ROOT / "constraints.txt"), str(wheel)]
    subprocess.run(install, check=True)
    shutil.rmtree(tmp_path / "here", ignore_errors=True)
    (tmp_path / "here").mkdir()
    write_files(tmp_path / "here")
    clean = {"PATH": f"{there}:/usr/bin:/bin", "HOME": str(tmp_path), "OMP_NUM_THREADS": "1", "LANG": "C.UTF-8"}
    clean |= {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
    for line in commands():
        words = [word.replace("country", "group") for word in shlex.split(line)]
        done = subprocess.run(words, cwd=tmp_path / "here", env=clean, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{line}: {done.stderr}"
