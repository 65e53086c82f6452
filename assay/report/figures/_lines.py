"""Families of curves over a varied quantity: the epoch, a coefficient, the severity of a shift."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from assay.report.figures._style import look, metric_axis, two_spines
from assay.report.statistics import Line

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def curves(lines: Sequence[Line], ax: Axes, *, over: str, metric: str) -> Axes:
    """A metric or another quantity as a function, with the range over seeds as a band, fainter if there are more."""
    for index, line in enumerate(lines):
        style = look(index)
        ax.plot(line.x, line.mean, color=style.color, ls=style.line, lw=1.6, label=line.name)
        low, high = np.array(line.ends or [*zip(line.mean, line.mean, strict=True)]).reshape(-1, 2).T
        ax.fill_between(line.x, low, high, color=style.color, alpha=min(0.15, 0.45 / len(lines)), lw=0)
    ax.set_xlabel(over)
    metric_axis(ax, "y", metric)
    ax.legend(frameon=False, fontsize="small")
    return two_spines(ax)


def epochs(lines: Sequence[Line], ax: Axes, *, metric: str) -> Axes:
    """A metric epoch by epoch, with the range over seeds as a band (wang2021, fig 4)."""
    return curves(lines, ax, over="epoch", metric=metric)


def sweep(lines: Sequence[Line], ax: Axes, *, varied: str, metric: str) -> Axes:
    """A metric at each value of a coefficient, or at each severity of a shift, with its spread over seeds."""
    for index, line in enumerate(lines):
        style = look(index)
        shape = f"{style.marker}{style.line}"
        ax.errorbar(line.x, line.mean, line.spread, fmt=shape, color=style.color, ms=5, capsize=3, label=line.name)
    ax.set_xlabel(varied)
    metric_axis(ax, "y", metric)
    ax.legend(frameon=False, fontsize="small")
    return two_spines(ax)
