"""Methods compared: on both axes at once, and by effect size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from typing import TYPE_CHECKING

import numpy as np

from assay.metrics import metric
from assay.report.figures._labels import name_points
from assay.report.figures._style import BLUE, GREY, INK, PALE, look, metric_axis, two_spines
from assay.report.statistics import Effect, MethodPoint, mean_and_spread

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from assay.report.analyses import Uncertainty
    from assay.study import SeedSummary


def calibration_refinement(
    methods: Sequence[MethodPoint], ax: Axes, *, calibration: str = "ece", refinement: str = "auroc"
) -> Axes:
    """Calibration against refinement: one point a method, its seeds faint around it, bars of a standard deviation.

    `calibration` and `refinement` are keys of metrics, the first may be `ece_excess`. Better is up and to the left.
    """
    if metric(refinement).better == "lower":
        ax.invert_yaxis()
    _points({method.name: (method.calibration, method.refinement) for method in methods}, ax)
    metric_axis(ax, "x", calibration)
    metric_axis(ax, "y", refinement)
    ax.set_title("↖ better on both axes", loc="left", fontsize="small", color=GREY)
    return two_spines(ax)


def uncertainty(methods: Sequence[Uncertainty], ax: Axes, *, calibration: str = "ece") -> Axes:
    """Calibration error against average entropy, one point a method, its seeds faint around it."""
    _points({method.name: (method.entropy, method.calibration) for method in methods}, ax)
    metric_axis(ax, "x", "mean_entropy")
    metric_axis(ax, "y", calibration)
    return two_spines(ax)


def dots(methods: dict[str, SeedSummary], ax: Axes, *, metric: str) -> Axes:
    """A metric of each method, the first on top: its mean with a bar of a standard deviation, its seeds faint."""
    place = np.arange(len(methods))[::-1]
    for y, summary in zip(place, methods.values(), strict=True):
        ax.plot(summary.values, [y] * summary.n, "o", color=BLUE, ms=4, alpha=0.35, mew=0)
        ax.errorbar(summary.mean, y, xerr=summary.sd, fmt="o", color=INK, ms=6, mec="white", lw=1.4)
    ax.axvline(next(iter(methods.values())).mean, color=GREY, lw=1, ls=":", zorder=0)
    ax.set_yticks(place, list(methods))
    ax.set_ylim(-0.6, len(methods) - 0.4)
    metric_axis(ax, "x", metric)
    return two_spines(ax)


def bars(methods: dict[str, SeedSummary], ax: Axes, *, metric: str) -> Axes:
    """A metric of each method as a bar with the standard error of its mean, the first on top."""
    place = np.arange(len(methods))[::-1]
    means = [summary.mean for summary in methods.values()]
    errors = [0.0 if isnan(summary.sem) else summary.sem for summary in methods.values()]
    ax.barh(place, means, xerr=errors, color=PALE, ec=BLUE, ecolor=INK, height=0.7)
    ax.set_yticks(place, list(methods), fontsize="small")
    ax.set_ylim(-0.6, len(methods) - 0.4)
    low, high = min(means), max(means)
    if low > 0.5 * high:  # bars of nearly equal length tell nothing from 0 on
        ax.set_xlim(left=max(0.0, low - 0.5 * (high - low) - 0.02 * high))
    metric_axis(ax, "x", metric)
    return two_spines(ax)


def effects(found: Sequence[Effect], ax: Axes) -> Axes:
    """Effect sizes with their intervals, filled if 0 is outside; the shaded strip marks small effects (up to .2)."""
    place = np.arange(len(found))[::-1]
    ax.axvspan(-0.2, 0.2, color=PALE, alpha=0.6, lw=0)
    ax.axvline(0, color=GREY, lw=1)
    for y, effect in zip(place, found, strict=True):
        clear = effect.low > 0 or effect.high < 0
        ax.plot([effect.low, effect.high], [y, y], color=INK, lw=1.4)
        ax.plot([effect.size], [y], "o", color=INK, mfc=INK if clear else "white", ms=6)
    ax.set_yticks(place, [effect.name for effect in found])
    ax.set(xlabel="Cohen's d", ylim=(-0.6, len(found) - 0.4))
    return two_spines(ax)


def _points(found: Mapping[str, tuple[tuple[float, ...], tuple[float, ...]]], ax: Axes) -> None:
    """The mean of each method's seeds on both axes, with its name."""
    means = {}
    for index, (name, (xs, ys)) in enumerate(found.items()):
        style, (x, dx), (y, dy) = look(index), mean_and_spread(xs), mean_and_spread(ys)
        ax.plot(xs, ys, style.marker, color=style.color, ms=4, alpha=0.35, mew=0)
        ax.errorbar(x, y, dy, dx, fmt=style.marker, color=style.color, ms=8, mec="white", lw=1, label=name)
        means[name] = x, y
    ax.margins(0.15)
    ax.autoscale_view()
    name_points(means, ax)
