"""Figures for papers: each function takes a statistic and a matplotlib `ax`, draws, and returns the `ax`.

They change no global style, so they fit into any figure and any style sheet. Lines and markers differ as well as
colors, so figures are legible in grey. Statistics come from `assay.metrics`, `assay.report.statistics` and
`assay.report.analyses`:

    from matplotlib import pyplot
    from assay import examples, metrics
    from assay.report import figures, statistics

    figure, ax = pyplot.subplots()
    bins = metrics.equal_width(examples.load().outcomes())
    figures.reliability(statistics.reliability(bins), ax)
    figure.savefig("reliability.pdf")
"""

from assay.report.figures._audit import audit_figure
from assay.report.figures._lines import curves, epochs, sweep
from assay.report.figures._methods import bars, calibration_refinement, dots, effects, uncertainty
from assay.report.figures._ranking import densities, precision_recall, risk_coverage, roc
from assay.report.figures._reliability import classwise, reliability, smooth_reliability
from assay.report.figures._samples import class_probabilities, histograms, scenario

__all__ = [
    "audit_figure",
    "bars",
    "calibration_refinement",
    "class_probabilities",
    "classwise",
    "curves",
    "densities",
    "dots",
    "effects",
    "epochs",
    "histograms",
    "precision_recall",
    "reliability",
    "risk_coverage",
    "roc",
    "scenario",
    "smooth_reliability",
    "sweep",
    "uncertainty",
]
