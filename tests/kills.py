"""What a run leaves when its process is killed, and what readers see while several write: whole files only."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path
from random import Random

from assay._core.manifest import damaged

STUDY = """
name = "killed"
data = ["synthetic"]
networks = ["mlp"]
recipes = ["cross_entropy"]
seeds = [0]
epochs = 4
n_train = [400]
calibrators = ["none", "temperature"]
metrics = ["accuracy", "ece"]
"""
TRAIN = ["train", "--data", "synthetic", "--network", "mlp", "--recipe", "cross_entropy", "--epochs", "4", "--n-train"]
COMMANDS = {
    "train": [*TRAIN, "400", "--out", "run"],
    "study": ["study", "run", "study.toml", "--out", "runs", "--threads", "1"],
    "audit": ["audit", "--json", "out/a.json", "--html", "out/a.html"],
}
NEVER_THE_SAME = ("log.txt", "lock", "failed.json", "manifest.json")  # the last lists the bytes of a checkpoint


def begun(name: str, folder: Path) -> subprocess.Popen[bytes]:
    """The command in a process group of its own, in that folder."""
    (folder / "study.toml").write_text(STUDY)
    (folder / "out").mkdir(exist_ok=True)
    words = [sys.executable, "-m", "assay", *COMMANDS[name]]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen(words, cwd=folder, start_new_session=True, **quiet)


def finished(name: str, folder: Path) -> dict[str, str]:
    """Run the command to its end, and return the digests of what it wrote."""
    with begun(name, folder) as process:
        if process.wait():
            raise RuntimeError(f"{name} ended with {process.returncode}")
    return digests(folder)


def digests(folder: Path) -> dict[str, str]:
    """Of the files that a command writes."""
    files = (path for part in ("run", "runs", "out") for path in (folder / part).rglob("*") if path.is_file())
    kept = {str(path.relative_to(folder)): path for path in files if path.name not in NEVER_THE_SAME}
    return {name: _digest(path) for name, path in kept.items()}


def _digest(path: Path) -> str:
    """Of the weights in a checkpoint, whose other bytes depend on when it was read; else of the file."""
    if path.name != "checkpoint.pt":
        return sha256(path.read_bytes()).hexdigest()
    import torch

    weights = torch.load(path, weights_only=True)["network"]
    return sha256(b"".join(weight.numpy().tobytes() for weight in weights.values())).hexdigest()


def killed(name: str, folder: Path, after: float) -> list[str]:
    """Kill the command and its children after so many seconds; what is then wrong in the folder, a line each."""
    with begun(name, folder) as process:
        time.sleep(after)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    runs = [listing.parent for listing in folder.rglob("manifest.json")]
    return [problem for run in runs for problem in damaged(run)]


def kill_bench(name: str, root: Path, kills: int, seed: int = 0) -> tuple[int, list[str]]:
    """Kill a command at random times until it has been killed so often; how often it wrote anew, and what was wrong.

    Whenever it comes to its end, what it wrote must be what an uninterrupted command writes.
    """
    whole = root / "whole"
    whole.mkdir()
    start = time.monotonic()
    expected = finished(name, whole)
    seconds = time.monotonic() - start
    rng, wrong, folders = Random(seed), list[str](), 0
    while kills > 0:
        folder = root / f"{name}{folders}"
        folder.mkdir()
        folders += 1
        for _ in range(min(5, kills)):
            wrong += killed(name, folder, rng.uniform(0.2, 1.0) * seconds)
            kills -= 1
        found = finished(name, folder)
        wrong += [f"{folder / file}: is other" for file in expected if found.get(file) != expected[file]]
        wrong += [f"{folder / file}: is left" for file in found.keys() - expected.keys()]
    return folders, wrong
