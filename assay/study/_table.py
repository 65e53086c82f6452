"""A study's rows as one table: methods down, metrics across, each cell the seeds' mean with its test."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from assay.metrics import METRICS
from assay.study._statistics import Summary, welch

POINT = ("data", "network", "split", "n_train", "learning_rate", "weight_decay", "held_out", "score")


@dataclass(frozen=True)
class Cell:
    """Seeds' values of one metric, and how they stand against the baseline's."""

    summary: Summary
    p_value: float  # nan for the baseline itself
    word: str  # better, worse, or nothing
    best: bool


@dataclass(frozen=True)
class Line:
    """A method with a calibrator."""

    method: str
    calibrator: str
    cells: dict[str, Cell]  # by metric


@dataclass(frozen=True)
class Table:
    """All methods at one point of the other axes."""

    point: dict[str, Any]  # data, network, split, ...: what of it varies in the study
    metrics: tuple[str, ...]
    lines: tuple[Line, ...]
    baseline: str


def tables(
    rows: pa.Table,
    *,
    baseline: str,
    metrics: Sequence[str],
    test: Callable[[Summary, Summary], float] = welch,
    level: float = 0.05,
) -> list[Table]:
    """One table for each point of the axes that are no method, calibrator or metric.

    A method is compared with the baseline under the same calibrator, and a calibrator of the baseline with none.
    """
    columns = rows.to_pydict()
    values: dict[tuple[Any, ...], dict[tuple[str, str, str], dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    points = zip(*(columns[name] for name in POINT), strict=True)
    keys = zip(columns["method"], columns["calibrator"], columns["metric"], strict=True)
    for point, key, seed, value in zip(points, keys, columns["seed"], columns["value"], strict=True):
        values[point][key][seed] = value
    varies = [
        i for i, name in enumerate(POINT) if name in ("data", "network", "split") or len({p[i] for p in values}) > 1
    ]
    found = []
    for point, cells in values.items():
        shown = {POINT[i]: point[i] for i in varies}
        found.append(
            _table(shown, {key: _summary(by_seed) for key, by_seed in cells.items()}, baseline, metrics, test, level)
        )
    return found


def _summary(by_seed: dict[int, float]) -> Summary:
    return Summary(tuple(by_seed[seed] for seed in sorted(by_seed)))


def _table(
    point: dict[str, Any],
    cells: dict[tuple[str, str, str], Summary],
    baseline: str,
    metrics: Sequence[str],
    test: Callable[[Summary, Summary], float],
    level: float,
) -> Table:
    pairs = list(dict.fromkeys((method, calibrator) for method, calibrator, _ in cells))
    first = pairs[0][1]
    best = {
        metric: _best(metric, {pair: cells[*pair, metric] for pair in pairs if (*pair, metric) in cells})
        for metric in metrics
    }
    lines = []
    for method, calibrator in pairs:
        against = (baseline, first) if method == baseline else (baseline, calibrator)
        line = {}
        for metric in metrics:
            here, there = cells.get((method, calibrator, metric)), cells.get((*against, metric))
            if here is None:
                continue
            p = float("nan") if there is None or against == (method, calibrator) else test(here, there)
            word = "" if there is None or not p < level else _word(metric, here.mean - there.mean)
            line[metric] = Cell(here, p, word, best[metric] == (method, calibrator))
        lines.append(Line(method, calibrator, line))
    return Table(point, tuple(metrics), tuple(lines), baseline)


def _best(metric: str, summaries: dict[tuple[str, str], Summary]) -> tuple[str, str] | None:
    better = METRICS[metric].better
    if better == "-" or not summaries:
        return None
    choose = max if better == "higher" else min
    return choose(summaries, key=lambda pair: summaries[pair].mean)


def _word(metric: str, difference: float) -> str:
    better = METRICS[metric].better
    if better == "-" or difference == 0:
        return ""
    return "better" if (difference > 0) == (better == "higher") else "worse"
