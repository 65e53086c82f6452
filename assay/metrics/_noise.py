"""Increasing the reliability of reliability diagrams (Bröcker & Smith, 2007): consistency resampling.

What would a perfectly calibrated model show with these confidences and this many samples? Not zero: noise fills the
bins. That is the noise floor under every binned error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from assay.metrics._bins import equal_width, mass_bin
from assay.metrics._ranking import Ranking
from assay.predictions import Outcomes

FINE = 512  # runs of neighboring confidences that are drawn together; up to as many samples nothing is approximated


@dataclass(frozen=True, eq=False)
class NoiseFloor:
    """The error that calibrated answers show, as a sample of draws, ascending."""

    draws: NDArray[np.float64]

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


def noise_floors(outcomes: Outcomes, r: Ranking, *, n_bins: int = 15, draws: int = 1000, seed: int = 0) -> NoiseFloors:
    """Draw each answer right with the chance its confidence states, and bin the result, `draws` times."""
    width = torch.bucketize(r.score, equal_width(outcomes, n_bins).upper[:-1])
    mass = mass_bin(r, n_bins)
    fine = ((r.n - r.kept[1:]) * FINE / r.n).long()
    _, run = torch.unique_consecutive((width * n_bins + mass) * FINE + fine, return_inverse=True)
    ends = torch.cat([run.diff().nonzero().squeeze(1) + 1, run.new_tensor([len(run)])])
    count, claimed = (x[ends].diff(prepend=x.new_zeros(1)).cpu().numpy() for x in (r.kept, r.claimed))
    chance = (claimed / count).clip(0, 1)
    hits = np.random.default_rng(seed).binomial(count.astype(np.int64), chance, (draws, len(count)))
    excess = claimed - hits  # [draws, runs]

    def binned(index: Tensor) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        member = np.eye(n_bins)[index[ends - 1].cpu().numpy()]
        return excess @ member, count @ member

    by_width, by_mass = binned(width), binned(mass)
    squares = (by_mass[0] ** 2 / np.maximum(by_mass[1], 1)).sum(1)
    return NoiseFloors(
        ece=_floor(np.abs(by_width[0]).sum(1) / r.n),
        ada_ece=_floor(np.abs(by_mass[0]).sum(1) / r.n),
        ece_l2_mass=_floor(np.sqrt(squares / r.n)),
    )


def _floor(draws: NDArray[np.float64]) -> NoiseFloor:
    return NoiseFloor(np.sort(draws))
