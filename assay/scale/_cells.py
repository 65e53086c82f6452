"""Counts by confidence in a table of bounded size; two of them add up."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from assay._core.arrays import Array, Floats, InputError, Mask
from assay._core.plain import Grid
from assay.metrics import Bins
from assay.scale._grid import BIN

DISTINCT = 10_240  # scores up to which every one of them is kept, so that nothing is approximated


@dataclass(frozen=True, eq=False)
class Cells:
    """How many samples and errors there are at each score, or on the grid in each cell, in ascending order.

    A cell of the grid knows whether all its samples have the same confidence. Which scores share a cell depends on the
    scores alone, so any split of the rows, in any order, adds up to the same cells.
    """

    table: Floats  # [t, 3] samples, errors, and their score; of mixed cells the sum of their confidence instead
    mixed: Mask  # [t] whether the samples of a cell differ in their confidence
    on_grid: bool = False

    @staticmethod
    def of_scores(score: Floats, correct: Mask) -> Cells:
        """Every distinct score, however many."""
        distinct, place = np.unique(score + 0.0, return_inverse=True)
        table = np.stack([np.bincount(place), np.bincount(place, ~correct), distinct], 1)
        return Cells(table, np.zeros(len(table), dtype=bool))

    @staticmethod
    def of_grid(counted: Array) -> Cells:
        """What `loops.add_to_cells` counted."""
        counts, only = counted["counts"], counted["only"]
        size, misses = counts & np.uint64(2**32 - 1), counts >> np.uint64(32)
        mixed = only == Grid.MIXED
        value = np.where(mixed, counted["sum"], np.where(only == Grid.EMPTY, 0, only.view(np.float64)))
        return Cells(np.stack([size.astype(np.float64), misses.astype(np.float64), value], 1), mixed, True)

    def __add__(self, other: Cells) -> Cells:
        if not (len(self.table) and len(other.table)):
            return self if len(self.table) else other
        if self.on_grid or other.on_grid:
            return _added(self.gridded(), other.gridded())
        return _merged(np.concatenate([self.table, other.table]))

    def gridded(self) -> Cells:
        """The same on the grid."""
        if self.on_grid:
            return self
        size, misses, score = self.table.T
        index = Grid.cell(np.ascontiguousarray(score))
        count = np.bincount(index, minlength=Grid.CELLS)
        mixed = count > 1
        value = np.bincount(index, score * np.where(mixed[index], size, 1), Grid.CELLS)
        sums = (np.bincount(index, x, Grid.CELLS) for x in (size, misses))
        return Cells(np.stack([*sums, value], 1), mixed, True)

    def fitting(self, is_probability: bool) -> Cells:
        """The same on the grid, if there are more distinct scores than are kept."""
        if self.on_grid or len(self.table) <= DISTINCT:
            return self
        if not is_probability:
            raise InputError(
                f"more than {DISTINCT:,} distinct scores: of scores that are no probabilities no tally can be made"
            )
        return self.gridded()

    @cached_property
    def n(self) -> int:
        return int(self.table[:, 0].sum())

    @cached_property
    def n_wrong(self) -> int:
        return int(self.table[:, 1].sum())

    @cached_property
    def claims(self) -> Floats:
        """The sum of confidence in each cell."""
        size, _, value = self.table.T
        return np.asarray(np.where(self.mixed, value, value * size))

    @property
    def width(self) -> Bins:
        """On the grid, the 15 equal-width bins, exactly."""
        count, wrong, claims = (
            np.bincount(BIN, x, Grid.BINS).astype(np.float64) for x in (*self.table[:, :2].T, self.claims)
        )
        return Bins(np.arange(1, Grid.BINS + 1) / Grid.BINS, count, claims, count - wrong)


def _added(a: Cells, b: Cells) -> Cells:
    """Cells of the grid: a cell is mixed where one of the two is, or where both have samples of different scores."""
    some_a, some_b = a.table[:, 0] > 0, b.table[:, 0] > 0
    mixed = a.mixed | b.mixed | (some_a & some_b & (a.table[:, 2] != b.table[:, 2]))
    table = a.table + b.table
    table[:, 2] = np.where(mixed, a.claims + b.claims, np.where(some_a, a.table[:, 2], b.table[:, 2]))
    return Cells(table, mixed, True)


def _merged(both: Floats) -> Cells:
    """Cells of distinct scores, in ascending order."""
    score, place = np.unique(both[:, 2], return_inverse=True)
    table = np.stack([np.bincount(place, both[:, 0]), np.bincount(place, both[:, 1]), score], 1)
    return Cells(table, np.zeros(len(table), dtype=bool))
