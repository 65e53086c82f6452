"""Audits in one picture: calibration on the left, ranking on the right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from assay.metrics import Tables
from assay.report.figures._ranking import risk_coverage
from assay.report.figures._reliability import reliability
from assay.report.statistics import reliability as reliability_of
from assay.report.statistics import selective

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def audit_figure(models: Mapping[str, Tables]) -> Figure:
    """The reliability diagram of each model, and the risk-coverage curves of all; a mere score has only a curve."""
    from assay.report.figures._shown import Shown

    calibrated = {name: tables for name, tables in models.items() if tables.is_probability}
    n = len(calibrated) + 1
    figure = Shown(figsize=(4.5 * n, 4), layout="constrained")
    axes = figure.subplots(1, n, squeeze=False)[0]
    for ax, (name, tables) in zip(axes, calibrated.items(), strict=False):
        reliability(reliability_of(tables.width), ax)
        if len(models) > 1:
            ax.set_title(name)
    risk_coverage({name: selective(tables.ranking) for name, tables in models.items()}, axes[-1])
    return figure
