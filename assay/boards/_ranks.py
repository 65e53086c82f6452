"""Ranks with their uncertainty: which models can be told apart, by one test of all pairs at once.

Two models answer the same questions, so the variance of the difference of two metrics is that of the difference of
their influences question by question. The critical value is the 95 % quantile of the largest studentized difference
over all pairs, drawn by normal multipliers of the questions: of equal models one is called better than another in at
most one family in twenty.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from assay._core.arrays import Floats, Labels
from assay.files import Sheet
from assay.metrics import METRICS, Tables
from assay.metrics.inference import (
    aurc_influence,
    auroc_influence,
    calibration_estimate,
    calibration_part,
    too_few,
)

LEVEL = 0.05
DRAWS = 2000
AT_ONCE = 100  # draws in memory


@dataclass(frozen=True)
class RankRange:
    """The places a model may have among all, 1 the best; a model is the best if both are 1."""

    low: int
    high: int


Estimates = tuple[float, Floats]  # a value, better if lower, and the influence of each row [n]


def _accuracy(t: Tables) -> Estimates:
    wrong = 1.0 - t.outcomes.correct
    return float(wrong.mean()), wrong - wrong.mean()


def _calibration(t: Tables) -> Estimates:
    """The calibration part of the Brier score; for models without error this variance is too large, never too small."""
    part = calibration_part(t.outcomes, t.ranking)
    influence = part.gap[part.bin] ** 2 + 2 * part.gap[part.bin] * part.noise
    return calibration_estimate(part).value, influence - influence.mean()


def _auroc(t: Tables) -> Estimates:
    return 1 - t.once(METRICS["auroc"].of), -auroc_influence(t.ranking).of(t.outcomes)


def _aurc(t: Tables) -> Estimates:
    return t.once(METRICS["aurc"].of), aurc_influence(t.ranking).of(t.outcomes)


RANKED: dict[str, Callable[[Tables], Estimates]] = {
    "accuracy": _accuracy,
    "calibration": _calibration,
    "auroc": _auroc,
    "aurc": _aurc,
}


def rank_ranges(sheets: Sequence[Sheet], *, seed: int = 0) -> list[dict[str, RankRange]]:
    """Range of ranks of each sheet by each of `RANKED`; a sheet with too few errors has none and is not compared."""
    there = [i for i, sheet in enumerate(sheets) if not too_few(Tables(sheet.rows).ranking)]
    if not there:
        return [{} for _ in sheets]
    _, place = np.unique(np.concatenate([sheets[i].question.astype(str) for i in there]), return_inverse=True)
    ends = np.cumsum([len(sheets[i].rows) for i in there])
    questions = np.split(place, ends[:-1])
    found: list[dict[str, RankRange]] = [{} for _ in sheets]
    tables = [Tables(sheets[i].rows) for i in there]
    for key, estimate in RANKED.items():
        ranges = _ranges([estimate(t) for t in tables], questions, seed)
        for i, each in zip(there, ranges, strict=True):
            found[i][key] = each
    return found


def _ranges(estimates: Sequence[Estimates], questions: Sequence[Labels], seed: int) -> list[RankRange]:
    count = max(int(question.max()) for question in questions) + 1
    value = np.array([each for each, _ in estimates])
    # [models, questions]: what each question adds to the noise of each estimate; nothing where it was not answered.
    noise = np.stack(
        [np.bincount(q, influence, count) / len(q) for (_, influence), q in zip(estimates, questions, strict=True)]
    )
    covariance = noise @ noise.T
    variance = np.diag(covariance)
    spread = np.sqrt(np.maximum(variance[:, None] + variance - 2 * covariance, 0))
    same = spread <= 1e-9 * np.sqrt(variance.max())
    spread[same] = np.inf
    apart = (value[:, None] - value) / spread > _critical(noise, spread, seed)  # row is worse than column
    return [
        RankRange(1 + int(worse.sum()), len(value) - int(better.sum()))
        for worse, better in zip(apart, apart.T, strict=True)
    ]


def _critical(noise: Floats, spread: Floats, seed: int) -> float:
    rng = np.random.default_rng(seed)
    most = []
    for _ in range(DRAWS // AT_ONCE):
        drawn = (noise @ rng.standard_normal((noise.shape[1], AT_ONCE))).T
        most.append(((drawn[:, :, None] - drawn[:, None, :]) / spread).max((1, 2)))
    return float(np.quantile(most, 1 - LEVEL))
