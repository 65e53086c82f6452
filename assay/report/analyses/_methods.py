"""Methods compared: on two axes, one by one, and by effect size (karandikar2021, figs 1 and 10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, sqrt
from statistics import NormalDist

import numpy as np
import pyarrow as pa

from assay.nn.names import PRIMARIES, SECONDARIES
from assay.report.analyses._rows import by_seed, higher_is_better, only, where
from assay.report.statistics import Effect, MethodPoint
from assay.study import UNCHANGED, USUAL_SCORE, SeedSummary, cohens_d

Z = NormalDist().inv_cdf(0.975)
UNCERTAINTY = "mean_entropy"
COMPOSITES = {
    prefix + secondary: (secondary, prefix.removesuffix("_") or "cross_entropy")
    for prefix in PRIMARIES
    for secondary in SECONDARIES
}


@dataclass(frozen=True)
class Uncertainty:
    """Average entropy and calibration error of a method, one value a seed."""

    name: str
    entropy: tuple[float, ...]
    calibration: tuple[float, ...]


def by_method(rows: pa.Table) -> dict[str, SeedSummary]:
    """The metric of the rows by method, one value a seed (zhu2022, figs 6 and 10)."""
    only(rows, "metric")
    return {method: _summary(seeds) for (method,), seeds in by_seed(rows, ["method"]).items()}


def by_variant(rows: pa.Table) -> dict[str, SeedSummary]:
    """The same by method, calibrator and score, as in `fmfp`, `fmfp + temperature` or `fmfp by trust_score`."""
    only(rows, "metric")
    return {name: _summary(seeds) for (name,), seeds in by_seed(with_variants(rows), ["variant"]).items()}


def with_variants(rows: pa.Table) -> pa.Table:
    """The rows with one more column, `variant`: the name of method, calibrator and score together."""
    columns = (rows[name].to_pylist() for name in ("method", "calibrator", "score"))
    return rows.append_column("variant", pa.array([_variant(*key) for key in zip(*columns, strict=True)], pa.string()))


def _variant(method: str, calibrator: str, score: str) -> str:
    with_calibrator = method if calibrator == UNCHANGED else f"{method} + {calibrator}"
    return with_calibrator if score == USUAL_SCORE else f"{with_calibrator} by {score}"


def both_axes(rows: pa.Table, *, calibration: str = "ece", refinement: str = "auroc") -> list[MethodPoint]:
    """Calibration and refinement of every method."""
    return [MethodPoint(name, x, y) for name, (x, y) in _paired(rows, calibration, refinement).items()]


def uncertainties(rows: pa.Table, *, calibration: str = "ece") -> list[Uncertainty]:
    """Calibration error against average uncertainty (karandikar2021, fig 10)."""
    return [Uncertainty(name, x, y) for name, (x, y) in _paired(rows, UNCERTAINTY, calibration).items()]


def secondary_and_primary(recipe: str) -> tuple[str, str] | None:
    """The secondary loss of a recipe and the recipe without it; None if it has none.

    >>> secondary_and_primary("focal_sb_ece")
    ('sb_ece', 'focal')
    """
    return COMPOSITES.get(recipe)


def effects(rows: pa.Table, against: Mapping[str, str]) -> list[Effect]:
    """Cohen's d of each method against another in the metric of the rows, positive if the method is better.

    Methods that are not `comparable` are left out. The 95 % interval has the large-sample variance
    1 / n + 1 / m + d² / 2 (n + m - 2); for normal values and at least three seeds it covers 94 to 97 times in 100.
    """
    values, sign = by_method(rows), _sign(only(rows, "metric"))
    compared = []
    for method, other in against.items():
        if {method, other} <= set(values) and comparable(values[method], values[other]):
            a, b = values[method], values[other]
            size, half = sign * cohens_d(a, b), Z * sqrt(_variance(a, b))
            compared.append(Effect(method, size, size - half, size + half))
    return compared


def comparable(a: SeedSummary, b: SeedSummary) -> bool:
    """Whether Cohen's d of two is defined: each has several seeds, and their values differ."""
    return min(a.n, b.n) > 1 and isfinite(cohens_d(a, b))


def pooled_effect(name: str, pairs: Sequence[tuple[SeedSummary, SeedSummary]], *, metric: str) -> Effect:
    """The mean effect over independent comparisons, such as data sets and primary losses (karandikar2021, fig 1).

    Each d is corrected for its bias (Hedges 1981), which a mean does not reduce; variances are those of `effects`.
    """
    sizes = [_sign(metric) * cohens_d(a, b) * (1 - 3 / (4 * (a.n + b.n - 2) - 1)) for a, b in pairs]
    size, half = float(np.mean(sizes)), Z * sqrt(sum(_variance(a, b) for a, b in pairs)) / len(pairs)
    return Effect(name, size, size - half, size + half)


def _sign(metric: str) -> int:
    return 1 if higher_is_better(metric) else -1


def _variance(a: SeedSummary, b: SeedSummary) -> float:
    return 1 / a.n + 1 / b.n + cohens_d(a, b) ** 2 / (2 * (a.n + b.n - 2))


def _paired(rows: pa.Table, x: str, y: str) -> dict[str, tuple[tuple[float, ...], tuple[float, ...]]]:
    """Two metrics of each method, over the seeds that have both."""
    of_x, of_y = (by_seed(where(rows, {"metric": metric}), ["method"]) for metric in (x, y))
    found = {}
    for key in (key for key in of_x if key in of_y):
        seeds = sorted(set(of_x[key]) & set(of_y[key]))
        if seeds:
            found[str(key[0])] = tuple(of_x[key][s] for s in seeds), tuple(of_y[key][s] for s in seeds)
    return found


def _summary(seeds: dict[int, float]) -> SeedSummary:
    return SeedSummary(tuple(seeds[seed] for seed in sorted(seeds)))
