"""Increasing the reliability of reliability diagrams (Bröcker & Smith, 2007): consistency resampling.

What would a perfectly calibrated model show with these confidences and this many samples? Not zero: noise fills the
bins. That is the noise floor under every binned error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from assay._core.arrays import Floats
from assay.metrics._bins import edges, mass_bin
from assay.metrics._ranking import Ranking

FINE = 512  # runs of neighboring confidences that are drawn together; up to as many samples nothing is approximated


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


def _floor(draws: Floats) -> NoiseFloor:
    return NoiseFloor(np.sort(draws))
