"""Rows on their way into a tally."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from assay._core import loops
from assay._core.arrays import Array, Floats, InputError, Mask, Tags, refuse
from assay._core.plain import Grid
from assay._matching import in_order
from assay.grouping import pairs_of
from assay.metrics import Tables
from assay.predictions import Outcomes, Predictions
from assay.scale import _cells
from assay.scale._cells import NONE, Cells
from assay.scale._tally import MEANS, SOME_GROUPS, Tally, added_pairs

ROOM = 2**31  # rows that the counts of one grid have room for
UNKNOWN = np.full((len(MEANS), 2, 2), np.nan)


class Filling:
    """A tally that is being made: chunks of rows are added to it one after the other.

    `on_grid` is for those who know that there are more distinct scores than a tally keeps: nobody looks for them then.
    Named classes are counted in the order of `classes`, or else of the first chunk that names them.
    """

    def __init__(self, *, on_grid: bool = False, classes: tuple[str, ...] | None = None) -> None:
        self._on_grid = on_grid
        self._classes = classes
        self._cells = NONE
        self._grid: Array | None = None  # what has been counted beside these cells
        self._room = 0
        self._rest: Tally | None = None  # everything but the cells
        self._positive: Filling | None = None
        self._groups: dict[str, Filling] = {}

    @property
    def some(self) -> bool:
        """Whether any rows have been added."""
        return self._rest is not None

    def add(self, rows: Predictions | Outcomes) -> None:
        """Count these rows."""
        if rows.cluster is not None:
            raise InputError("a tally counts rows as independent, and these are in clusters; audit them in one file")
        if not len(rows):
            return
        if self.some and (rows.group is None) == bool(self._groups):
            raise InputError(SOME_GROUPS)
        self._classes = self._classes or getattr(rows, "classes", None)
        rows = in_order(rows, self._classes)
        t = Tables(rows)
        o = t.outcomes
        classes, labels = t.class_bins if t.n_classes else None, added_pairs({}, pairs_of(rows))
        rest = Tally(NONE, sums_of(o), classes, None, o.is_probability, label_groups=labels, map_digest=rows.map_digest)
        self._rest = rest if self._rest is None else self._rest.merged(rest)
        self._count(o.confidence, o.correct, o.is_probability, o.weights)
        if t.n_classes == 2:
            self._positive = self._positive or Filling(on_grid=self._on_grid)
            self._positive.add(replace(t.positive.outcomes, group=None))
        if rows.group is not None:
            self._add_groups(rows, rows.group)

    def _add_groups(self, rows: Predictions | Outcomes, group: Tags) -> None:
        names, member = np.unique(group, return_inverse=True)
        for i, name in enumerate(map(str, names.tolist())):
            filling = self._groups.setdefault(name, Filling(on_grid=False))
            filling.add(replace(rows[member == i], group=None))

    def add_pairs(self, confidence: Floats, correct: Array, first: int) -> None:
        """Count confidences that nobody has checked, and bits that say which answers are right.

        A confidence outside [0, 1] is an error, after which this tally is of no more use.
        """
        if self._rest is None:
            self._rest = Tally(NONE, UNKNOWN)
        self._on_grid = self._on_grid or self._cells.level > 0 or _many(confidence)
        if self._on_grid:
            loops.add_bits_to_cells(confidence, correct, first, self._room_for(len(confidence)))
            return
        refuse(confidence, ~((confidence >= 0) & (confidence <= 1)), "confidence {} is outside [0, 1]")
        end = first + len(confidence)
        self._count(confidence, np.unpackbits(correct, count=end, bitorder="little")[first:].astype(bool), True)

    def tally(self) -> Tally:
        """The tally of all rows so far."""
        if self._rest is None:
            return Tally(NONE, UNKNOWN)
        counted = NONE if self._grid is None else Cells.of_grid(self._grid)
        cells = (self._cells + counted).fitting(self._rest.is_probability)
        positive = None if self._positive is None else self._positive.tally()
        groups = {name: replace(filling.tally(), classes=None) for name, filling in self._groups.items()}
        classes = self._classes if self._rest.class_bins is not None else None
        return replace(self._rest, cells=cells, of_positive=positive, groups=groups, classes=classes)

    def _count(self, confidence: Floats, correct: Mask, is_probability: bool, weights: Floats | None = None) -> None:
        self._on_grid = self._on_grid or self._cells.level > 0 or _many(confidence)
        if not (self._on_grid and is_probability):
            self._cells = (self._cells + Cells.of_scores(confidence, correct, weights)).fitting(is_probability)
        elif weights is None:
            loops.add_to_cells(confidence, correct, self._room_for(len(confidence)))
        else:
            self._cells = (self._cells + Cells.of_weighted(confidence, correct, weights)).fitting(True)

    def _room_for(self, rows: int) -> Array:
        """The grid, if it has room for so many rows, or else a new one."""
        if self._grid is None or self._room < rows:
            self._cells = self._cells if self._grid is None else self._cells + Cells.of_grid(self._grid)
            self._grid, self._room = Grid.empty(), ROOM
        self._room -= rows
        return self._grid


def sums_of(o: Outcomes) -> Floats:
    """The `sums` of a tally."""
    columns = (o.nll, o.brier, o.entropy)
    if o.weights is not None:
        return np.array([_weighted_moments(column, o.correct, o.weights) for column in columns])
    if all(column is None for column in columns):
        return UNKNOWN
    return np.array([_moments(column, o.correct) for column in columns])


def _moments(column: Floats | None, correct: Mask) -> Floats:
    if column is None:
        return np.full((2, 2), np.nan)
    return np.array([[part.sum(), np.einsum("i,i", part, part)] for part in (column[correct], column[~correct])])


def _weighted_moments(column: Floats | None, correct: Mask, weights: Floats) -> Floats:
    if column is None:
        return np.full((2, 3), np.nan)
    terms = np.stack([weights * column, weights**2 * column, (weights * column) ** 2])
    return np.array([terms[:, rows].sum(1) for rows in (correct, ~correct)])


def _many(confidence: Floats) -> bool:
    """Whether more than `MOST` scores are seen at once, by the first rows: else all rows are sorted to tell."""
    most = _cells.MOST
    return len(confidence) > most and len(np.unique(confidence[: 2 * most])) > most
