"""All figures that a study's results support, drawn and saved."""

from assay.report.drawing._study import draw_study

__all__ = ["draw_study"]
