"""The histories of a study's runs as curves: mean and spread over seeds, thinned to fit on a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from assay.epochs import AVERAGED, FIGURES
from assay.metrics import METRICS
from assay.report.analyses import EpochRows, history, per_epoch
from assay.report.page._content import Content, short
from assay.report.quantities import heading, quantity

SIGNS, CELL, POINT = 3_000_000, 85, 13  # characters for all tables and curves of a page, for a cell, and for a point
FEWEST, MOST = 16, 100  # epochs of a curve
# Columns of a history that are figures of a split, and which figure each of them is.
OF_SPLITS = {f"{split}_{figure}": figure for split in ("held_out", "test", "train") for figure in FIGURES}
FIGURES_FIRST = (
    *("held_out_ece", "held_out_auroc", "held_out_aurc", "held_out_accuracy", "held_out_nll"),
    *("loss", "train_accuracy", "train_nll", "train_ece", "weight_norm"),
)


@dataclass(frozen=True)
class Room:
    """The figures, and the number of epochs of each curve, that fit on a page."""

    figures: tuple[str, ...]
    epochs: int
    left_out: int = 0  # figures that do not fit


def room(cells: int, curves: int, folders: Sequence[Path]) -> Room:
    """The room that so many table cells leave for so many curves of each figure; the most used figures come first."""
    points = (SIGNS - CELL * cells) // POINT
    last = next((rows[-1] for rows in map(_rows, folders) if rows), {})
    plain = {name for name in last if not name.startswith(AVERAGED)} - {"epoch"}  # averages are lines of their own
    names = sorted(plain, key=lambda name: (*(name != first for first in FIGURES_FIRST), name))
    figures = names[: max(points // (FEWEST * max(curves, 1)), 1)]
    epochs = points // max(curves * len(figures), 1)
    return Room(tuple(figures), min(max(epochs, FEWEST), MOST), len(names) - len(figures))


def epoch_curves(folders: Mapping[str, Sequence[Path]], room: Room) -> list[Content]:
    """One entry a method: its epochs and, by figure, mean and spread at each; `folders` has each method's seeds."""
    histories = {method: _thinned([_rows(folder) for folder in seeds], room) for method, seeds in folders.items()}
    epochs = sorted({row["epoch"] for seeds in histories.values() for rows in seeds for row in rows})
    entries: dict[str, Content] = {}
    for figure in room.figures:
        for line in per_epoch(histories, figure):
            factor = quantity(OF_SPLITS.get(figure, figure)).unit.factor
            at = dict(zip(line.x, zip(line.mean, line.spread, strict=True), strict=True))
            mean, spread = zip(*(at.get(epoch, (np.nan, np.nan)) for epoch in epochs), strict=True)
            columns = {"mean": short(factor * np.array(mean), 4), "spread": short(factor * np.array(spread), 2)}
            entries.setdefault(line.name, {"name": line.name, "epoch": epochs})[figure] = columns
    return list(entries.values())


def title(figure: str) -> str:
    """The name of a figure, with unit and arrow if it is of a metric: held_out_ece % ↓."""
    metric = OF_SPLITS.get(figure, figure)
    return figure.removesuffix(metric) + heading(metric) if metric in METRICS else figure


def _rows(folder: Path) -> EpochRows:
    return history(folder) if (folder / "history.json").is_file() else []


def _thinned(seeds: list[EpochRows], room: Room) -> list[EpochRows]:
    """The same epochs of every seed, evenly spaced, including both ends."""
    last = max((row["epoch"] for rows in seeds for row in rows), default=0.0)
    kept = set(np.linspace(0, last, room.epochs).round().tolist())
    return [[row for row in rows if row["epoch"] in kept] for rows in seeds]
