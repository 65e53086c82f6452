"""Pictures for papers: each takes a computed statistic and a matplotlib `ax`, draws, and returns the `ax`.

No global style is changed, so they fit into any figure and any style sheet; lines and markers differ besides their
colors, so they are legible in grey. Statistics come from `assay.metrics` and `assay.report.statistics`:

    from matplotlib import pyplot
    from assay import examples, metrics
    from assay.report import figures, statistics

    figure, ax = pyplot.subplots()
    bins = metrics.equal_width(examples.load().outcomes())
    figures.reliability(statistics.reliability(bins), ax)
    figure.savefig("reliability.pdf")
"""

from assay.report.figures._lines import epochs, sweep
from assay.report.figures._methods import calibration_refinement, effects
from assay.report.figures._ranking import densities, precision_recall, risk_coverage, roc
from assay.report.figures._reliability import classwise, reliability, smooth_reliability

__all__ = [
    "calibration_refinement",
    "classwise",
    "densities",
    "effects",
    "epochs",
    "precision_recall",
    "reliability",
    "risk_coverage",
    "roc",
    "smooth_reliability",
    "sweep",
]
