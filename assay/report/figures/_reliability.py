"""Reliability diagrams: accuracy against confidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from assay import metrics
from assay._core.arrays import Floats
from assay.report.figures._style import BLUE, GREY, INK, PALE, VERMILLION, per_cent, two_spines
from assay.report.quantities import named_number, number
from assay.report.statistics import FEW, Classwise, Reliability, SmoothReliability

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHELF = 0.12  # height of the histogram under the diagram


def reliability(found: Reliability, ax: Axes) -> Axes:
    """Bars of accuracy, darker in bins of more samples, the gap to the confidence, and the gap that noise allows.

    Bins of few samples are hatched. A histogram below shows the share of samples in each bin.
    """
    bins, some = found.bins, found.bins.count > 0
    left, width = found.lower[some], (bins.upper - found.lower)[some]
    middle, accuracy, low = left + width / 2, bins.accuracy[some], found.low[some]
    depth = 0.2 + 0.8 * np.sqrt(bins.weight[some] / bins.weight.max())
    gap, few = bins.gap[some], found.few[some]
    ax.bar(middle, accuracy, 0.9 * width, color=_tints(depth), label="accuracy", zorder=2)
    ax.bar(
        middle, gap, 0.9 * width, accuracy, fc=(VERMILLION, 0.2), ec=(VERMILLION, 0.7), lw=0.6, label="gap", zorder=3
    )
    ax.bar(middle, found.high[some] - low, 0.3 * width, low, fc=(INK, 0.3), label="if calibrated, 95 %", zorder=4)
    ax.plot(middle, found.confidence[some], "_", color=INK, ms=6, mew=1.2, label="confidence", zorder=5)
    if few.any():
        tall = np.maximum(accuracy, accuracy + gap)[few]
        ax.bar(
            middle[few],
            tall,
            0.9 * width[few],
            fill=False,
            hatch="////",
            ec=GREY,
            lw=0,
            zorder=4,
            label=f"under {FEW} samples",
        )
    _square(ax)
    _histogram(ax, middle, width, bins.weight[some])
    _legend(ax, f"{named_number('ece', metrics.ece(bins))}, n = {bins.count.sum():,.0f}")
    return ax


def smooth_reliability(found: SmoothReliability, ax: Axes) -> Axes:
    """Accuracy as a line, wider where there are more samples, and the band of a calibrated model."""
    from matplotlib.collections import LineCollection

    ax.fill_between(found.confidence, found.low, found.high, color=PALE, lw=0, label="if calibrated, 95 %")
    ax.fill_between(found.confidence, found.confidence, found.accuracy, color=VERMILLION, alpha=0.18, lw=0, label="gap")
    points = np.column_stack([found.confidence, found.accuracy])
    pieces = np.stack([points[:-1], points[1:]], 1)
    widths = 1.0 + 4.0 * np.sqrt(found.weight[1:])
    ax.add_collection(LineCollection(list(pieces), linewidths=widths, colors=BLUE, capstyle="round", label="accuracy"))
    _square(ax)
    _legend(ax, f"smoothed over {found.width:.1%}")
    return ax


def classwise(found: Classwise, ax: Axes) -> Axes:
    """Calibration error of each class against the rest, the worst first; ▲ if it is expected too often."""
    order = np.argsort(-found.ece, kind="stable")
    place = np.arange(len(order))
    ax.vlines(place, 0, found.ece[order], color=PALE, lw=1)
    for marker, color, name, rows in (
        ("^", VERMILLION, "expected too often", found.excess[order] > 0),
        ("v", BLUE, "expected too rarely", found.excess[order] <= 0),
    ):
        ax.plot(place[rows], found.ece[order][rows], marker, color=color, ms=5, label=name)
    mean = float(found.ece.mean())
    ax.axhline(mean, color=GREY, ls="--", lw=1, label=f"mean {number('classwise_ece', mean)}")
    if len(order) <= 30:
        ax.set_xticks(place, [str(label) for label in order])
    ax.set(xlabel="class, worst first", ylabel="ECE against the rest", ylim=(0, None))
    per_cent(ax, "y")
    ax.legend(frameon=False, fontsize="small")
    return two_spines(ax)


def _tints(depth: Floats) -> list[tuple[float, float, float]]:
    """The blue of the bars, from white at 0 to full at 1."""
    from matplotlib.colors import to_rgb

    return [tuple(1 - d * (1 - part) for part in to_rgb(BLUE)) for d in depth]


def _legend(ax: Axes, title: str) -> None:
    shown = ax.legend(loc="upper left", title=title, fontsize="small", handlelength=1.2, framealpha=0.85)
    shown.set(alignment="left", zorder=6)
    shown.get_frame().set_linewidth(0)


def _square(ax: Axes) -> None:
    ax.plot([0, 1], [0, 1], color=GREY, lw=1, ls=(0, (4, 3)), zorder=1)
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xlabel="confidence", ylabel="accuracy")
    per_cent(ax, "x", "y")
    two_spines(ax)


def _histogram(ax: Axes, middle: Floats, width: Floats, weight: Floats) -> None:
    """A histogram below the diagram."""
    shelf = ax.inset_axes((0, -SHELF - 0.02, 1, SHELF), sharex=ax)
    shelf.bar(middle, weight, width * 0.86, color=INK, alpha=0.7)
    shelf.set(ylim=(weight.max(), 0), yticks=[], xlabel="confidence")
    shelf.set_ylabel("share", rotation=0, ha="right", va="center", fontsize="small")
    shelf.spines[["left", "right", "bottom"]].set_visible(False)
    shelf.tick_params(top=False, bottom=False, labelbottom=True)
    ax.tick_params(labelbottom=False, bottom=False)
    ax.set_xlabel("")
