"""Mitigating bias in calibration error estimation (Roelofs, Cain, Shlens & Mozer, AISTATS 2022): the mean sweep."""

import torch
from torch import Tensor

from assay.metrics._bins import ece, equal_mass
from assay.metrics._ranking import Ranking


def sweep_ece(r: Ranking, *, norm: float = 1) -> float:
    """ECE with as many equal-mass bins as keep the accuracy from falling anywhere."""
    return ece(equal_mass(r, sweep_bins(r)), norm=norm)


def sweep_bins(r: Ranking) -> int:
    """Largest b such that 2, 3, ..., b equal-mass bins all have non-decreasing accuracies; 1 if two bins do not."""
    tried = 1
    while tried < r.n:
        # Whole runs of bin numbers at once: at few samples each number alone is all overhead.
        numbers = torch.arange(tried + 1, min(2 * tried + 15, r.n) + 1, device=r.kept.device)
        monotone = _monotone(r, numbers)
        if not monotone.all():
            return tried + int(monotone.int().argmin())
        tried = int(numbers[-1])
    return tried


def _monotone(r: Ranking, numbers: Tensor) -> Tensor:
    """For each number of bins: do their accuracies, empty bins aside, never fall?"""
    owner = torch.arange(len(numbers), device=numbers.device).repeat_interleave(numbers + 1)
    b = numbers[owner]
    first = (numbers + 1).cumsum(0) - numbers - 1
    j = torch.arange(len(owner), device=numbers.device) - first[owner]
    start = torch.searchsorted(r.kept[1:], ((b - j) * r.n // b).double(), right=True)
    count, right = -r.kept[start].diff(), -r.right[start].diff()
    filled = (count > 0) & (owner[1:] == owner[:-1])
    accuracy, owner = right[filled] / count[filled], owner[1:][filled]
    falls = (accuracy.diff() < 0) & (owner.diff() == 0)
    return torch.bincount(owner[1:][falls], minlength=len(numbers)) == 0
