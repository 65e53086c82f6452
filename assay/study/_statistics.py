"""What several seeds together say: means and their errors, tests against a baseline, effect sizes, ranks."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan, sqrt

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Summary:
    """Values of one cell, one a seed."""

    values: tuple[float, ...]

    @property
    def n(self) -> int:
        return len(self.values)

    @property
    def mean(self) -> float:
        return float(np.mean(self.values))

    @property
    def sd(self) -> float:
        """Standard deviation with n - 1; nan of a single value."""
        return float(np.std(self.values, ddof=1)) if self.n > 1 else nan

    @property
    def sem(self) -> float:
        """Standard error of the mean."""
        return self.sd / sqrt(self.n)


def welch(a: Summary, b: Summary) -> float:
    """p of equal means without equal variances, two-sided; nan where one has a single value."""
    from scipy.stats import t

    if min(a.n, b.n) < 2:
        return nan
    parts = np.array([a.sd**2 / a.n, b.sd**2 / b.n])
    total = parts.sum()
    if total == 0:
        return 1.0 if a.mean == b.mean else 0.0
    degrees = total**2 / (parts**2 / np.array([a.n - 1, b.n - 1])).sum()
    return float(2 * t.sf(abs(a.mean - b.mean) / sqrt(total), degrees))


def paired(a: Summary, b: Summary) -> float:
    """p of equal means of values that belong together, as those of one seed, two-sided."""
    from scipy.stats import t

    if a.n != b.n:
        raise ValueError(f"{a.n} values cannot be paired with {b.n}")
    if a.n < 2:
        return nan
    differences = Summary(tuple(x - y for x, y in zip(a.values, b.values, strict=True)))
    if differences.sd == 0:
        return 1.0 if differences.mean == 0 else 0.0
    return float(2 * t.sf(abs(differences.mean) / differences.sem, a.n - 1))


def cohens_d(a: Summary, b: Summary) -> float:
    """The difference of the means in units of the pooled standard deviation (seed 003, fig 1)."""
    pooled = sqrt(((a.n - 1) * a.sd**2 + (b.n - 1) * b.sd**2) / (a.n + b.n - 2))
    return (a.mean - b.mean) / pooled if pooled else nan


def within_sem(values: Floats) -> float:
    """SEM over rows [seeds, conditions] without what conditions differ by (Masson & Loftus 2003; seed 003, fig 2).

    The error is that of the interaction of seed and condition, which is what a comparison of conditions is up against.
    """
    seeds, conditions = values.shape
    residual = values - values.mean(0) - values.mean(1, keepdims=True) + values.mean()
    return sqrt(float((residual**2).sum()) / ((seeds - 1) * (conditions - 1)) / seeds)


def ranks(means: Floats, *, higher_is_better: bool) -> Floats:
    """Rank of each method, 1 the best, ties sharing their mean rank."""
    from scipy.stats import rankdata

    found: Floats = rankdata(-means if higher_is_better else means)
    return found
