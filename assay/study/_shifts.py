"""Shifts in large numbers: patterns that match many, and the mean over all of a kind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from fnmatch import fnmatch

from assay._core.arrays import InputError
from assay.nn.names import CORRUPTIONS, SEVERITIES

MADE = "corrupted"  # the mean over corruptions made here; the mean over those read has the name of their data set
SETS = ("", "cifar10_c/", "cifar100_c/")
NAMES = [f"{place}{name}_{severity}" for place in SETS for name in CORRUPTIONS for severity in SEVERITIES]

Row = tuple[str, str, int, str, str, float]  # split, calibrator, held-out samples, score, metric, value


def corruptions_like(pattern: str) -> list[str]:
    """The corruptions that match a pattern; a plain name stays as it is.

    >>> corruptions_like("fog_[13]")
    ['fog_1', 'fog_3']
    """
    if not any(sign in pattern for sign in "*?["):
        return [pattern]
    found = [name for name in NAMES if fnmatch(name, pattern) and name.count("/") == pattern.count("/")]
    if not found:
        raise InputError(f"no corruption fits '{pattern}'; there are {', '.join(NAMES[:3])}, ..., cifar10_c/{NAMES[0]}")
    return found


def with_means(rows: Iterable[Row]) -> list[Row]:
    """The rows, and the mean over the shifts of each kind that has several, as zhu2022 tabulates CIFAR-10-C."""
    rows = list(rows)
    kinds: dict[tuple[str, str, int, str, str], list[float]] = defaultdict(list)
    for split, *rest, value in rows:
        if kind := _kind(split):
            kinds[kind, *rest].append(value)  # type: ignore[index]
    return rows + [(*key, sum(values) / len(values)) for key, values in kinds.items() if len(values) > 1]


def _kind(split: str) -> str:
    place, _, name = split.rpartition("/")
    return (place or MADE) if name.rpartition("_")[0] in CORRUPTIONS else ""
