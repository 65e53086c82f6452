"""Colors that the color-blind tell apart (Okabe & Ito 2008), with a line and a marker for each; axes in per cent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from assay.metrics import METRICS
from assay.report.terminal import ARROWS, PLAIN

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Which = Literal["x", "y"]
LineStyle = Literal["-", "--", "-.", ":"]

BLUE, VERMILLION, GREEN, ORANGE, PURPLE, SKY = "#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9"
INK, GREY, PALE = "#222222", "#7F7F7F", "#D9D9D9"
EXCESS = "ece_excess"  # ECE minus its noise floor
SHARES = (EXCESS, "optimal_ece", "true_class", "true_class_correct", "true_class_wrong")  # that are no metrics
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
    "ece_correct": "ECE of right answers",
    "ece_wrong": "ECE of wrong answers",
    "ece_l2_mass": "ECE (equal mass, l2)",
    "ada_ece": "AdaECE",
    "debiased_ece": "debiased ECE",
    "classwise_ece": "classwise ECE",
    "smooth_ece": "smECE",
    "e_aurc": "E-AURC",
    "fpr95": "FPR95",
    "aupr_error": "AUPR-error",
    "aupr_success": "AUPR-success",
    **{key: key.upper() for key in ("ece", "mce", "nll", "auroc", "aurc", "augrc", "mmce")},
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
    """Color, line and marker of the nth member of a family; the colors come round again with other lines."""
    turn, place = divmod(index, len(LOOKS))
    return Look(LOOKS[place].color, LOOKS[(place + turn) % len(LOOKS)].line, LOOKS[(place + turn) % len(LOOKS)].marker)


def plain(ax: Axes) -> Axes:
    """Two spines instead of four."""
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def per_cent(ax: Axes, *which: Which) -> None:
    """Ticks of a share, in per cent."""
    from matplotlib.ticker import PercentFormatter

    for axis in which:
        (ax.xaxis if axis == "x" else ax.yaxis).set_major_formatter(PercentFormatter(1.0))


def metric_axis(ax: Axes, which: Which, key: str) -> None:
    """Label and ticks of a metric; of what is no metric, its name as it stands."""
    arrow = ARROWS[METRICS[key].better].strip() if key in METRICS else ""
    label = f"{NAMES.get(key, key.replace('_', ' '))} {arrow}".strip()
    ax.set(**{f"{which}label": label})
    if key in SHARES or (key in METRICS and key not in PLAIN):
        per_cent(ax, which)
