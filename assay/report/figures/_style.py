"""Colors for the color-blind (Okabe & Ito 2008), each with a line and a marker; axes in the unit of a metric."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from assay.report.quantities import quantity

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Which = Literal["x", "y"]
LineStyle = Literal["-", "--", "-.", ":"]

BLUE, VERMILLION, GREEN, ORANGE, PURPLE, SKY = "#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9"
INK, GREY, PALE = "#222222", "#7F7F7F", "#D9D9D9"


@dataclass(frozen=True)
class Look:
    """Color, line and marker of one member of a family."""

    color: str
    line: LineStyle
    marker: str


LOOKS = (
    Look(BLUE, "-", "o"),
    Look(VERMILLION, "--", "s"),
    Look(GREEN, "-.", "^"),
    Look(ORANGE, ":", "D"),
    Look(PURPLE, "-", "v"),
    Look(SKY, "--", "P"),
    Look(INK, "-.", "X"),
)


def look(index: int) -> Look:
    """Color, line and marker of the nth member of a family; colors repeat with other lines."""
    turn, place = divmod(index, len(LOOKS))
    return Look(LOOKS[place].color, LOOKS[(place + turn) % len(LOOKS)].line, LOOKS[(place + turn) % len(LOOKS)].marker)


def two_spines(ax: Axes) -> Axes:
    """Two spines instead of four."""
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def per_cent(ax: Axes, *which: Which) -> None:
    """Ticks of a share, in per cent."""
    for axis in which:
        _ticks(ax, axis, 100, "%")


def _ticks(ax: Axes, which: Which, factor: float, sign: str) -> None:
    from matplotlib.ticker import PercentFormatter

    (ax.xaxis if which == "x" else ax.yaxis).set_major_formatter(PercentFormatter(100 / factor, symbol=sign))


def metric_axis(ax: Axes, which: Which, key: str) -> None:
    """Label and ticks of a metric or of another quantity."""
    shown = quantity(key)
    ax.set(**{f"{which}label": shown.label})
    if shown.unit.sign:
        _ticks(ax, which, shown.unit.factor, shown.unit.sign)
