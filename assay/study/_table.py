"""A study's rows as tables: methods down, metrics across, each cell the mean over seeds with its test."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isnan
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from assay.metrics import METRICS
from assay.published import Figure
from assay.study._corrections import ON_TEST, UNCHANGED
from assay.study._published import Beside, nothing
from assay.study._statistics import Summary, holm, ranks, welch

POINT = ("data", "network", "split", "n_train", "learning_rate", "weight_decay", "held_out", "score")
ALWAYS = ("data", "network", "split")  # shown even if they do not vary
CELL = ("method", "calibrator", "metric")

Test = Callable[[Summary, Summary], float]
Key = tuple[str, str, str]  # method, calibrator, metric


@dataclass(frozen=True)
class Cell:
    """The values of one metric over seeds, compared with the baseline and a paper."""

    summary: Summary
    p_value: float  # nan for the baseline itself
    word: str  # better, worse, or nothing
    best: bool
    published: Figure | None = None

    @property
    def difference(self) -> float | None:
        """Our mean minus the published one."""
        return None if self.published is None else self.summary.mean - self.published.mean


@dataclass(frozen=True)
class Line:
    """A method with a calibrator."""

    method: str
    calibrator: str
    cells: dict[str, Cell]  # by metric


@dataclass(frozen=True)
class Table:
    """All methods at one point of the other axes."""

    point: dict[str, Any]  # data, network, split, and other axes that vary in the study
    metrics: tuple[str, ...]
    lines: tuple[Line, ...]
    baseline: str
    test: Test = welch
    level: float = 0.05
    corrected: bool = False  # for the number of tests of a metric, by Holm

    @cached_property
    def seeds(self) -> int:
        """The most seeds of a cell."""
        return max((cell.summary.n for line in self.lines for cell in line.cells.values()), default=0)


def tables(
    rows: pa.Table,
    *,
    baseline: str,
    metrics: Sequence[str],
    test: Test = welch,
    level: float = 0.05,
    corrected: bool = False,
    beside: Beside = nothing,
) -> list[Table]:
    """One table for each point of the other axes than method, calibrator and metric.

    A method is compared with the baseline under the same calibrator, and a calibrator of the baseline with none.
    With `corrected` the p-values of each metric in a table are Holm's. `beside` finds published figures.
    """
    points: dict[tuple[Any, ...], dict[Key, Summary]] = {}
    for (*where, method, calibrator, metric), summary in _cells(rows):
        points.setdefault(tuple(where), {})[method, calibrator, metric] = summary
    varies = [i for i, name in enumerate(POINT) if name in ALWAYS or len({point[i] for point in points}) > 1]
    found = []
    for point, cells in points.items():
        full = dict(zip(POINT, point, strict=True))
        compared = _compared(cells, baseline, metrics, test, corrected)
        lines = [
            Line(
                method,
                calibrator,
                {
                    metric: Cell(
                        cells[method, calibrator, metric],
                        p,
                        _word(metric, difference) if p < level else "",
                        best=best,
                        published=beside(full, method, calibrator, metric),
                    )
                    for metric, (p, difference, best) in line.items()
                },
            )
            for (method, calibrator), line in compared.items()
        ]
        known = tuple(metric for metric in metrics if any(metric in line.cells for line in lines))
        at = {POINT[i]: point[i] for i in varies}
        found.append(Table(at, known, tuple(lines), baseline, test, level, corrected))
    return found


def mean_ranks(found: Sequence[Table]) -> dict[tuple[str, str], dict[str, float]]:
    """The mean rank in each metric of each method and calibrator that all tables have; 1 is the best."""
    pairs = [{(line.method, line.calibrator): line for line in table.lines} for table in found]
    common = [pair for pair in pairs[0] if competes(pair[1]) and all(pair in lines for lines in pairs)] if pairs else []
    places: dict[tuple[str, str], dict[str, float]] = {pair: {} for pair in common}
    for metric in found[0].metrics if found else ():
        if better(metric) == "-" or any(metric not in lines[pair].cells for lines in pairs for pair in common):
            continue
        means = [np.array([lines[pair].cells[metric].summary.mean for pair in common]) for lines in pairs]
        mean = np.mean([ranks(row, higher_is_better=better(metric) == "higher") for row in means], axis=0)
        for pair, rank in zip(common, mean.tolist(), strict=True):
            places[pair][metric] = rank
    return places


def competes(calibrator: str) -> bool:
    """Whether a line with that calibrator may be the best; a calibrator fitted on test is only a bound."""
    return calibrator.partition(",")[0] not in ON_TEST


def better(metric: str) -> str:
    """Whether higher or lower is better; - for a temperature, which is no metric."""
    return METRICS[metric].better if metric in METRICS else "-"


def _cells(rows: pa.Table) -> Iterator[tuple[tuple[Any, ...], Summary]]:
    """(the names of a cell, its values over seeds), in the order of first appearance."""
    if rows.num_rows == 0:
        return
    names = (*POINT, *CELL)
    coded = [rows[name].combine_chunks().dictionary_encode(null_encoding="encode") for name in names]
    codes = [column.indices.to_numpy() for column in coded]
    words = [column.dictionary.to_pylist() for column in coded]
    cell, first = _numbered(codes, [len(column) for column in words])
    order = np.lexsort((rows["seed"].to_numpy(), cell))
    values, seeds = (rows[name].to_numpy()[order].tolist() for name in ("value", "seed"))
    ends = np.cumsum(np.bincount(cell)).tolist()
    for number, row in enumerate(first.tolist()):
        part = slice(ends[number - 1] if number else 0, ends[number])
        key = tuple(column[code[row]] for column, code in zip(words, codes, strict=True))
        yield key, Summary(tuple(values[part]), tuple(seeds[part]))


def _numbered(codes: list[NDArray[Any]], sizes: list[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """A number for each combination of codes, in order of appearance: [n] of each row, and the row it appears in."""
    mixed = np.ravel_multi_index([code.astype(np.int64) for code in codes], sizes)
    _, first, cell = np.unique(mixed, return_index=True, return_inverse=True)
    by_appearance = np.argsort(first)
    rank = np.empty_like(by_appearance)
    rank[by_appearance] = np.arange(len(first))
    return rank[cell], first[by_appearance]


def _compared(
    cells: dict[Key, Summary], baseline: str, metrics: Sequence[str], test: Test, corrected: bool
) -> dict[tuple[str, str], dict[str, tuple[float, float, bool]]]:
    """By method and calibrator, then by metric: p-value against the baseline, difference, and whether it is best."""
    pairs = list(dict.fromkeys((method, calibrator) for method, calibrator, _ in cells))
    calibrators = [calibrator for _, calibrator in pairs]
    unchanged = UNCHANGED if UNCHANGED in calibrators else calibrators[0]
    found: dict[tuple[str, str], dict[str, tuple[float, float, bool]]] = {pair: {} for pair in pairs}
    for metric in metrics:
        here = {pair: cells[*pair, metric] for pair in pairs if (*pair, metric) in cells}
        best = _best(metric, here)
        p, difference = [], []
        for (method, calibrator), summary in here.items():
            against = (baseline, unchanged if method == baseline else calibrator)
            there = None if against == (method, calibrator) else here.get(against)
            p.append(float("nan") if there is None else test(summary, there))
            difference.append(0.0 if there is None else summary.mean - there.mean)
        for pair, *numbers in zip(here, holm(p) if corrected else p, difference, strict=True):
            found[pair][metric] = (numbers[0], numbers[1], pair in best)
    return found


def _best(metric: str, summaries: dict[tuple[str, str], Summary]) -> set[tuple[str, str]]:
    """All with the best mean: there are several if a calibrator does not change the metric."""
    means = {pair: summary.mean for pair, summary in summaries.items() if competes(pair[1])}
    known = {pair: mean for pair, mean in means.items() if not isnan(mean)}
    if better(metric) == "-" or not known:
        return set()
    highest = (max if better(metric) == "higher" else min)(known.values())
    return {pair for pair, mean in known.items() if mean == highest}


def _word(metric: str, difference: float) -> str:
    if better(metric) == "-" or difference == 0:
        return ""
    return "better" if (difference > 0) == (better(metric) == "higher") else "worse"
