"""The grid of a tally: cells of confidence, equal within a factor of two in log-odds, the same for every tally.

An octave of the odds c / (1 - c) has 1,024 cells, so a cell is between .0005 and .001 wide in log-odds (eight times as
much where the odds are below 2^-8 or above 2^28). Confidences of exactly 0 and exactly 1 have cells of their own, and
cells end at the edges of the 15 equal-width bins, so the bins of ECE are sums of cells. On level 1 every cell stands
for itself; each further level joins two neighbors, but never across an edge of a bin.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from assay._core.arrays import Floats, Labels
from assay._core.plain import Grid

EDGES = np.arange(1, Grid.BINS) / Grid.BINS
BIN = Grid.cell(EDGES).searchsorted(np.arange(Grid.CELLS))
"""The equal-width bin of each cell."""


@cache
def lowest() -> Floats:
    """The lowest confidence of each cell."""
    odds = np.concatenate([_steps(*band) for band in Grid.BANDS])
    least = np.concatenate([[0.0, np.nextafter(0.0, 1)], odds / (1 + odds), [1.0]])
    for _ in range(4):  # the division rounds: by an ulp or two
        least = np.where(Grid.raw(least) < np.arange(Grid.RAW), np.nextafter(least, 1), least)
        below = np.nextafter(least, 0)
        least = np.where(Grid.raw(below) >= np.arange(Grid.RAW), below, least)
    return np.insert(least, Grid.raw(EDGES) + 1, np.nextafter(EDGES, 1))


@cache
def first_cell(level: int) -> Labels:
    """The first cell of the grid that a cell is joined with on a level."""
    joined = 1 << (level - 1)
    steps = [np.arange(octaves << (52 - shift)) % joined == 0 for _, octaves, shift in Grid.BANDS]
    begins = np.insert(np.concatenate([[True, True], *steps, [True]]), Grid.raw(EDGES) + 1, True)
    return np.asarray(np.maximum.accumulate(np.where(begins, np.arange(Grid.CELLS), 0)))


def _steps(first: int, octaves: int, shift: int) -> Floats:
    """The odds at which the cells of a band begin."""
    steps = 1 << (52 - shift)
    octave, step = np.divmod(np.arange(octaves * steps), steps)
    return np.asarray(np.ldexp(1 + step / steps, first + octave))
