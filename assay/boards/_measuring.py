"""One line of a board: what one model's confidence shows, before and after a correction, and by category."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np

from assay._core.arrays import InputError, Labels, Tags
from assay.auditing import Measurement, measured
from assay.calibrators import auto
from assay.files import Sheet
from assay.maps import apply
from assay.metrics import METRICS, Tables, evaluate
from assay.predictions import Outcomes
from assay.thresholds import choose_threshold

KEYS = ("accuracy", "ece", "auroc", "aurc", "risk_at_80")
OF_CATEGORY = ("accuracy", "ece", "auroc")
RISK = 0.05  # of the answers that are accepted, with a guarantee
FOLDS = 3
DRAWS = 300  # of the noise floor


@dataclass(frozen=True)
class Corrected:
    """What a cross-fitted correction leaves; its AUROC is that of `auroc_within`."""

    ece: Measurement
    auroc: float


@dataclass(frozen=True)
class Measured:
    """The figures of one model with one confidence."""

    n: int
    cells: dict[str, Measurement]  # by metric
    answerable: float  # share to be accepted with at most 5 % errors, guaranteed
    corrected: Corrected | None  # none if there are too few rows
    categories: dict[str, dict[str, float]]


def measure(sheet: Sheet) -> Measured:
    """Every figure of a sheet that does not depend on the other models."""
    repeated = len(np.unique(sheet.question)) < len(sheet.rows)
    rows = replace(sheet.rows, cluster=sheet.question) if repeated else sheet.rows
    t = Tables(rows, draws=DRAWS)
    return Measured(
        n=len(rows),
        cells={key: measured(METRICS[key], t) for key in KEYS},
        answerable=choose_threshold(t, risk=RISK).coverage,
        corrected=_corrected(rows, sheet.question),
        categories=_by_category(rows),
    )


def _corrected(rows: Outcomes, question: Tags) -> Corrected | None:
    try:
        after, fold = cross_fitted(rows, question)
    except InputError:  # too few rows to fit and judge a map
        return None
    return Corrected(measured(METRICS["ece"], Tables(after, draws=DRAWS)), auroc_within(after, fold))


def auroc_within(rows: Outcomes, fold: Labels) -> float:
    """How often a right answer is more confident than a wrong one of its fold.

    Every fold has its own map, so confidences of two folds have no common scale: their order would show that maps
    differ.
    """
    parts = [Tables(rows[fold == i]) for i in range(FOLDS)]
    pairs = np.array([t.ranking.n_wrong * (t.ranking.n - t.ranking.n_wrong) for t in parts], dtype=np.float64)
    within = [t.once(METRICS["auroc"].of) if count else 0.0 for t, count in zip(parts, pairs, strict=True)]
    return float(pairs @ within / pairs.sum()) if pairs.any() else float("nan")


def cross_fitted(rows: Outcomes, question: Tags, *, seed: int = 0) -> tuple[Outcomes, Labels]:
    """Rows under an `auto` map that was fitted on other questions, and the fold of each."""
    names, member = np.unique(question, return_inverse=True)
    fold = (np.random.default_rng(seed).permutation(len(names)) % FOLDS)[member]
    if len(names) < 20 * FOLDS:
        raise InputError(f"{len(names)} questions are too few for {FOLDS} folds")
    confidence = np.empty(len(rows))
    for i in range(FOLDS):
        with warnings.catch_warnings():  # that confidences rank below chance, which the line shows
            warnings.simplefilter("ignore", UserWarning)
            mapping = auto(rows[fold != i], folds=FOLDS)
        confidence[fold == i] = apply(mapping, rows[fold == i]).outcomes().confidence
    return Outcomes.from_scores(confidence, rows.correct, group=rows.group, cluster=rows.cluster), fold


def _by_category(rows: Outcomes) -> dict[str, dict[str, float]]:
    if rows.group is None:
        return {}
    names, member = np.unique(rows.group, return_inverse=True)
    return {str(name): evaluate(rows[member == i], OF_CATEGORY) for i, name in enumerate(names)}
