"""Methods against each other: on both axes at once, and by the size of their effect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from assay.metrics import METRICS
from assay.report.figures._style import GREY, INK, PALE, look, metric_axis, plain
from assay.report.statistics import Effect, Method, mean_and_spread

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def calibration_refinement(
    methods: Sequence[Method], ax: Axes, *, calibration: str = "ece", refinement: str = "auroc"
) -> Axes:
    """Calibrated is not yet trustworthy: one point a method, its seeds faint around it, bars of a standard deviation.

    Both axes are named by the key of a metric, the first also by `ece_excess`; the better is always up and to the left.
    """
    for index, method in enumerate(methods):
        style = look(index)
        (x, dx), (y, dy) = mean_and_spread(method.calibration), mean_and_spread(method.refinement)
        ax.plot(method.calibration, method.refinement, style.marker, color=style.color, ms=4, alpha=0.35, mew=0)
        ax.errorbar(x, y, dy, dx, fmt=style.marker, color=style.color, ms=8, mec="white", lw=1, label=method.name)
        ax.annotate(method.name, (x, y), (7, 5), textcoords="offset points", fontsize="small")
    if METRICS[refinement].better == "lower":
        ax.invert_yaxis()
    ax.margins(0.15)
    metric_axis(ax, "x", calibration)
    metric_axis(ax, "y", refinement)
    ax.set_title("↖ better on both axes", loc="left", fontsize="small", color=GREY)
    return plain(ax)


def effects(found: Sequence[Effect], ax: Axes) -> Axes:
    """Effect sizes with their intervals, filled where 0 is outside; the shaded strip is what counts as small (.2)."""
    place = np.arange(len(found))[::-1]
    ax.axvspan(-0.2, 0.2, color=PALE, alpha=0.6, lw=0)
    ax.axvline(0, color=GREY, lw=1)
    for y, effect in zip(place, found, strict=True):
        clear = effect.low > 0 or effect.high < 0
        ax.plot([effect.low, effect.high], [y, y], color=INK, lw=1.4)
        ax.plot([effect.size], [y], "o", color=INK, mfc=INK if clear else "white", ms=6)
    ax.set_yticks(place, [effect.name for effect in found])
    ax.set(xlabel="Cohen's d", ylim=(-0.6, len(found) - 0.4))
    return plain(ax)
