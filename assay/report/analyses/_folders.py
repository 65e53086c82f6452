"""The history and the training samples of a run, read from its folder."""

from __future__ import annotations

import json
from math import nan
from pathlib import Path
from typing import Any

import numpy as np

from assay._core.arrays import Array, InputError
from assay.metrics import Bins
from assay.report.statistics import Reliability, reliability

EpochRows = list[dict[str, float]]


def history(folder: Path) -> EpochRows:
    """One row an epoch, with the figures of the run's `Record`; nan for undefined or infinite values."""
    rows: list[dict[str, float | None]] = _content(folder)["epochs"]
    return [{key: nan if value is None else value for key, value in row.items()} for row in rows]


def train_reliability(folder: Path) -> dict[int, Reliability]:
    """The reliability of the training set at the epochs `Record.reliability_at` (mukhoti2020, fig 2)."""
    kept: dict[str, dict[str, list[float]]] = _content(folder)["reliability"]
    columns = {int(epoch): {name: np.array(column) for name, column in bins.items()} for epoch, bins in kept.items()}
    return {epoch: reliability(Bins(**bins)) for epoch, bins in columns.items()}


def sample_columns(folder: Path) -> dict[str, Array]:
    """Recorded columns of the training samples: ids, learned_epoch, gradient_norm_<epoch>; empty if there are none."""
    file = folder / "samples.npz"
    if not file.is_file():
        return {}
    with np.load(file, allow_pickle=False) as columns:
        return dict(columns)


def _content(folder: Path) -> dict[str, Any]:
    file = folder / "history.json"
    try:
        content: dict[str, Any] = json.loads(file.read_text())
    except ValueError as problem:
        raise InputError(f"{file}: is damaged: {problem}; delete the folder of the run and run it again") from problem
    return content
