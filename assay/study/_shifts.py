"""Shifts by the dozen: patterns that stand for many, and the mean over all of a kind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from fnmatch import fnmatch

from assay._core.arrays import InputError
from assay.nn.data.corruptions import CORRUPTIONS, SEVERITIES

MADE = "corrupted"  # the mean over the corruptions that are made here; those read have the name of their data set
SETS = ("", "cifar10_c/", "cifar100_c/")
NAMES = [f"{place}{name}_{severity}" for place in SETS for name in CORRUPTIONS for severity in SEVERITIES]

Values = tuple[str, str, int, str, str, float]  # split, calibrator, held-out samples, score, metric, value


def corruptions_like(pattern: str) -> list[str]:
    """The corruptions that a pattern stands for; a plain name is what it is.

    >>> corruptions_like("fog_[13]")
    ['fog_1', 'fog_3']
    """
    if not any(sign in pattern for sign in "*?["):
        return [pattern]
    found = [name for name in NAMES if fnmatch(name, pattern) and name.count("/") == pattern.count("/")]
    if not found:
        raise InputError(f"no corruption fits '{pattern}'; there are {', '.join(NAMES[:3])}, ..., cifar10_c/{NAMES[0]}")
    return found


def with_means(rows: Iterable[Values]) -> list[Values]:
    """The rows, and for each kind of shift that has several the mean over them, as zhu2022 tabulates CIFAR-10-C."""
    rows = list(rows)
    kinds: dict[tuple[str, str, int, str, str], list[float]] = defaultdict(list)
    for split, *rest, value in rows:
        if kind := _kind(split):
            kinds[kind, *rest].append(value)  # type: ignore[index]
    return rows + [(*key, sum(values) / len(values)) for key, values in kinds.items() if len(values) > 1]


def _kind(split: str) -> str:
    place, _, name = split.rpartition("/")
    return (place or MADE) if name.rpartition("_")[0] in CORRUPTIONS else ""
