"""A study's tables in words: the best calibrated method, the best at knowing its errors, and if they are the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isnan

from assay.metrics import metric
from assay.report.quantities import quantity
from assay.report.tables import cell_text
from assay.study import UNCHANGED, StudyLine, StudyTable, better

TITLES = {"calibration": "best calibrated", "refinement": "best at knowing its errors"}


@dataclass(frozen=True)
class Best:
    """The best line in a metric, and the second best."""

    metric: str
    line: StudyLine
    next: StudyLine | None
    table: StudyTable

    @property
    def name(self) -> str:
        """The method, with its calibrator and its score if it has one."""
        return self.line.name

    @property
    def figure(self) -> str:
        """ECE 2.13±0.41 %."""
        shown = quantity(self.metric)
        number = cell_text(self.metric, self.line.cells[self.metric]).number
        return f"{shown.title} {number} {shown.unit.sign}".strip()

    @property
    def lead(self) -> str:
        """Whether it is clearly ahead of the next one."""
        if self.next is None:
            return ""
        if isnan(self._p_value):
            return "of one seed"
        return "clearly ahead" if self._p_value < self.table.level else "not clearly ahead"

    @property
    def lead_in_full(self) -> str:
        """The same, with the name of the next one."""
        if self.next is None or isnan(self._p_value):
            return self.lead
        return f"{self.lead} of {Best(self.metric, self.next, None, self.table).name} (p = {self._p_value:.2g})"

    @cached_property
    def _p_value(self) -> float:
        assert self.next is not None
        return self.table.test(self.line.cells[self.metric].summary, self.next.cells[self.metric].summary)


def metric_of(axis: str, metrics: Iterable[str]) -> str | None:
    """The metric that decides an axis: the first that the table has on that axis."""
    return next((key for key in metrics if better(key) != "-" and metric(key).axis == axis), None)


def best(table: StudyTable, lines: Iterable[StudyLine], metric: str | None) -> Best | None:
    """The best line in a metric; undefined means and bounds fitted on test do not count."""
    if metric is None:
        return None
    there = [line for line in lines if metric in line.cells and line.competes]
    there = [line for line in there if not isnan(line.cells[metric].summary.mean)]
    there.sort(key=lambda line: line.cells[metric].summary.mean, reverse=better(metric) == "higher")
    return Best(metric, there[0], there[1] if len(there) > 1 else None, table) if there else None


def as_trained(table: StudyTable) -> list[StudyLine]:
    """The lines with the first confidence: unchanged, unless the study has no lines without a calibrator."""
    return [line for line in table.lines if line.confidence == table.lines[0].confidence]


def by_axis(table: StudyTable, lines: Sequence[StudyLine]) -> dict[str, Best]:
    """The best line on each axis that the table has a metric of."""
    found = {axis: best(table, lines, metric_of(axis, table.metrics)) for axis in TITLES}
    return {axis: one for axis, one in found.items() if one is not None}


def words(table: StudyTable) -> list[str]:
    """The verdict of one table: as trained, then with the calibrators."""
    first, trained = table.lines[0].confidence, as_trained(table)
    several = len(trained) < len(table.lines)
    before = "" if not several else "As trained, " if first == UNCHANGED else f"With {first}, "
    found = [_sentence(before, by_axis(table, trained))] if len(trained) > 1 else []
    return [*found, _sentence(f"With any {table.confidences}, ", by_axis(table, table.lines))] if several else found


def overall(tables: Sequence[StudyTable]) -> list[str]:
    """The verdict of several tables: how often each method is best, as trained."""
    found = [by_axis(table, as_trained(table)) for table in tables]
    counts = {axis: Counter(one[axis].line.method for one in found if axis in one) for axis in TITLES}
    often = [
        f"most often {TITLES[axis]}: {method} (in {times} of {count.total()})"
        for axis, count in counts.items()
        for method, times in count.most_common(1)
    ]
    if not often:
        return []
    both = [one for one in found if len(one) == len(TITLES)]
    times = sum(map(same, both))
    last = [f"One method is both in {times} of {len(both)}"] if both else []
    return [f"In {len(tables)} settings, " + ". ".join([often[0], *map(_capital, often[1:]), *last]) + "."]


def _sentence(before: str, found: dict[str, Best]) -> str:
    parts = [f"{TITLES[axis]}: {one.name} ({_told(one)})" for axis, one in found.items()]
    if not parts:
        return "There is no metric to judge by."
    last = [] if len(found) < len(TITLES) else ["The same" if same(found) else "Not the same"]
    return ". ".join([_capital(before + parts[0]), *map(_capital, parts[1:]), *last]) + "."


def _told(one: Best) -> str:
    return ", ".join(part for part in (one.figure, one.lead) if part)


def same(found: dict[str, Best]) -> bool:
    """Whether the same line is best on all axes."""
    return len({one.name for one in found.values()}) == 1


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
