"""Figures epoch by epoch (zhu2022, fig 8; wang2021, fig 4; mukhoti2020, figs 1 and 3)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from assay.epochs import AVERAGED
from assay.report.analyses._folders import EpochRows
from assay.report.statistics import Line, line


def per_epoch(histories: Mapping[str, Sequence[EpochRows]], figure: str) -> list[Line]:
    """A figure of the history, such as held_out_auroc or weight_norm, one line a method.

    `histories` has the seeds of each method. Methods without the figure are left out. A method that averages weights
    has a second line, of the average.
    """
    lines = []
    for name, seeds in histories.items():
        for title, key in ((name, figure), (f"{name}, averaged", AVERAGED + figure)):
            values: dict[float, list[float]] = defaultdict(list)
            for row in (row for rows in seeds for row in rows if key in row):
                values[row["epoch"]].append(row[key])
            if values:
                lines.append(line(title, values))
    return lines
