"""What metrics of the ranking are on cells whose rows are in an unknown order: expected, and how far off at most."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np

from assay._core.arrays import Floats, Mask
from assay._core.plain import Areas, from_zero
from assay.metrics import ROUNDING, Order, Ranking
from assay.scale._cells import Cells

EXACT = ("accuracy", "nll", "brier", "ece", "mce", "oe", "rmsce", "classwise_ece", "tace", "ece_positive")
SHARES = (80, 90, 95)  # per cent of samples whose risk is a metric


@dataclass(frozen=True, eq=False)
class _Hits:
    """Cells that are not ties and have hits, in the order in which they are accepted, and what lies before each."""

    hits: Floats
    misses: Floats
    before: Floats  # samples
    right: Floats  # hits among them
    unit: Floats  # what a hit counts, on average
    weighted: bool

    @staticmethod
    def of(hits: Floats, misses: Floats, squares: Floats, mixed: Mask, weighted: bool) -> _Hits:
        """`squares` are those of the weights of hits."""
        some = mixed & (hits > 0)
        before, right = (from_zero(x)[:-1][some] for x in (hits + misses, hits))
        h, squares = hits[some], squares[some]
        unit = np.minimum(np.where(squares > 0, squares / h, h), h)
        return _Hits(h, misses[some], before, right, unit, weighted)

    def tied(self) -> Floats:
        """The sum of the precision at each hit, if all samples of a cell had one score."""
        return self.hits * (self.right + self.hits) / (self.before + self.hits + self.misses)

    def expected(self) -> Floats:
        """The same, if all orders of the samples are equally likely.

        Place s of the n of a cell is a hit with chance h / n, and then (s - 1) (h - 1) / (n - 1) hits of the cell are
        expected before it. Weighted samples are taken to count alike, as much as a hit of the cell does on average:
        how much a sample adds to its own precision grows with the square of its weight.
        """
        h, n, before, right = (x / self.unit for x in (self.hits, self.hits + self.misses, self.before, self.right))
        rate = np.divide(h - 1, n - 1, out=np.zeros_like(h), where=n > 1).clip(0, 1)
        rest = right + 1 - rate * (before + 1)
        return self.unit * h / n * (rate * n + rest * _harmonic(before, n))

    def most(self) -> Floats:
        """Hits first, and tied: precision grows from hit to hit, and tied hits share that of the last."""
        return self.hits * (self.right + self.hits) / (self.before + self.hits)

    def least(self) -> Floats:
        """Errors first, then the hits one by one; of weighted hits, in parts as small as can be."""
        start = self.before + self.misses
        small = np.log1p(self.hits / np.where(start > 0, start, np.inf))
        return self.hits + (self.right - start) * (small if self.weighted else _harmonic(start, self.hits))

    def bound(self) -> float:
        return float(np.maximum(self.most() - self.expected(), self.expected() - self.least()).sum())


def _harmonic(start: Floats, n: Floats) -> Floats:
    """1 / (start + 1) + ... + 1 / (start + n)."""
    from scipy.special import digamma

    return np.asarray(digamma(start + n + 1) - digamma(start + 1))


@dataclass(frozen=True, eq=False)
class _Descending:
    """Cells from the most confident down."""

    hits: Floats
    misses: Floats
    squares: Floats  # [2, t] of the weights of hits and of errors
    mixed: Mask
    weighted: bool

    @staticmethod
    def of(cells: Cells) -> _Descending:
        size, misses = cells.table[::-1].T[:2]
        squares, of_errors = cells.squares[:, ::-1]
        mixed, weighted = cells.mixed[::-1], cells.rows is not None
        return _Descending(size - misses, misses, np.stack([squares - of_errors, of_errors]), mixed, weighted)

    def successes(self) -> _Hits:
        return _Hits.of(self.hits, self.misses, self.squares[0], self.mixed, self.weighted)

    def errors(self) -> _Hits:
        squares, mixed = self.squares[1, ::-1], self.mixed[::-1]
        return _Hits.of(self.misses[::-1], self.hits[::-1], squares, mixed, self.weighted)

    def at_95(self) -> tuple[float, float]:
        """Errors that are accepted with 95 % of the right answers: expected, and how far off at most."""
        right, wrong = from_zero(self.hits), from_zero(self.misses)
        needed = 19 * float(right[-1]) / 20 - ROUNDING
        cell = max(int(right.searchsorted(needed)) - 1, 0)
        hits, misses = float(self.hits[cell]), float(self.misses[cell])
        if not self.mixed[cell] or not hits:
            return float(wrong[cell]) + misses, 0.0
        unit = float(self.squares[0, cell]) / hits or hits
        reached = min(ceil((needed - float(right[cell])) / unit) * unit, hits)
        expected = reached * misses / (hits + unit)
        return float(wrong[cell]) + expected, max(expected, misses - expected)

    def risks(self) -> Floats:
        """How far the sum of the risks after each sample, which is n AURC, can be off in each cell that is no tie.

        It grows with every error that comes earlier, so it is largest with all errors of a cell first.
        """
        from scipy.special import digamma

        h, m = self.hits[self.mixed], self.misses[self.mixed]
        before, wrong = (from_zero(x)[:-1][self.mixed] for x in (self.hits + self.misses, self.misses))
        start, hits_end, errors_end, end = (digamma(before + x + 1) for x in (0.0, h, m, h + m))
        best = wrong * (hits_end - start) + m + (wrong - before - h) * (end - hits_end)
        worst = m + (wrong - before) * (errors_end - start) + (wrong + m) * (end - errors_end)
        expected = m + (wrong - m / (h + m) * before) * (end - start)
        return np.asarray(np.maximum(worst - expected, expected - best).clip(0))


def expected_order(cells: Cells, blocks: Ranking) -> Order:
    """Of the ranking by cells: what its metrics are if all orders in a cell are equally likely."""
    down, areas = _Descending.of(cells), blocks.areas
    gained = [float((x.expected() - x.tied()).sum()) for x in (down.successes(), down.errors())]
    found: Areas = areas._replace(
        precision_of_hits=areas.precision_of_hits + gained[0],
        precision_of_misses=areas.precision_of_misses + gained[1],
    )
    return Order(found, None, down.at_95()[0], {})


def bounds(cells: Cells) -> dict[str, float]:
    """By metric, how far its value from these cells, in units of the mean weight, can be from that of the rows."""
    down, n = _Descending.of(cells), float(cells.n)
    n_wrong = float(down.misses.sum())
    pairs = np.where(down.mixed, down.hits * down.misses / 2, 0.0)
    kept = from_zero(down.hits + down.misses)
    kept[-1] = n  # sums of weights round
    aurc = float(down.risks().sum()) / n
    found = dict.fromkeys((*EXACT, "mean_confidence", "mean_entropy"), 0.0)
    found |= {"aurc": aurc, "e_aurc": aurc, "augrc": float(pairs.sum()) / n**2}
    found |= {f"risk_at_{share}": _risk(kept, down, ceil(share / 100 * n - 1e-9)) for share in SHARES}
    if cells.n_wrong < cells.n:
        found["aupr_success"] = down.successes().bound() / (n - n_wrong)
    if cells.n_wrong:
        found["aupr_error"] = down.errors().bound() / n_wrong
    if 0 < cells.n_wrong < cells.n:
        found["auroc"] = float(pairs.sum()) / (n_wrong * (n - n_wrong))
        found["fpr95"] = down.at_95()[1] / n_wrong
    return found


def _risk(kept: Floats, down: _Descending, k: int) -> float:
    cell = int(np.searchsorted(kept, k)) - 1
    if not down.mixed[cell]:
        return 0.0
    j, h, m = k - kept[cell], down.hits[cell], down.misses[cell]
    expected = j * m / (h + m)
    return float(max(min(j, m) - expected, expected - max(0.0, j - h))) / k
