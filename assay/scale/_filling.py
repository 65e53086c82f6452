"""Rows on their way into a tally."""

from __future__ import annotations

import numpy as np

from assay._core import loops
from assay._core.arrays import Array, Floats, InputError, Mask
from assay._core.plain import Grid
from assay.metrics import Tables
from assay.predictions import Outcomes, Predictions
from assay.scale import _cells
from assay.scale._cells import Cells
from assay.scale._tally import MEANS, Tally

ROOM = 2**31  # rows that the counts of one grid have room for
NONE = Cells(np.zeros((0, 3)), np.zeros(0, dtype=bool))


class Filling:
    """A tally that is being made: chunks of rows are added to it one after the other.

    `on_grid` is for those who know that there are more distinct scores than a tally keeps: nobody looks for them then.
    """

    def __init__(self, *, on_grid: bool = False) -> None:
        self._on_grid = on_grid
        self._grid: Array | None = None  # what has been counted since `_done`
        self._room = 0
        self._done: Tally | None = None
        self._positive: Filling | None = None

    def add(self, rows: Predictions | Outcomes) -> None:
        """Count these rows."""
        if rows.weights is not None:
            raise InputError("a tally counts every row alike; weighted rows must be evaluated in memory")
        t = Tables(rows)
        o = t.outcomes
        sums = np.array([_sums(getattr(o, name), o.correct) for name in MEANS])
        cells = self._counted(o.confidence, o.correct, o.is_probability)
        part = Tally(cells, sums, t.class_bins if t.n_classes else None, None, o.is_probability)
        self._done = part if self._done is None else self._done + part
        if t.n_classes == 2:
            self._positive = self._positive or Filling(on_grid=self._on_grid)
            self._positive.add(t.positive.outcomes)

    @property
    def some(self) -> bool:
        """Whether any rows have been added."""
        return self._done is not None

    def tally(self) -> Tally:
        """The tally of all rows so far."""
        if self._done is None:
            raise InputError("no rows")
        positive = self._positive and self._positive.tally()
        counted = NONE if self._grid is None else Cells.of_grid(self._grid)
        return self._done.with_more(counted, positive)

    def _counted(self, confidence: Floats, correct: Mask, is_probability: bool) -> Cells:
        """Cells of these rows, or none if they went to the grid."""
        self._on_grid = self._on_grid or (self._done is not None and self._done.cells.on_grid) or _many(confidence)
        if not (self._on_grid and is_probability):
            return Cells.of_scores(confidence, correct).fitting(is_probability)
        full = NONE
        if self._grid is None or self._room < len(confidence):
            full = NONE if self._grid is None else Cells.of_grid(self._grid)
            self._grid, self._room = Grid.empty(), ROOM
        loops.add_to_cells(confidence, correct, self._grid)
        self._room -= len(confidence)
        return full


def _sums(column: Floats | None, correct: Mask) -> Floats:
    """Sums over right answers and over errors, and of the squares."""
    if column is None:
        return np.full((2, 2), np.nan)
    return np.array([[part.sum(), part @ part] for part in (column[correct], column[~correct])])


def _many(confidence: Floats) -> bool:
    """Whether more than `DISTINCT` scores are seen at once, by the first rows: else all rows are sorted to tell."""
    most = _cells.DISTINCT
    return len(confidence) > most and len(np.unique(confidence[: 2 * most])) > most
