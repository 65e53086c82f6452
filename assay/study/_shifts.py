"""Shifts in large numbers: patterns that match many, and the mean over all of a kind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from fnmatch import fnmatch

from assay._core.arrays import InputError
from assay._core.variants import Variant
from assay.nn.names import CORRUPTIONS, SEVERITIES

MADE = "corrupted"  # the mean over corruptions made here; the mean over those read has the name of their data set
SETS = ("", "cifar10_c/", "cifar100_c/", "imagenet_c/")
CORRUPTED = [f"{place}{name}_{severity}" for place in SETS for name in CORRUPTIONS for severity in SEVERITIES]

Measured = tuple[str, Variant, int, Variant, str, float]  # split, calibrator, held-out samples, score, metric, value


def corruptions_like(pattern: str) -> list[str]:
    """The corruptions that match a pattern; a plain name stays as it is.

    >>> corruptions_like("fog_[13]")
    ['fog_1', 'fog_3']
    """
    if not any(sign in pattern for sign in "*?["):
        return [pattern]
    fitting = [name for name in CORRUPTED if fnmatch(name, pattern) and name.count("/") == pattern.count("/")]
    if not fitting:
        raise InputError(
            f"no corruption fits '{pattern}'; there are {', '.join(CORRUPTED[:3])}, ..., cifar10_c/{CORRUPTED[0]}"
        )
    return fitting


def corruption_and_severity(split: str) -> tuple[str | None, int | None]:
    """Kind and severity of fog_3 or cifar10_c/fog_3; test has no kind and severity 0, other shifts have neither.

    A kind that is read from a data set keeps the data set's name, as it differs from the same kind made here.

    >>> corruption_and_severity("cifar10_c/fog_3"), corruption_and_severity("cifar10_1")
    (('cifar10_c/fog', 3), (None, None))
    """
    if split == "test":
        return None, 0
    kind, _, severity = split.rpartition("_")
    read = split.rpartition("/")[0].endswith("_c")
    return (kind, int(severity)) if kind in CORRUPTIONS or read else (None, None)


def with_means(rows: Iterable[Measured]) -> list[Measured]:
    """The rows, and the mean over the shifts of each kind that has several, as zhu2022 tabulates CIFAR-10-C."""
    rows = list(rows)
    kinds: dict[tuple[str, Variant, int, Variant, str], list[float]] = defaultdict(list)
    for split, *rest, value in rows:
        if kind := _kind(split):
            kinds[kind, *rest].append(value)  # type: ignore[index]
    return rows + [(*key, sum(values) / len(values)) for key, values in kinds.items() if len(values) > 1]


def _kind(split: str) -> str:
    place, _, name = split.rpartition("/")
    return (place or MADE) if name.rpartition("_")[0] in CORRUPTIONS else ""
