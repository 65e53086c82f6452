"""Two models in many files each: counted, and paired file by file where both have the same files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from operator import add
from pathlib import Path

from assay import files
from assay._core.arrays import InputError
from assay.cli.counting import counted
from assay.cli.output import show, working
from assay.comparing import Comparison, compare
from assay.files import Columns
from assay.predictions import Outcomes, Predictions
from assay.scale import Joint, Tally, shards, tally_files

Rows = Predictions | Outcomes
BY_HAND = "In Python, compare(a, b, joint=...) takes the sum of assay.scale.Joint.of over chunks of the same rows."


def compare_files(
    models: Mapping[str, Path], columns: Columns, margin: float | None
) -> tuple[dict[str, Tally], Comparison]:
    """The tallies of both models, and how the second compares with the first."""
    if len(models) != 2:
        raise InputError("of folders and patterns two are compared, one for each model")
    tallies = {name: _tally(name, source, columns) for name, source in models.items()}
    (a, b), (first, second) = tallies.values(), models.values()
    alike = len(a) == len(b) and not (a.weighted or b.weighted)
    joint = _joint(first, second, columns) if alike else None
    return tallies, compare(a, b, margin=margin, joint=joint)


def _tally(name: str, source: Path, columns: Columns) -> Tally:
    with counted(name) as watch:
        return tally_files(source, columns, watch=watch)


def _joint(first: Path, second: Path, columns: Columns) -> Joint | None:
    """What both have in common, or None and the reason why that cannot be told."""
    try:
        with working("pairing the rows"):
            return reduce(add, (Joint.of(a, b) for a, b in _in_pairs(first, second, columns)))
    except InputError as problem:
        show(f"Rows are not paired file by file: {problem}. {BY_HAND}", "dim")
        return None


def _in_pairs(first: Path, second: Path, columns: Columns) -> Iterator[tuple[Rows, Rows]]:
    """The rows of both, a file of each at a time, in order of their names."""
    a, b = shards(first), shards(second)
    if len(a) != len(b):
        raise InputError(f"{first} is {len(a)} files, {second} is {len(b)}")
    for x, y in zip(a, b, strict=True):
        if isinstance(x, str) or isinstance(y, str):
            raise InputError("files at an address are counted only")
        yield files.read(x, columns), files.read(y, columns)
