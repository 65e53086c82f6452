"""Counts by confidence in a table of bounded size; two of them add up."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from assay._core.arrays import Array, Floats, InputError, Labels, Mask, row_chunks
from assay._core.plain import Grid
from assay.metrics import Bins, kish
from assay.scale._grid import BIN, first_cell, lowest

MOST = 20_000  # cells of a table
NOWHERE = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Cells:
    """How many samples and errors there are at each score, or in each cell of the grid with samples, ascending.

    The level is the lowest on which there are at most `MOST` cells: on level 0 every score has its own, on level 1 they
    are those of the grid, and each further level joins neighbors. More samples never lower it, so it depends on the
    samples alone: any split of the rows, in any order, adds up to the same cells. A cell knows whether all its samples
    have the same confidence.

    Weighted samples count by their weights; two more columns have the squares of the weights, of all and of errors.
    """

    table: Floats  # [t, 3 or 5] samples, errors, and their score; of mixed cells the sum of their confidence instead
    mixed: Mask  # [t] whether the samples of a cell differ in their confidence
    level: int = 0
    place: Labels = field(default_factory=NOWHERE.copy)  # [t] above level 0: the first cell of the grid in each
    rows: tuple[int, int] | None = None  # of weighted samples, how many samples and errors there are

    @staticmethod
    def of_scores(score: Floats, correct: Mask, weights: Floats | None = None) -> Cells:
        """Every distinct score, however many."""
        distinct, place = np.unique(score + 0.0, return_inverse=True)
        samples, errors, *squares = _sums(place, len(distinct), correct, weights)
        table = np.stack([samples, errors, distinct, *squares], 1)
        return Cells(table, np.zeros(len(table), dtype=bool), rows=_rows(correct, weights))

    @staticmethod
    def of_grid(counted: Array) -> Cells:
        """What `loops.add_to_cells` counted."""
        place = np.flatnonzero(counted["counts"])
        counts, total, only = (counted[name][place] for name in ("counts", "sum", "only"))
        mixed = only == Grid.MIXED
        value = np.where(mixed, total, only.view(np.float64))
        size, misses = counts & np.uint64(2**32 - 1), counts >> np.uint64(32)
        return Cells(np.stack([size.astype(np.float64), misses.astype(np.float64), value], 1), mixed, 1, place)

    @staticmethod
    def of_weighted(confidence: Floats, correct: Mask, weights: Floats) -> Cells:
        """Weighted samples in the cells of the grid."""
        sums, claims, only = np.zeros((4, Grid.CELLS)), np.zeros(Grid.CELLS), np.full(Grid.CELLS, -1.0)
        mixed = np.zeros(Grid.CELLS, dtype=bool)
        for rows in row_chunks(len(confidence), 1):
            c, own = confidence[rows] + 0.0, weights[rows]  # -0 becomes 0
            index = Grid.cell(c)
            new = only[index] < 0
            only[index[new]] = c[new]
            mixed[index[c != only[index]]] = True
            sums += _sums(index, Grid.CELLS, correct[rows], own)
            claims += np.bincount(index, own * c, Grid.CELLS)
        place = np.flatnonzero(only >= 0)
        table = np.insert(sums, 2, np.where(mixed, claims, only), 0)[:, place].T
        return Cells(np.ascontiguousarray(table), mixed[place], 1, place, _rows(correct, weights))

    def __add__(self, other: Cells) -> Cells:
        if not (len(self.table) and len(other.table)):
            return self if len(self.table) else other
        level = max(self.level, other.level)
        a, b = self.on(level), other.on(level)
        place = np.concatenate([a._places, b._places])
        order = np.argsort(place, kind="stable")
        table, mixed = np.concatenate([a.table, b.table])[order], np.concatenate([a.mixed, b.mixed])[order]
        joined = _joined(table, mixed, level, place[order])
        return joined if a.rows is None else replace(joined, rows=(a.n + b.n, a.n_wrong + b.n_wrong))

    def on(self, level: int) -> Cells:
        """The same on a level that is not lower."""
        if level == self.level:
            return self
        place = self.place if self.level else Grid.cell(np.ascontiguousarray(self.table[:, 2]))
        return replace(_joined(self.table, self.mixed, level, first_cell(level)[place]), rows=self.rows)

    def fitting(self, is_probability: bool) -> Cells:
        """The same on the lowest level on which there are not too many cells."""
        if len(self.table) <= MOST:
            return self
        if not is_probability:
            raise InputError(
                f"more than {MOST:,} distinct scores: of scores that are no probabilities no tally can be made"
            )
        return self.on(self.level + 1).fitting(True)

    @property
    def _places(self) -> Array:
        """What tells the cells of one level apart."""
        return self.place if self.level else self.table[:, 2]

    def rows_of(self, confidence: Floats) -> Labels:
        """The row of the table in which confidences are counted, above level 0."""
        return np.asarray(self.place.searchsorted(first_cell(self.level)[Grid.cell(confidence + 0.0)]))

    @cached_property
    def n(self) -> int:
        return int(self.table[:, 0].sum()) if self.rows is None else self.rows[0]

    @cached_property
    def n_wrong(self) -> int:
        return int(self.table[:, 1].sum()) if self.rows is None else self.rows[1]

    @cached_property
    def weight(self) -> float:
        """The sum of all weights; of samples that count alike their number."""
        return float(self.table[:, 0].sum())

    @property
    def squares(self) -> Floats:
        """Squares of the weights in each cell, of all samples and of errors, [2, t]."""
        return self.table.T[:2] if self.rows is None else self.table.T[3:]

    @cached_property
    def in_units(self) -> Cells:
        """The same with weights in units of their mean, so that all samples together count n."""
        if self.rows is None:
            return self
        unit = self.weight / self.n
        table = self.table / [unit, unit, 1, unit**2, unit**2]
        table[self.mixed, 2] /= unit
        return replace(self, table=table)

    @cached_property
    def claims(self) -> Floats:
        """The sum of confidence in each cell."""
        size, value = self.table[:, 0], self.table[:, 2]
        return np.asarray(np.where(self.mixed, value, value * size))

    @property
    def lowest(self) -> Floats:
        """The lowest confidence that each cell has room for; that of its samples where they have the same."""
        return np.where(self.mixed, lowest()[self.place], self.table[:, 2]) if self.level else self.table[:, 2]

    @property
    def width(self) -> Bins:
        """Above level 0, the 15 equal-width bins, exactly."""
        columns = (*self.table[:, :2].T, self.claims, self.squares[0])
        count, wrong, claims, squares = (np.bincount(BIN[self.place], x, Grid.BINS).astype(np.float64) for x in columns)
        effective = None if self.rows is None else kish(count, squares)
        return Bins(np.arange(1, Grid.BINS + 1) / Grid.BINS, count, claims, count - wrong, effective)


def _sums(place: Labels, size: int, correct: Mask, weights: Floats | None) -> list[Floats]:
    """Samples and errors in each place; of weighted ones the sums of weights, and those of their squares."""
    if weights is None:
        return [np.bincount(place, x, size).astype(np.float64) for x in (None, ~correct)]
    columns = (weights, weights * ~correct, weights**2, weights**2 * ~correct)
    return [np.bincount(place, x, size).astype(np.float64, copy=False) for x in columns]


def _rows(correct: Mask, weights: Floats | None) -> tuple[int, int] | None:
    return None if weights is None else (len(correct), int((~correct).sum()))


def _joined(table: Floats, mixed: Mask, level: int, place: Array) -> Cells:
    """Neighbors in the same place become one cell, which is mixed if one of them is or if their scores differ."""
    size, value = table[:, 0], table[:, 2]
    new = np.append(True, place[1:] != place[:-1])
    start, member = np.flatnonzero(new), np.cumsum(new) - 1
    first = value[start]
    several = np.bincount(member, mixed | (value != first[member])) > 0
    total = np.bincount(member, np.where(mixed, value, value * size))
    samples, errors, *squares = (np.bincount(member, column) for column in np.delete(table, 2, 1).T)
    found = np.stack([samples, errors, np.where(several, total, first), *squares], 1)
    return Cells(found, several, level, place[start] if level else NOWHERE)


NONE = Cells(np.zeros((0, 3)), np.zeros(0, dtype=bool))
