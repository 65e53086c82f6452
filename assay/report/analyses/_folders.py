"""The history and the training samples of a run, read from its folder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf, nan
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from assay._core.arrays import Array, InputError
from assay.metrics import Bins
from assay.report.statistics import Reliability, reliability

EpochRows = list[dict[str, float]]
LARGEST = 1e300  # figure of an epoch, so that their mean is finite


def history(folder: Path) -> EpochRows:
    """One row an epoch, with the figures of the run's `Record`; nan for undefined or infinite values."""
    with _content(folder) as content:
        rows: list[dict[str, float | None]] = content["epochs"]
        found = [{str(key): nan if value is None else float(value) for key, value in row.items()} for row in rows]
        if not all(0 <= row["epoch"] < inf for row in found):
            raise ValueError("epochs count from 0")
        if any(abs(value) > LARGEST for row in found for value in row.values()):
            raise ValueError(f"figures are at most {LARGEST:g}")
        return found


def train_reliability(folder: Path) -> dict[int, Reliability]:
    """The reliability of the training set at the epochs `Record.reliability_at` (mukhoti2020, fig 2)."""
    with _content(folder) as content:
        kept: dict[str, dict[str, list[float]]] = content["reliability"]
        columns = {int(epoch): {name: np.array(x, float) for name, x in bins.items()} for epoch, bins in kept.items()}
        return {epoch: reliability(Bins(**bins)) for epoch, bins in columns.items()}


def sample_columns(folder: Path) -> dict[str, Array]:
    """Recorded columns of the training samples: ids, learned_epoch, gradient_norm_<epoch>; empty if there are none."""
    file = folder / "samples.npz"
    if not file.is_file():
        return {}
    with _whole(file), np.load(file, allow_pickle=False) as columns:
        return dict(columns)


@contextmanager
def _content(folder: Path) -> Iterator[dict[str, Any]]:
    """What history.json holds; a block that does not find what it expects finds a damaged file."""
    file = folder / "history.json"
    with _whole(file):
        yield json.loads(file.read_text(encoding="utf-8"))


@contextmanager
def _whole(file: Path) -> Iterator[None]:
    try:
        yield
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        OverflowError,
        RecursionError,
        BadZipFile,
    ) as problem:
        why = f"{type(problem).__name__} {problem}"
        raise InputError(f"{file}: is damaged: {why}; delete the folder of the run and run it again") from problem
