"""Counts by confidence in a table of bounded size; two of them add up."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from assay._core.arrays import Array, Floats, InputError, Labels, Mask
from assay._core.plain import Grid
from assay.metrics import Bins
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
    """

    table: Floats  # [t, 3] samples, errors, and their score; of mixed cells the sum of their confidence instead
    mixed: Mask  # [t] whether the samples of a cell differ in their confidence
    level: int = 0
    place: Labels = field(default_factory=NOWHERE.copy)  # [t] above level 0: the first cell of the grid in each

    @staticmethod
    def of_scores(score: Floats, correct: Mask) -> Cells:
        """Every distinct score, however many."""
        distinct, place = np.unique(score + 0.0, return_inverse=True)
        table = np.stack([np.bincount(place), np.bincount(place, ~correct), distinct], 1)
        return Cells(table, np.zeros(len(table), dtype=bool))

    @staticmethod
    def of_grid(counted: Array) -> Cells:
        """What `loops.add_to_cells` counted."""
        place = np.flatnonzero(counted["counts"])
        counts, total, only = (counted[name][place] for name in ("counts", "sum", "only"))
        mixed = only == Grid.MIXED
        value = np.where(mixed, total, only.view(np.float64))
        size, misses = counts & np.uint64(2**32 - 1), counts >> np.uint64(32)
        return Cells(np.stack([size.astype(np.float64), misses.astype(np.float64), value], 1), mixed, 1, place)

    def __add__(self, other: Cells) -> Cells:
        if not (len(self.table) and len(other.table)):
            return self if len(self.table) else other
        level = max(self.level, other.level)
        a, b = self.on(level), other.on(level)
        table, mixed = np.concatenate([a.table, b.table]), np.concatenate([a.mixed, b.mixed])
        return _joined(table, mixed, level, np.concatenate([a._places, b._places]))

    def on(self, level: int) -> Cells:
        """The same on a level that is not lower."""
        if level == self.level:
            return self
        place = self.place if self.level else Grid.cell(np.ascontiguousarray(self.table[:, 2]))
        return _joined(self.table, self.mixed, level, first_cell(level)[place])

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
    def lowest(self) -> Floats:
        """The lowest confidence that each cell has room for; that of its samples where they have the same."""
        return np.where(self.mixed, lowest()[self.place], self.table[:, 2]) if self.level else self.table[:, 2]

    @property
    def width(self) -> Bins:
        """Above level 0, the 15 equal-width bins, exactly."""
        count, wrong, claims = (
            np.bincount(BIN[self.place], x, Grid.BINS).astype(np.float64) for x in (*self.table[:, :2].T, self.claims)
        )
        return Bins(np.arange(1, Grid.BINS + 1) / Grid.BINS, count, claims, count - wrong)


def _joined(table: Floats, mixed: Mask, level: int, place: Array) -> Cells:
    """Cells of the same place become one, which is mixed if one of them is or if their scores differ."""
    order = np.argsort(place, kind="stable")
    place, mixed, (size, misses, value) = place[order], mixed[order], table[order].T
    start = np.append(0, np.flatnonzero(place[1:] != place[:-1]) + 1)
    low, high = np.minimum.reduceat(value, start), np.maximum.reduceat(value, start)
    several = np.logical_or.reduceat(mixed, start) | (low != high)
    total = np.add.reduceat(np.where(mixed, value, value * size), start)
    counts = (np.add.reduceat(x, start) for x in (size, misses))
    found = np.stack([*counts, np.where(several, total, low)], 1)
    return Cells(found, several, level, place[start] if level else NOWHERE)


NONE = Cells(np.zeros((0, 3)), np.zeros(0, dtype=bool))
