"""A study's rows as tables: methods down, metrics across, each cell the mean over seeds with its test."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import isnan, nan
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from assay._core.showing import Library, data_frame, html_table
from assay.metrics import known_metric
from assay.published import Figure
from assay.study._corrections import ON_TEST, UNCHANGED
from assay.study._published import Beside, no_figure
from assay.study._statistics import SeedSummary, holm_corrected, ranks, welch
from assay.study._study import USUAL_SCORE

POINT = ("data", "network", "split", "n_train", "learning_rate", "weight_decay", "held_out")
ALWAYS = ("data", "network", "split")  # shown even if they do not vary
CELL = ("method", "calibrator", "score", "metric")

Test = Callable[[SeedSummary, SeedSummary], float]
Error = Literal["sd", "sem"]  # the standard deviation over seeds, or the standard error of the mean
LineKey = tuple[str, str, str]  # method, calibrator, score
CellKey = tuple[str, str, str, str]  # method, calibrator, score, metric


@dataclass(frozen=True)
class StudyCell:
    """The values of one metric over seeds, compared with the baseline and a paper."""

    summary: SeedSummary
    p_value: float  # nan for the baseline itself
    word: str  # better, worse, or nothing
    best: bool
    error: Error = "sd"
    published: Figure | None = None

    @property
    def difference(self) -> float | None:
        """Our mean minus the published one."""
        return None if self.published is None else self.summary.mean - self.published.mean


@dataclass(frozen=True)
class StudyLine:
    """A method with a calibrator and a score, all by their display names."""

    method: str
    calibrator: str
    cells: dict[str, StudyCell]  # by metric
    competes: bool = True  # whether it may be the best; a calibrator fitted on test is only a bound
    score: str = USUAL_SCORE

    @property
    def confidence(self) -> str:
        """Where the confidence comes from: the calibrator, the score if it is another than usual, or both."""
        parts = [self.calibrator] if self.calibrator != UNCHANGED or self.score == USUAL_SCORE else []
        return " ".join([*parts, *([f"by {self.score}"] if self.score != USUAL_SCORE else [])])

    @property
    def name(self) -> str:
        """The method with its confidence, unless that is the usual one."""
        with_calibrator = self.method if self.calibrator == UNCHANGED else f"{self.method} with {self.calibrator}"
        return with_calibrator if self.score == USUAL_SCORE else f"{with_calibrator} by {self.score}"


@dataclass(frozen=True)
class StudyTable:
    """All methods at one point of the other axes."""

    point: dict[str, Any]  # data, network, split, and other axes that vary in the study
    metrics: tuple[str, ...]
    lines: tuple[StudyLine, ...]
    baseline: str
    test: Test = welch
    level: float = 0.05
    corrected: bool = False  # for the number of tests of a metric, by Holm
    error: Error = "sd"  # what stands behind ±

    @cached_property
    def confidences(self) -> str:
        """The head of the column that says where confidences come from."""
        return "calibrator" if all(line.score == USUAL_SCORE for line in self.lines) else "calibrator or score"

    @cached_property
    def seeds(self) -> int:
        """The most seeds of a cell."""
        return max((cell.summary.n for line in self.lines for cell in line.cells.values()), default=0)

    def keys(self) -> list[str]:
        """The metrics of the table."""
        return list(self.metrics)

    def to_frame(self, library: Library = "pandas") -> Any:
        """A data frame with one row a method, calibrator, score and metric: mean, sd, seeds, test, published mean."""
        rows = [
            {
                **self.point,
                "method": line.method,
                "calibrator": line.calibrator,
                "score": line.score,
                "metric": metric,
                "mean": cell.summary.mean,
                "sd": cell.summary.sd,
                "n": cell.summary.n,
                "p_value": cell.p_value,
                "against_baseline": cell.word,
                "published": cell.published.mean if cell.published else None,
            }
            for line in self.lines
            for metric, cell in line.cells.items()
        ]
        return data_frame(rows, library)

    def _repr_html_(self) -> str:
        caption = ", ".join(f"{name} {value}" for name, value in self.point.items() if value is not None)
        cells = ([_in_a_notebook(line.cells.get(metric)) for metric in self.metrics] for line in self.lines)
        rows = [[line.name, *row] for line, row in zip(self.lines, cells, strict=True)]
        return html_table(f"{caption}; compared with {self.baseline}", ["", *self.metrics], rows)


def _in_a_notebook(cell: StudyCell | None) -> str:
    """A mean with its spread, and what the test says."""
    if cell is None:
        return ""
    spread = "" if isnan(cell.summary.sd) else f" ± {getattr(cell.summary, cell.error):.2g}"
    return f"{cell.summary.mean:.4g}{spread} {cell.word}".strip()


def tabulate(
    rows: pa.Table,
    *,
    baseline: str,
    metrics: Sequence[str],
    test: Test = welch,
    level: float = 0.05,
    corrected: bool = False,
    error: Error = "sd",
    beside: Beside = no_figure,
) -> list[StudyTable]:
    """One table for each point of the other axes than method, calibrator, score and metric.

    A method is compared with the baseline under the same calibrator and score, and a calibrator or a score of the
    baseline with the baseline as it was trained.
    With `corrected` the p-values of each metric in a table are Holm's. `beside` finds published figures.
    """
    points: dict[tuple[Any, ...], dict[CellKey, SeedSummary]] = {}
    for (*where, method, calibrator, score, metric), summary in _summaries(rows):
        points.setdefault(tuple(where), {})[method, calibrator, score, metric] = summary
    varies = [i for i, name in enumerate(POINT) if name in ALWAYS or len({point[i] for point in points}) > 1]
    empty = StudyTable({}, tuple(metrics), (), baseline, test, level, corrected, error)
    bounds = _bounds(rows)
    made = []
    for point, summaries in points.items():
        full = dict(zip(POINT, point, strict=True))
        lines = _lines(_Compared(empty, summaries, bounds), partial(beside, full))
        known = tuple(metric for metric in metrics if any(metric in line.cells for line in lines))
        made.append(replace(empty, point={POINT[i]: point[i] for i in varies}, metrics=known, lines=lines))
    return made


def mean_ranks(tables: Sequence[StudyTable]) -> dict[tuple[str, str], dict[str, float]]:
    """The mean rank in each metric of each method and confidence that all tables have; 1 is the best."""
    pairs = [{(line.method, line.confidence): line for line in table.lines if line.competes} for table in tables]
    common = [pair for pair in pairs[0] if all(pair in lines for lines in pairs)] if pairs else []
    places: dict[tuple[str, str], dict[str, float]] = {pair: {} for pair in common}
    for metric in tables[0].metrics if tables else ():
        if better(metric) == "-" or any(metric not in lines[pair].cells for lines in pairs for pair in common):
            continue
        means = [np.array([lines[pair].cells[metric].summary.mean for pair in common]) for lines in pairs]
        mean = np.mean([ranks(row, higher_is_better=better(metric) == "higher") for row in means], axis=0)
        for pair, rank in zip(common, mean.tolist(), strict=True):
            places[pair][metric] = rank
    return places


def better(metric: str) -> str:
    """Whether higher or lower is better; - for a temperature, which is no metric."""
    record = known_metric(metric)
    return "-" if record is None else record.better


def _bounds(rows: pa.Table) -> set[str]:
    """Display names of the calibrators that are fitted on test."""
    on_test = rows.filter(pc.is_in(rows["calibrator_name"], pa.array(list(ON_TEST))))
    return set(on_test["calibrator"].unique().to_pylist())


def _summaries(rows: pa.Table) -> Iterator[tuple[tuple[Any, ...], SeedSummary]]:
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
        yield key, SeedSummary(tuple(values[part]), tuple(seeds[part]))


def _numbered(codes: list[NDArray[Any]], sizes: list[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """A number for each combination of codes, in order of appearance: [n] of each row, and the row it appears in."""
    mixed = np.ravel_multi_index([code.astype(np.int64) for code in codes], sizes)
    _, first, cell = np.unique(mixed, return_index=True, return_inverse=True)
    by_appearance = np.argsort(first)
    rank = np.empty_like(by_appearance)
    rank[by_appearance] = np.arange(len(first))
    return rank[cell], first[by_appearance]


@dataclass(frozen=True)
class _Compared:
    """The summaries at one point, and how they are compared."""

    how: StudyTable  # its baseline, test, level and correction; it has no lines yet
    summaries: dict[CellKey, SeedSummary]
    bounds: set[str]  # calibrators that cannot be the best

    @cached_property
    def keys(self) -> list[LineKey]:
        return list(dict.fromkeys((method, calibrator, score) for method, calibrator, score, _ in self.summaries))

    @cached_property
    def as_trained(self) -> LineKey:
        """The baseline that its own calibrators and scores are compared with."""
        calibrators, scores = ([key[i] for key in self.keys] for i in (1, 2))
        calibrator = UNCHANGED if UNCHANGED in calibrators else calibrators[0]
        return self.how.baseline, calibrator, USUAL_SCORE if USUAL_SCORE in scores else scores[0]

    def of(self, metric: str) -> dict[LineKey, SeedSummary]:
        return {key: self.summaries[*key, metric] for key in self.keys if (*key, metric) in self.summaries}


def _lines(compared: _Compared, beside: Callable[[str, str, str, str], Figure | None]) -> tuple[StudyLine, ...]:
    cells: dict[LineKey, dict[str, StudyCell]] = {key: {} for key in compared.keys}
    for metric in compared.how.metrics:
        for key, cell in _cells(compared, metric).items():
            cells[key][metric] = replace(cell, published=beside(*key, metric))
    return tuple(
        StudyLine(method, calibrator, row, calibrator not in compared.bounds, score)
        for (method, calibrator, score), row in cells.items()
    )


def _cells(compared: _Compared, metric: str) -> dict[LineKey, StudyCell]:
    """The cells of a metric: each is tested against the baseline."""
    how, here = compared.how, compared.of(metric)
    against = {key: _opposite(compared, key, here) for key in here}
    p = [nan if other is None else how.test(here[key], other) for key, other in against.items()]
    best = _best(metric, {key: summary for key, summary in here.items() if key[1] not in compared.bounds})
    cells = {}
    for (key, summary), p_value in zip(here.items(), holm_corrected(p) if how.corrected else p, strict=True):
        other = against[key]
        word = _word(metric, summary.mean - other.mean) if other is not None and p_value < how.level else ""
        cells[key] = StudyCell(summary, p_value, word, best=key in best, error=how.error)
    return cells


def _opposite(compared: _Compared, key: LineKey, here: dict[LineKey, SeedSummary]) -> SeedSummary | None:
    """What a line is compared with; None for the baseline as it was trained."""
    method, calibrator, score = key
    baseline = compared.how.baseline
    opposite = compared.as_trained if method == baseline else (baseline, calibrator, score)
    return None if opposite == key else here.get(opposite)


def _best(metric: str, summaries: dict[LineKey, SeedSummary]) -> set[LineKey]:
    """All with the best mean: there are several if a calibrator does not change the metric."""
    known = {key: summary.mean for key, summary in summaries.items() if not isnan(summary.mean)}
    if better(metric) == "-" or not known:
        return set()
    highest = (max if better(metric) == "higher" else min)(known.values())
    return {key for key, mean in known.items() if mean == highest}


def _word(metric: str, difference: float) -> str:
    if better(metric) == "-" or difference == 0:
        return ""
    return "better" if (difference > 0) == (better(metric) == "higher") else "worse"
