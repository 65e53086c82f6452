"""Statistics over seeds: means and their errors, tests against a baseline, effect sizes, ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import fsum, isnan, nan, sqrt

import numpy as np

from assay._core.arrays import Floats
from assay.metrics.inference import holm


@dataclass(frozen=True)
class SeedSummary:
    """The values of one cell, one a seed."""

    values: tuple[float, ...]
    seeds: tuple[int, ...] | None = None  # of the values, to pair them with others
    n: int = field(init=False)
    mean: float = field(init=False)
    sd: float = field(init=False)  # with n - 1; nan of a single value

    def __post_init__(self) -> None:
        n = len(self.values)
        mean = fsum(self.values) / n
        sd = sqrt(fsum([(value - mean) ** 2 for value in self.values]) / (n - 1)) if n > 1 else nan
        for name, value in (("n", n), ("mean", mean), ("sd", sd)):
            object.__setattr__(self, name, value)

    @property
    def sem(self) -> float:
        """Standard error of the mean."""
        return self.sd / sqrt(self.n)


def welch(a: SeedSummary, b: SeedSummary) -> float:
    """Two-sided p-value of Welch's test that the means are equal; nan if one has a single value."""
    if min(a.n, b.n) < 2:
        return nan
    of_a, of_b = a.sem**2, b.sem**2
    total = of_a + of_b
    if total == 0:
        return 1.0 if a.mean == b.mean else 0.0
    return _two_sided((a.mean - b.mean) / sqrt(total), total**2 / (of_a**2 / (a.n - 1) + of_b**2 / (b.n - 1)))


def paired(a: SeedSummary, b: SeedSummary) -> float:
    """Two-sided p-value of the paired t-test that the means are equal, over the seeds that both have."""
    of_b = dict(zip(b.seeds or range(b.n), b.values, strict=True))
    pairs = [(x, of_b[seed]) for seed, x in zip(a.seeds or range(a.n), a.values, strict=True) if seed in of_b]
    if len(pairs) < 2:
        return nan
    differences = SeedSummary(tuple(x - y for x, y in pairs))
    if differences.sd == 0:
        return 1.0 if differences.mean == 0 else 0.0
    return _two_sided(differences.mean / differences.sem, differences.n - 1)


def _two_sided(t: float, degrees: float) -> float:
    from scipy.special import stdtr

    return float(2 * stdtr(degrees, -abs(t)))


def holm_corrected(p: Sequence[float]) -> list[float]:
    """P-values corrected for their number (Holm 1979); tests without a p-value (nan) do not count.

    >>> holm_corrected([0.01, 0.04, nan, 0.03])
    [0.03, 0.06, nan, 0.06]
    """
    known = [i for i, each in enumerate(p) if not isnan(each)]
    corrected = list(p)
    for i, value in zip(known, holm([p[i] for i in known]), strict=True):
        corrected[i] = value
    return corrected


def cohens_d(a: SeedSummary, b: SeedSummary) -> float:
    """The difference of the means in pooled standard deviations (karandikar2021, fig 1); nan if there is none."""
    if a.n + b.n < 3:
        return nan
    pooled = sqrt(((a.n - 1) * a.sd**2 + (b.n - 1) * b.sd**2) / (a.n + b.n - 2))
    return (a.mean - b.mean) / pooled if pooled else nan


def within_sem(values: Floats) -> float:
    """SEM of rows [seeds, conditions] within seeds (Masson & Loftus 2003; karandikar2021, fig 2).

    This is the error of the interaction of seed and condition, the noise in a comparison of conditions.
    """
    seeds, conditions = values.shape
    residual = values - values.mean(0) - values.mean(1, keepdims=True) + values.mean()
    return sqrt(float((residual**2).sum()) / ((seeds - 1) * (conditions - 1)) / seeds)


def ranks(means: Floats, *, higher_is_better: bool) -> Floats:
    """Rank of each method, 1 is the best; ties share their mean rank, undefined values have rank nan."""
    rank, known = np.full(len(means), nan), ~np.isnan(means)
    sign = -1 if higher_is_better else 1
    _, place, count = np.unique(sign * means[known], return_inverse=True, return_counts=True)
    rank[known] = (np.cumsum(count) - (count - 1) / 2)[place]
    return rank
