"""The order of more rows than fit into memory: they are sorted on the disk, cell by cell of the grid."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from assay._core.arrays import Floats, InputError, Labels
from assay._core.plain import Areas, areas_of, from_zero
from assay.metrics import ROUNDING, Order, Ranking, tie_excess
from assay.predictions import Outcomes, Predictions
from assay.scale._bounds import SHARES
from assay.scale._cells import Cells

ROWS = 2**20  # sorted at once, unless one cell has more
CHANGED = "the files have changed in between, so begin anew"


def sorted_order(cells: Cells, chunks: Iterable[Predictions | Outcomes]) -> Order:
    """What the metrics of the ranking are on the rows themselves, which `cells` have counted.

    Rows of a cell that is a tie need not be looked at again. The others are written to a temporary folder, eight bytes
    each and eight for a weight, one file for a run of cells, and sorted file by file.
    """
    bucket = _buckets(cells)
    with TemporaryDirectory(prefix="assay_") as folder:
        counted = _spill(chunks, cells, bucket, Path(folder))
        if counted != (cells.n, cells.n_wrong):
            raise InputError(
                f"{cells.n:,} rows with {cells.n_wrong:,} errors were counted, and {counted[0]:,} with {counted[1]:,} "
                f"read again to sort them; {CHANGED}"
            )
        return _order(cells.in_units, _blocks(cells.in_units, bucket, Path(folder)))


def _buckets(cells: Cells) -> Labels:
    """The file of each cell: cells side by side until their rows are enough."""
    size = np.where(cells.mixed, cells.in_units.table[:, 0], 0)
    return np.asarray(np.cumsum(size) // ROWS, dtype=np.int64)


def _spill(chunks: Iterable[Predictions | Outcomes], cells: Cells, bucket: Labels, folder: Path) -> tuple[int, int]:
    """Confidences, those of errors negated, and weights in units of their mean, one file a bucket.

    How many rows and errors there were.
    """
    unit, n, n_wrong = cells.weight / cells.n, 0, 0
    for chunk in chunks:
        o = chunk.outcomes()
        n, n_wrong = n + len(o), n_wrong + int((~o.correct).sum())
        cell = cells.rows_of(o.confidence)
        if cell.max(initial=0) == len(cells.table):
            raise InputError(f"a confidence is higher than all that were counted; {CHANGED}")
        signed = np.copysign(o.confidence, np.where(o.correct, 1.0, -1.0))
        columns = [signed] if o.weights is None else [signed, o.weights / unit]
        spilled, place = np.stack(columns, 1)[cells.mixed[cell]], bucket[cell[cells.mixed[cell]]]
        order = np.argsort(place, kind="stable")
        which, start = np.unique(place[order], return_index=True)
        for i, rows in zip(which.tolist(), np.split(spilled[order], start[1:]), strict=True):
            with (folder / str(i)).open("ab") as stream:
                rows.tofile(stream)
    return n, n_wrong


def _blocks(cells: Cells, bucket: Labels, folder: Path) -> Iterator[Floats]:
    """Distinct scores with their samples and errors, [3, t], most confident first, file by file."""
    for i in range(int(bucket[-1]), -1, -1):
        ties = cells.table[(bucket == i) & ~cells.mixed]
        file = folder / str(i)
        spilled = np.fromfile(file) if file.exists() else np.empty(0)
        signed, own = (spilled, np.ones(len(spilled))) if cells.rows is None else spilled.reshape(-1, 2).T
        score = np.concatenate([ties[:, 2], np.abs(signed)])
        size = np.concatenate([ties[:, 0], own])
        misses = np.concatenate([ties[:, 1], own * np.signbit(signed)])
        distinct, place = np.unique(-score, return_inverse=True)
        if len(distinct):
            yield np.stack([-distinct, np.bincount(place, size), np.bincount(place, misses)])


def _order(cells: Cells, blocks: Iterable[Floats]) -> Order:
    n, n_wrong = cells.n, float(cells.table[:, 1].sum())
    needed = 19 * (n - n_wrong) / 20 - ROUNDING
    ks = [ceil(share / 100 * n - 1e-9) for share in SHARES]
    sums, excess, at_95, wrong_at = np.zeros(8), 0.0, 0.0, {}
    kept_before = wrong_before = 0.0
    for score, size, misses in blocks:
        kept, wrong = kept_before + from_zero(size), wrong_before + from_zero(misses)
        sums += areas_of(score, kept, wrong, n, n_wrong)
        excess += tie_excess(Ranking(score, kept, wrong), np.flatnonzero(size != 1))
        right = kept - wrong
        if right[0] < needed <= right[-1]:
            at_95 = float(wrong[right.searchsorted(needed)])
        for k in ks:
            if kept[0] < k <= kept[-1]:
                i = int(kept.searchsorted(k))
                wrong_at[k] = float(wrong[i - 1] + (k - kept[i - 1]) * misses[i - 1] / size[i - 1])
        kept_before, wrong_before = float(kept[-1]), float(wrong[-1])
    return Order(Areas(*sums.tolist()), excess, at_95, wrong_at)
