"""The grid of a tally: cells of confidence, equal within a factor of two in log-odds, the same for every tally.

An octave of the odds c / (1 - c) has 128 cells, so a cell is between .004 and .008 wide in log-odds, however near the
confidence is to 1. Confidences of exactly 0 and exactly 1 have cells of their own, and cells end at the edges of the 15
equal-width bins, so the bins of ECE are sums of cells.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from assay._core import loops
from assay._core.arrays import Floats, Labels, Mask
from assay._core.plain import Grid
from assay.metrics import Bins

N_BINS = 15


def _grid() -> Grid:
    inner = np.arange(1, N_BINS) / N_BINS
    edge = np.full(Grid.RAW, np.inf)
    raw = Grid.raw(inner)
    edge[raw] = inner
    before = np.concatenate([[0], np.cumsum(np.isfinite(edge))[:-1]])
    return Grid(edge, before.astype(np.int64))


GRID = _grid()
CELLS = Grid.RAW + N_BINS - 1
_BIN = np.searchsorted(Grid.raw(np.arange(1, N_BINS) / N_BINS) + np.arange(N_BINS - 1), np.arange(CELLS))


def add_rows(confidence: Floats, correct: Mask, cells: Floats) -> None:
    """Add samples to cells [CELLS, 3]: how many, errors among them, and the sum of confidence."""
    loops.add_to_cells(confidence, correct, GRID, cells)


def cell_of(confidence: Floats) -> Labels:
    """The cell of each confidence."""
    return GRID.cell(confidence)


@cache
def lowest() -> Floats:
    """The lowest confidence of each cell."""
    exponent, step = np.divmod(np.arange(Grid.RAW - 3), 128)
    odds = np.ldexp(1 + step / 128, exponent - 20)
    least = np.concatenate([[0.0, np.nextafter(0.0, 1)], odds / (1 + odds), [1.0]])
    for _ in range(4):  # the division rounds: by an ulp or two
        least = np.where(Grid.raw(least) < np.arange(Grid.RAW), np.nextafter(least, 1), least)
        below = np.nextafter(least, 0)
        least = np.where(Grid.raw(below) >= np.arange(Grid.RAW), below, least)
    split = np.flatnonzero(np.isfinite(GRID.edge))
    return np.insert(least, split + 1, np.nextafter(GRID.edge[split], 1))


def width_of(cells: Floats) -> Bins:
    """The 15 equal-width bins, exactly."""
    sums: list[Floats] = [np.bincount(_BIN, column, N_BINS).astype(np.float64) for column in cells.T]
    count, wrong, claims = sums
    return Bins(np.arange(1, N_BINS + 1) / N_BINS, count, claims, count - wrong)
