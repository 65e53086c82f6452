"""What several seeds together say: means and their errors, tests against a baseline, effect sizes, ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import fsum, isnan, nan, sqrt

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Summary:
    """Values of one cell, one a seed."""

    values: tuple[float, ...]
    seeds: tuple[int, ...] | None = None  # whose they are, where values of the same seed belong together
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


def welch(a: Summary, b: Summary) -> float:
    """p of equal means without equal variances, two-sided; nan where one has a single value."""
    if min(a.n, b.n) < 2:
        return nan
    of_a, of_b = a.sem**2, b.sem**2
    total = of_a + of_b
    if total == 0:
        return 1.0 if a.mean == b.mean else 0.0
    return _two_sided((a.mean - b.mean) / sqrt(total), total**2 / (of_a**2 / (a.n - 1) + of_b**2 / (b.n - 1)))


def paired(a: Summary, b: Summary) -> float:
    """p of equal means of values that belong together, those of seeds that both have, two-sided."""
    of_b = dict(zip(b.seeds or range(b.n), b.values, strict=True))
    pairs = [(x, of_b[seed]) for seed, x in zip(a.seeds or range(a.n), a.values, strict=True) if seed in of_b]
    if len(pairs) < 2:
        return nan
    differences = Summary(tuple(x - y for x, y in pairs))
    if differences.sd == 0:
        return 1.0 if differences.mean == 0 else 0.0
    return _two_sided(differences.mean / differences.sem, differences.n - 1)


def _two_sided(t: float, degrees: float) -> float:
    from scipy.special import stdtr

    return float(2 * stdtr(degrees, -abs(t)))


def holm(p: Sequence[float]) -> list[float]:
    """p-values of a family of tests, so corrected that one false alarm among all is as rare as the level (Holm 1979).

    What could not be tested (nan) does not count.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = sorted((i for i in range(len(p)) if not isnan(p[i])), key=lambda i: p[i])
    corrected, highest = list(p), 0.0
    for rank, i in enumerate(order):
        highest = max(highest, min((len(order) - rank) * p[i], 1.0))
        corrected[i] = highest
    return corrected


def cohens_d(a: Summary, b: Summary) -> float:
    """The difference of the means in units of the pooled standard deviation (karandikar2021, fig 1); nan without
    one."""
    if a.n + b.n < 3:
        return nan
    pooled = sqrt(((a.n - 1) * a.sd**2 + (b.n - 1) * b.sd**2) / (a.n + b.n - 2))
    return (a.mean - b.mean) / pooled if pooled else nan


def within_sem(values: Floats) -> float:
    """SEM over rows [seeds, conditions] without what conditions differ by (Masson & Loftus 2003; karandikar2021, fig
    2).

    The error is that of the interaction of seed and condition, which is what a comparison of conditions is up against.
    """
    seeds, conditions = values.shape
    residual = values - values.mean(0) - values.mean(1, keepdims=True) + values.mean()
    return sqrt(float((residual**2).sum()) / ((seeds - 1) * (conditions - 1)) / seeds)


def ranks(means: Floats, *, higher_is_better: bool) -> Floats:
    """Rank of each method, 1 the best, ties sharing their mean rank; nan of what is undefined, which does not count."""
    from scipy.stats import rankdata

    found: Floats = rankdata(-means if higher_is_better else means, nan_policy="omit")
    return found
