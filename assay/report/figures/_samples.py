"""Histograms of a quantity of samples, several groups in one figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from assay.report.figures._ranking import densities
from assay.report.figures._style import look, per_cent, two_spines
from assay.report.quantities import named_number
from assay.report.statistics import FEW

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from assay.report.analyses import Histogram, Scenario, WrongAnswer


def histograms(found: Sequence[Histogram], ax: Axes, *, of: str) -> Axes:
    """One outline a group, of the share of its own samples; on a logarithmic axis if bins have equal ratios.

    Groups of few samples show little but noise: if there are larger ones, the small ones are only in the legend.
    """
    many = [each for each in found if each.n >= FEW] or found
    for index, each in enumerate(many):
        style, label = look(index), f"{each.name}, n = {each.n:,}"
        ax.stairs(each.share, each.edges, fill=True, color=style.color, alpha=min(0.12, 0.36 / len(many)))
        ax.stairs(each.share, each.edges, color=style.color, ls=style.line, lw=1.6, label=label)
    edges = found[0].edges
    if not np.allclose(np.diff(edges), edges[1] - edges[0]):
        ax.set_xscale("log")
    ax.set(xlim=(edges[0], edges[-1]), ylim=(0, None), xlabel=of, ylabel="share of its samples")
    per_cent(ax, "y")
    few = ", ".join(f"{each.name} ({each.n})" for each in found if each not in many)
    ax.legend(frameon=False, fontsize="small", title=f"under {FEW}: {few}" if few else None, title_fontsize="small")
    return two_spines(ax)


def class_probabilities(found: WrongAnswer, ax: Axes) -> Axes:
    """The probabilities that each method gives to some classes for one sample; the true class is in bold."""
    place, width = np.arange(len(found.classes)), 0.8 / len(found.probabilities)
    for index, (name, values) in enumerate(found.probabilities.items()):
        ax.bar(place + width * (index + 0.5) - 0.4, values, width, color=look(index).color, label=name)
    ax.set_xticks(place, [str(label) for label in found.classes])
    for text, label in zip(ax.get_xticklabels(), found.classes, strict=True):
        text.set_fontweight("bold" if label == found.label else "normal")
    ax.set(ylim=(0, 1), xlabel=f"classes of sample {found.row}, the true one {found.label}", ylabel="probability")
    ax.legend(frameon=False, fontsize="small")
    return two_spines(ax)


def scenario(found: Scenario, ax: Axes) -> Axes:
    """The densities of a constructed classifier, titled with its ECE and AUROC."""
    densities(found.densities, ax)
    numbers = f"{named_number('ece', found.ece)}, {named_number('auroc', found.auroc)}"
    ax.set_title(f"{found.name}\n{numbers}", loc="left", fontsize="medium")
    return ax
