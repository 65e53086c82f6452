"""Colors for the color-blind (Okabe & Ito 2008), each with a line and a marker; axes in the unit of a metric."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from assay.metrics import METRICS
from assay.report.terminal import ARROWS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Which = Literal["x", "y"]
LineStyle = Literal["-", "--", "-.", ":"]

BLUE, VERMILLION, GREEN, ORANGE, PURPLE, SKY = "#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9"
INK, GREY, PALE = "#222222", "#7F7F7F", "#D9D9D9"
EXCESS = "ece_excess"  # ECE minus its noise floor
SHARES = (EXCESS, "optimal_ece", "true_class", "true_class_correct", "true_class_wrong")  # figures in per cent
NAMES = {
    EXCESS: "ECE above its noise floor",
    "optimal_ece": "ECE at the best temperature",
    "nll_correct": "NLL of right answers",
    "nll_wrong": "NLL of wrong answers",
    "entropy_correct": "entropy of right answers",
    "entropy_wrong": "entropy of wrong answers",
    "true_class": "probability of the true class",
    "true_class_correct": "p(true class) of right answers",
    "true_class_wrong": "p(true class) of wrong answers",
    "weight_norm": "weight norm of the last layer",
    **{key: metric.title for key, metric in METRICS.items()},
}


@dataclass(frozen=True)
class Look:
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


def plain(ax: Axes) -> Axes:
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
    """Label and ticks of a metric or of another figure."""
    arrow = ARROWS[METRICS[key].better].strip() if key in METRICS else ""
    label = f"{NAMES.get(key, key.replace('_', ' '))} {arrow}".strip()
    ax.set(**{f"{which}label": label})
    if key in SHARES:
        per_cent(ax, which)
    elif key in METRICS and METRICS[key].unit.sign:
        _ticks(ax, which, METRICS[key].unit.factor, METRICS[key].unit.sign)
