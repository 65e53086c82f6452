"""An audit in one picture: calibration on the left, ranking on the right."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.metrics import Tables
from assay.report.figures._ranking import risk_coverage
from assay.report.figures._reliability import reliability
from assay.report.statistics import reliability as reliability_of
from assay.report.statistics import selective

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def audit_figure(tables: Tables) -> Figure:
    """The reliability diagram and the risk-coverage curve of one set of predictions; a mere score has only a curve."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4) if tables.is_probability else (4.5, 4), layout="constrained")
    axes = figure.subplots(1, 2 if tables.is_probability else 1, squeeze=False)[0]
    if tables.is_probability:
        reliability(reliability_of(tables.width), axes[0])
    risk_coverage({"model": selective(tables.ranking)}, axes[-1])
    return figure
