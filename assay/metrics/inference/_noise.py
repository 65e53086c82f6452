"""Increasing the reliability of reliability diagrams (Bröcker & Smith, 2007): consistency resampling.

What would a perfectly calibrated model show with these confidences and this many samples? Not zero: noise fills the
bins. That is the noise floor under every binned error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from assay._core.arrays import Floats
from assay.metrics._bins import edges, mass_bin, tally
from assay.metrics._ranking import Ranking
from assay.metrics.inference._design import Design

FINE = 512  # runs of neighboring confidences that are drawn together; up to as many samples nothing is approximated

DOUBT = 4.0  # errors in a bin; of so many, half of the noise that they lack is taken for luck


@dataclass(frozen=True, eq=False)
class NoiseFloor:
    """The error that calibrated answers show, as a sample of draws, ascending."""

    draws: Floats

    @property
    def mean(self) -> float:
        return float(self.draws.mean())

    def quantile(self, q: float) -> float:
        return float(np.quantile(self.draws, q))

    def p_value(self, seen: float) -> float:
        """Chance that a calibrated model shows an error as large as the one seen."""
        as_large = len(self.draws) - np.searchsorted(self.draws, seen * (1 - 1e-12))
        return float((1 + as_large) / (1 + len(self.draws)))


@dataclass(frozen=True)
class NoiseFloors:
    """Noise floors of the binned errors, all from the same draws."""

    ece: NoiseFloor
    ada_ece: NoiseFloor
    ece_l2_mass: NoiseFloor


def noise_floors(r: Ranking, *, n_bins: int = 15, draws: int = 1000, seed: int = 0) -> NoiseFloors:
    """Draw each answer right with the chance its confidence states, and bin the result, `draws` times."""
    width = np.searchsorted(edges(n_bins)[1:-1], r.score)
    mass = mass_bin(r, n_bins)
    fine = ((r.n - r.kept[1:]) * FINE // r.n).astype(np.int64)
    last = np.append(np.flatnonzero(np.diff((width * n_bins + mass) * FINE + fine)), len(r.score) - 1)  # of each run
    count, claimed = (np.diff(x[last + 1], prepend=0) for x in (r.kept, r.claimed))
    chance = (claimed / count).clip(0, 1)
    hits = np.random.default_rng(seed).binomial(count.astype(np.int64), chance, (draws, len(count)))
    excess = claimed - hits  # [draws, runs]

    def binned(index: NDArray[np.int64]) -> tuple[Floats, Floats]:
        member = np.eye(n_bins)[index[last]]
        return excess @ member, count @ member

    by_width, by_mass = binned(width), binned(mass)
    squares = (by_mass[0] ** 2 / np.maximum(by_mass[1], 1)).sum(1)
    return NoiseFloors(
        ece=_floor(np.abs(by_width[0]).sum(1) / r.n),
        ada_ece=_floor(np.abs(by_mass[0]).sum(1) / r.n),
        ece_l2_mass=_floor(np.sqrt(squares / r.n)),
    )


def design_floors(r: Ranking, design: Design, *, n_bins: int = 15, draws: int = 1000, seed: int = 0) -> NoiseFloors:
    """The same of weighted or clustered samples: normal draws with the covariance that clusters give the bins.

    What is drawn are the sums of each cluster with random signs and sizes, so whatever dependence they have stays. The
    gaps of a calibrated model are 0, so nothing is taken away from the sums. A bin with few errors, or few right
    answers, may have more noise than it shows: what the stated chances give samples of such weights and clusters.
    """
    rng, n = np.random.default_rng(seed), design.n
    spread = rng.chisquare(design.degrees, (draws, 1)) / design.degrees
    scale = np.sqrt(design.units / max(design.units - 1, 1) / spread)  # of Student's law
    c, excess = design.rows.confidence, design.rows.confidence - design.rows.correct
    place, effect = np.searchsorted(-r.score, -c), design.effect(excess)

    def drawn(index: NDArray[np.int64]) -> tuple[Floats, Floats]:
        count = tally(index, design.weight, n_bins)
        covariance = _covariance(design, index, excess, n_bins)
        stated = tally(index, design.squares * c * (1 - c), n_bins) * effect
        lacking = np.maximum(stated - np.diag(covariance), 0)
        covariance[np.diag_indices(n_bins)] += lacking * DOUBT / (DOUBT + _rarer(design, index, n_bins))
        values, vectors = np.linalg.eigh(covariance)
        root = vectors * np.sqrt(np.maximum(values, 0))
        return scale * rng.normal(size=(draws, n_bins)) @ root.T, count

    by_width = drawn(np.searchsorted(edges(n_bins)[1:-1], r.score)[place])[0]
    by_mass, count = drawn(mass_bin(r, n_bins)[place])
    squares = (by_mass**2 / np.where(count > 0, count, 1)).sum(1)
    return NoiseFloors(
        ece=_floor(np.abs(by_width).sum(1) / n),
        ada_ece=_floor(np.abs(by_mass).sum(1) / n),
        ece_l2_mass=_floor(np.sqrt(squares / n)),
    )


def _covariance(design: Design, index: NDArray[np.int64], residual: Floats, n_bins: int) -> Floats:
    """Of the weighted sums of a residual in each bin, [b, b]."""
    if design.cluster is None:
        return np.diag(tally(index, design.squares * residual**2, n_bins))
    place = design.cluster * n_bins + index
    sums = tally(place, design.weight * residual, design.n_clusters * n_bins).reshape(-1, n_bins)
    return np.asarray(sums.T @ sums)


def _rarer(design: Design, index: NDArray[np.int64], n_bins: int) -> Floats:
    """As many errors, or right answers if fewer, of equal weight as those of each bin tell (Kish)."""
    kinds = [mask.astype(np.float64) for mask in (design.rows.correct, ~design.rows.correct)]
    sums = [[tally(index, by * mask, n_bins) for by in (design.weight, design.squares)] for mask in kinds]
    return np.minimum(*(weight**2 / np.where(squares > 0, squares, 1) for weight, squares in sums))


def _floor(draws: Floats) -> NoiseFloor:
    return NoiseFloor(np.sort(draws))
