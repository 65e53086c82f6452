"""What metrics of the ranking are on cells whose rows are in an unknown order: expected, and how far off at most."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np

from assay._core.arrays import Floats, Mask
from assay._core.plain import Areas, from_zero
from assay.metrics import Order, Ranking
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

    @staticmethod
    def of(hits: Floats, misses: Floats, mixed: Mask) -> _Hits:
        some = mixed & (hits > 0)
        before, right = (from_zero(x)[:-1][some] for x in (hits + misses, hits))
        return _Hits(hits[some], misses[some], before, right)

    def tied(self) -> Floats:
        """The sum of the precision at each hit, if all samples of a cell had one score."""
        return self.hits * (self.right + self.hits) / (self.before + self.hits + self.misses)

    def expected(self) -> Floats:
        """The same, if all orders of the samples are equally likely.

        Place s of the n of a cell is a hit with chance h / n, and then (s - 1) (h - 1) / (n - 1) hits of the cell are
        expected before it.
        """
        h, n = self.hits, self.hits + self.misses
        rate = (h - 1) / np.maximum(n - 1, 1)
        rest = self.right + 1 - rate * (self.before + 1)
        return h / n * (rate * n + rest * _harmonic(self.before, n))

    def most(self) -> Floats:
        """Hits first, and tied: precision grows from hit to hit, and tied hits share that of the last."""
        return self.hits * (self.right + self.hits) / (self.before + self.hits)

    def least(self) -> Floats:
        """Errors first, then the hits one by one."""
        start = self.before + self.misses
        return self.hits + (self.right - start) * _harmonic(start, self.hits)

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
    mixed: Mask

    @staticmethod
    def of(cells: Cells) -> _Descending:
        size, misses, _ = cells.table[::-1].T
        return _Descending(size - misses, misses, cells.mixed[::-1])

    def successes(self) -> _Hits:
        return _Hits.of(self.hits, self.misses, self.mixed)

    def errors(self) -> _Hits:
        return _Hits.of(self.misses[::-1], self.hits[::-1], self.mixed[::-1])

    def at_95(self) -> tuple[float, float]:
        """Errors that are accepted with 95 % of the right answers: expected, and how far off at most."""
        right, wrong = from_zero(self.hits), from_zero(self.misses)
        needed = -(-19 * int(right[-1]) // 20)
        cell = max(int(right.searchsorted(needed)) - 1, 0)
        misses = float(self.misses[cell])
        if not self.mixed[cell]:
            return float(wrong[cell]) + misses, 0.0
        expected = (needed - float(right[cell])) * misses / (float(self.hits[cell]) + 1)
        return float(wrong[cell]) + expected, max(expected, misses - expected)


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
    """By metric, how far its value from these cells can be from that of the rows."""
    down, n, n_wrong = _Descending.of(cells), float(cells.n), float(cells.n_wrong)
    pairs = np.where(down.mixed, down.hits * down.misses / 2, 0.0)
    kept = from_zero(down.hits + down.misses)
    aurc = float((pairs / (kept[:-1] + 1)).sum()) / n
    found = dict.fromkeys((*EXACT, "mean_confidence", "mean_entropy"), 0.0)
    found |= {"aurc": aurc, "e_aurc": aurc, "augrc": float(pairs.sum()) / n**2}
    found |= {f"risk_at_{share}": _risk(kept, down, ceil(share / 100 * n - 1e-9)) for share in SHARES}
    if n_wrong < n:
        found["aupr_success"] = down.successes().bound() / (n - n_wrong)
    if n_wrong > 0:
        found["aupr_error"] = down.errors().bound() / n_wrong
    if 0 < n_wrong < n:
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
