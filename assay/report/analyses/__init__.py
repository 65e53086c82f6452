"""The analyses of the papers: frozen records in natural units, which `assay.report.figures` draws.

They read the results of a study: histories and samples in its run folders (`history`, `sample_columns`) and its table
of rows (`assay.study.read_rows`), which has recipe, setup and each value as columns:

    rows = where(read_rows(study, folders), {"split": "test", "calibrator": "none", "metric": "ece"})
    figures.sweep(lines(rows, over="gamma", by=["data"]), ax, varied="gamma", metric="ece")
"""

from assay.report.analyses._curves import gradient_factors, loss_curves, soft_memberships, soft_uncertainties
from assay.report.analyses._epochs import per_epoch
from assay.report.analyses._folders import EpochRows, history, sample_columns, train_reliability
from assay.report.analyses._methods import (
    Uncertainty,
    both_axes,
    by_method,
    by_variant,
    comparable,
    effects,
    pooled_effect,
    secondary_and_primary,
    uncertainties,
    with_variants,
)
from assay.report.analyses._rows import apart, where
from assay.report.analyses._samples import Histogram, gradient_norms, max_logits
from assay.report.analyses._scenarios import Scenario, scenarios
from assay.report.analyses._sweeps import best_coefficients, lines, severities, severities_within
from assay.report.analyses._wrong_answers import WrongAnswer, wrong_answers

__all__ = [
    "EpochRows",
    "Histogram",
    "Scenario",
    "Uncertainty",
    "WrongAnswer",
    "apart",
    "best_coefficients",
    "both_axes",
    "by_method",
    "by_variant",
    "comparable",
    "effects",
    "gradient_factors",
    "gradient_norms",
    "history",
    "lines",
    "loss_curves",
    "max_logits",
    "per_epoch",
    "pooled_effect",
    "sample_columns",
    "scenarios",
    "secondary_and_primary",
    "severities",
    "severities_within",
    "soft_memberships",
    "soft_uncertainties",
    "train_reliability",
    "uncertainties",
    "where",
    "with_variants",
    "wrong_answers",
]
