"""The results of a study as figures need them, and panels to draw them on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assay.metrics import known_metric
from assay.report.analyses import apart, where
from assay.report.statistics import Line
from assay.study import USUAL_SCORE, Run, Study, Variant, reference_method, value_column

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Drawn = Iterator[tuple[str, "Figure"]]
"""Figures with their names."""
TRAINING = ("data", "network", "n_train", "learning_rate", "weight_decay")
PANELS_ABREAST = 3  # panels
ROOT_TICKS = (0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0)


@dataclass(frozen=True, eq=False)
class Results:
    """The results of a study."""

    study: Study
    runs: Sequence[Run]
    root: Path
    rows: pa.Table

    @property
    def baseline(self) -> Variant:
        return reference_method(self.study)

    @property
    def methods(self) -> dict[str, Variant]:
        """The methods of the study, by display name."""
        return {str(method): method for method in self.study.methods}

    @property
    def value_columns(self) -> list[str]:
        """The columns of the rows that hold hyper-parameters of recipes."""
        names = {value_column(name) for run in self.runs for name in run.method.values}
        return sorted(names & set(self.rows.column_names))

    @property
    def shown(self) -> list[str]:
        """The first metric of calibration, the first of refinement, and accuracy, if the study has them."""
        keys = (self.first("calibration"), self.first("refinement"), "accuracy")
        return [key for key in keys if key in self.study.metrics]

    def first(self, axis: str) -> str:
        """The first of the study's metrics on that axis; empty if it has none."""
        records = {key: known_metric(key) for key in self.study.metrics}
        return next((key for key, record in records.items() if record is not None and record.axis == axis), "")

    def at(self, fixed: dict[str, Any]) -> pa.Table:
        """Rows of the usual score, calibrated on all held-out samples."""
        return self.of_most_held_out(where(self.rows, {"score": USUAL_SCORE, **fixed}))

    def of_most_held_out(self, rows: pa.Table) -> pa.Table:
        """The rows calibrated on all held-out samples."""
        most = [where(some, {"held_out": pc.max(some["held_out"]).as_py()}) for _, some in apart(rows, ["data"])]
        return pa.concat_tables(most) if most else rows

    def folders(self) -> Iterator[tuple[str, dict[str, dict[int, Path]]]]:
        """The folders of finished runs, at each point by method and seed."""
        points: dict[str, dict[str, dict[int, Path]]] = {}
        for run in self.runs:
            folder = self.root / run.folder
            if (folder / "history.json").is_file():
                point = point_title({name: getattr(run, name) for name in TRAINING})
                points.setdefault(point, {}).setdefault(run.shown, {})[run.seed] = folder
        yield from points.items()

    def folders_of_one_seed(self) -> Iterator[tuple[str, dict[str, Path]]]:
        """The same for the first seed that most methods have, which is added to the point; others are left out."""
        for point, methods in self.folders():
            [(seed, _)] = Counter(seed for folders in methods.values() for seed in folders).most_common(1)
            yield f"{point}, seed {seed}", {name: each[seed] for name, each in methods.items() if seed in each}


def by_metric(rows: pa.Table, keys: Sequence[str]) -> dict[str, pa.Table]:
    """The rows of each of these metrics that the rows have."""
    return {key: some for key in keys if (some := where(rows, {"metric": key})).num_rows}


def numbers(rows: pa.Table, column: str) -> list[float]:
    """The distinct numbers in a column, ascending."""
    return sorted(x for x in rows[column].unique().to_pylist() if x is not None)


def point_title(point: dict[str, Any]) -> str:
    """Data, network, and the other given axes."""
    rest = [f"{name} {value}" for name, value in point.items() if name not in TRAINING[:2] and value is not None]
    return ", ".join([*(str(point[name]) for name in TRAINING[:2] if name in point), *rest])


def panels(n: int, heading: str, *, height: float = 3.3) -> tuple[Figure, list[Axes]]:
    """A figure of n panels, three in a row; a single one is larger."""
    from assay.report.figures._shown import Shown

    width, height = (6.0, max(height, 4.5)) if n == 1 else (4.2, height)
    columns = min(n, PANELS_ABREAST)
    lines = ceil(n / columns)
    figure = Shown(figsize=(width * columns, height * lines), layout="constrained")
    axes = list(figure.subplots(lines, columns, squeeze=False).flat)
    for ax in axes[n:]:
        ax.remove()
    figure.suptitle(heading, x=0.01, ha="left", fontsize="medium", color="#555555")
    return figure, axes[:n]


def same_looks(panels: Sequence[list[Line]]) -> list[list[Line]]:
    """The lines of each panel in a common order, empty if a panel has none, so that a name looks the same in all."""
    names = list(dict.fromkeys(line.name for lines in panels for line in lines))
    by_name = [{line.name: line for line in lines} for lines in panels]
    return [[lines.get(name, Line(name, (), (), ())) for name in names] for lines in by_name]


def one_legend(figure: Figure, axes: Sequence[Axes]) -> Figure:
    """One legend for all panels, below them."""
    handles: dict[str, Artist] = {}
    for ax in axes:
        for handle, name in zip(*ax.get_legend_handles_labels(), strict=True):
            handles.setdefault(name, handle)
        if (own := ax.get_legend()) is not None:
            own.remove()
    abreast = max(1, int(figure.get_figwidth() / (0.6 + 0.075 * max(map(len, handles)))))
    figure.legend(handles.values(), handles, loc="outside lower center", ncols=abreast, frameon=False, fontsize="small")
    return figure


def entitle(ax: Axes, text: str) -> Axes:
    """Title a panel with its text and the title of its legend, which the common legend does not have."""
    own = ax.get_legend()
    more = own.get_title().get_text() if own is not None else ""
    ax.set_title("\n".join(part for part in (text, more) if part), loc="left", fontsize="medium")
    return ax


def spread_out(ax: Axes, x: Sequence[float]) -> Axes:
    """Ticks at the numbers themselves, on a logarithmic axis if they span a factor of ten."""
    if min(x) > 0 and max(x) >= 10 * min(x):
        ax.set_xscale("log")
    ax.set_xticks(list(x), [f"{value:g}" for value in x], minor=False)
    ax.minorticks_off()
    return ax


def root_scale(ax: Axes) -> Axes:
    """A square-root scale upward and downward, so that few wrong answers are visible beside many right ones."""
    from matplotlib.ticker import FixedLocator

    shown = ax.yaxis.get_major_formatter()
    ax.set_yscale("function", functions=(lambda y: np.sign(y) * np.sqrt(np.abs(y)), lambda y: np.sign(y) * y**2))
    ax.yaxis.set_major_locator(FixedLocator(sorted({sign * tick for tick in ROOT_TICKS for sign in (1, -1)})))
    ax.yaxis.set_major_formatter(shown)
    return ax
