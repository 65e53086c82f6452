"""How well the confidence separates right from wrong answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.report.figures._style import BLUE, GREY, PALE, VERMILLION, look, per_cent, two_spines
from assay.report.quantities import named_number
from assay.report.statistics import Densities, PrecisionRecall, Rates, Selective
from assay.thresholds import Threshold

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def risk_coverage(found: dict[str, Selective], ax: Axes, *, threshold: Threshold | None = None) -> Axes:
    """Risk against coverage, one line a model, with the perfect ranking of the first model's answers.

    A chosen `threshold` is marked with its guarantee.
    """
    first = next(iter(found.values()))
    ax.plot(first.coverage, first.optimal, color=GREY, lw=1, ls=(0, (4, 3)), label="perfect ranking")
    for index, (name, curve) in enumerate(found.items()):
        style = look(index)
        ax.plot(curve.coverage, curve.risk, color=style.color, ls=style.line, lw=1.8, label=name)
    if len(found) == 1:
        ax.fill_between(first.coverage, first.optimal, first.risk, color=PALE, alpha=0.6, lw=0)
    if threshold is not None and threshold.accepted:
        x, y, promised = threshold.coverage, threshold.observed_risk, threshold.guaranteed_risk
        ax.vlines(x, 0, promised, color=VERMILLION, lw=1, ls=":")
        ax.hlines(promised, 0, x, color=VERMILLION, lw=1, ls=":")
        ax.plot(
            [x], [y], "D", color=VERMILLION, ms=6, zorder=4, label=f"at most {100 * promised:.3g}% errors on {x:.1%}"
        )
    ax.set(xlim=(0, 1), xlabel="coverage: share of inputs accepted", ylabel="risk: errors among them")
    highest = max(float(curve.risk[curve.coverage >= 0.05].max()) for curve in found.values())
    ax.set_ylim(0, 1.1 * highest or 1.0)
    per_cent(ax, "x", "y")
    ax.legend(frameon=False, fontsize="small")
    return two_spines(ax)


def roc(found: dict[str, Rates], ax: Axes) -> Axes:
    """Share of right answers accepted against share of errors accepted, one line a model."""
    ax.plot([0, 1], [0, 1], color=GREY, lw=1, ls=(0, (4, 3)))
    for index, (name, curve) in enumerate(found.items()):
        style, label = look(index), f"{name}, {named_number('auroc', curve.auroc)}"
        ax.plot(curve.wrong, curve.right, color=style.color, ls=style.line, lw=1.8, label=label)
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xlabel="errors accepted", ylabel="right answers accepted")
    per_cent(ax, "x", "y")
    ax.legend(loc="lower right", frameon=False, fontsize="small")
    return two_spines(ax)


def precision_recall(found: dict[str, PrecisionRecall], ax: Axes) -> Axes:
    """Precision against recall of right answers, or of errors, one line a model; dotted lines show chance."""
    for index, (name, curve) in enumerate(found.items()):
        style, label = look(index), f"{name}, {named_number(curve.metric, curve.average)}"
        ax.plot(curve.recall, curve.precision, color=style.color, ls=style.line, lw=1.8, label=label)
        ax.axhline(curve.base, color=style.color, lw=1, ls=":")
    answers = "right answers" if next(iter(found.values())).positive == "right" else "errors"
    ax.set(xlim=(0, 1), ylim=(0, 1.02), xlabel=f"recall of {answers}", ylabel="precision")
    per_cent(ax, "x", "y")
    ax.legend(loc="best", frameon=False, fontsize="small")
    return two_spines(ax)


def densities(found: Densities, ax: Axes) -> Axes:
    """Histogram of the confidence: right answers upward, wrong answers downward."""
    from matplotlib.ticker import FuncFormatter

    ax.stairs(found.right, found.edges, fill=True, color=BLUE, alpha=0.75, label=f"right, {found.right.sum():.1%}")
    wrong = f"wrong, {found.wrong.sum():.1%}"
    ax.stairs(-found.wrong, found.edges, fill=True, color=VERMILLION, alpha=0.75, hatch="////", ec="white", label=wrong)
    ax.axhline(0, color=GREY, lw=1)
    ax.set(xlim=(found.edges[0], found.edges[-1]), xlabel="confidence", ylabel="share of all samples")
    ax.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{abs(y):.0%}"))
    ax.legend(loc="upper left", frameon=False, fontsize="small")
    return two_spines(ax)
