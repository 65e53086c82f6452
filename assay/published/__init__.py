"""The papers' result tables as data, in natural units and under our names, to compare with your own.

There is one csv file a table: `zhu2022_table2.csv` is table 2 of zhu2022. `SOURCES` says what each table shows, how the
paper prints it and where the paper contradicts itself; an error in one figure is in that figure's note. Figures are
never corrected. A setting other than our default is in brackets after the name: `focal(gamma=5)`.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from importlib.resources.abc import Traversable
from math import isfinite

from assay._core.arrays import InputError
from assay._core.variants import Variant, parse_variant
from assay.published._sources import SOURCES, PublishedTable

COLUMNS = ("data", "network", "method", "calibrator", "score", "shift", "metric", "mean", "sd", "note")
NAMES = COLUMNS[:7]


@dataclass(frozen=True)
class Figure:
    """One printed number: the mean over runs and, if printed, their standard deviation."""

    paper: str
    table: str
    data: str
    network: str
    method: str
    calibrator: str  # or "none"
    score: str
    shift: str  # "none" for the test set itself; cifar10_c is the mean over all corruptions and severities
    metric: str  # a key of METRICS, or the temperature of the calibrator
    mean: float
    sd: float | None
    note: str

    @cached_property
    def variants(self) -> tuple[Variant, Variant]:
        """The method and the calibrator, with their settings as values."""
        return parse_variant(self.method), parse_variant(self.calibrator)


def load(paper: str | None = None) -> tuple[Figure, ...]:
    """The figures of a paper, or of all papers in order.

    >>> [f.mean for f in load("zhu2022") if (f.table, f.method, f.metric) == ("5", "fmfp", "ece")]
    [0.0479, 0.0485]
    """
    papers = list(dict.fromkeys(source.paper for source in SOURCES))
    if paper is not None and paper not in papers:
        raise InputError(f"unknown paper '{paper}'; there are {', '.join(papers)}")
    return tuple(figure for source in SOURCES if paper in (None, source.paper) for figure in _table(source))


def read(file: Traversable, *, paper: str, table: str) -> tuple[Figure, ...]:
    """The figures of a csv file with the columns `COLUMNS`."""
    lines = csv.reader(file.read_text(encoding="utf-8").splitlines())
    header = next(lines, [])
    if tuple(header) != COLUMNS:
        raise InputError(f"{file.name}, row 1: the columns are {','.join(header)}, not {','.join(COLUMNS)}")
    first: dict[tuple[str, ...], int] = {}
    figures = []
    for row, cells in enumerate(lines, start=2):
        where = f"{file.name}, row {row}"
        figures.append(_figure(cells, where, paper, table))
        names = tuple(cells[: len(NAMES)])
        if names in first:
            raise InputError(f"{where}: the same figure as in row {first[names]}")
        first[names] = row
    return tuple(figures)


@cache
def _table(source: PublishedTable) -> tuple[Figure, ...]:
    return read(files("assay.published") / source.file, paper=source.paper, table=source.table)


def _figure(cells: list[str], where: str, paper: str, table: str) -> Figure:
    if len(cells) != len(COLUMNS):
        raise InputError(f"{where}: {len(cells)} cells for {len(COLUMNS)} columns")
    for column, cell in zip(NAMES, cells, strict=False):
        if not cell.strip():
            raise InputError(f"{where}: {column} is empty")
    *names, mean, sd, note = cells
    spread = _number(sd, f"{where}: sd") if sd else None
    if spread is not None and spread < 0:
        raise InputError(f"{where}: sd must be >= 0, got {sd}")
    average = _number(mean, f"{where}: mean")
    return Figure(paper, table, **dict(zip(NAMES, names, strict=True)), mean=average, sd=spread, note=note)


def _number(text: str, what: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise InputError(f"{what} is no number: '{text}'") from None
    if not isfinite(number):
        raise InputError(f"{what} is not finite: '{text}'")
    return number


__all__ = ["COLUMNS", "SOURCES", "Figure", "PublishedTable", "Variant", "load", "parse_variant", "read"]
