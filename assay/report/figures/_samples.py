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

    from assay.report.analyses import Histogram, Scenario


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


def scenario(found: Scenario, ax: Axes) -> Axes:
    """The densities of a constructed classifier, titled with its ECE and AUROC."""
    densities(found.densities, ax)
    numbers = f"{named_number('ece', found.ece)}, {named_number('auroc', found.auroc)}"
    ax.set_title(f"{found.name}\n{numbers}", loc="left", fontsize="medium")
    return ax
