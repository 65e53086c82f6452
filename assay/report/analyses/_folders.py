"""What a run's folder tells of its training."""

from __future__ import annotations

import json
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assay._core.arrays import InputError
from assay.metrics import Bins
from assay.report.statistics import Reliability, reliability

History = list[dict[str, float]]


def history(folder: Path) -> History:
    """One row an epoch, as `training.Record` asked for them; nan for what was undefined or infinite."""
    rows: list[dict[str, float | None]] = _content(folder)["epochs"]
    return [{key: nan if value is None else value for key, value in row.items()} for row in rows]


def train_reliability(folder: Path) -> dict[int, Reliability]:
    """The reliability of the training set at the epochs `Record.reliability_at` (mukhoti2020, fig 2)."""
    kept: dict[str, dict[str, list[float]]] = _content(folder)["reliability"]
    columns = {int(epoch): {name: np.array(column) for name, column in bins.items()} for epoch, bins in kept.items()}
    return {epoch: reliability(Bins(**bins)) for epoch, bins in columns.items()}


def sample_columns(folder: Path) -> dict[str, NDArray[Any]]:
    """What was kept of each training sample: ids, learned_epoch, gradient_norm_<epoch>; nothing if nothing was."""
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
