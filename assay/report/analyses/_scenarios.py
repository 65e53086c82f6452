"""Three classifiers with an accuracy of one half: calibrated, refined, or both (singh2021, fig 1 a-c)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from assay import metrics
from assay.predictions import Outcomes
from assay.report.statistics import Densities, densities

N = 500  # right answers, and as many wrong ones


@dataclass(frozen=True, eq=False)
class Scenario:
    """A constructed set of answers, with its calibration and refinement."""

    name: str
    outcomes: Outcomes
    densities: Densities
    ece: float
    auroc: float


def scenarios() -> list[Scenario]:
    """Calibrated but hardly refined, refined but hardly calibrated, and better at both than the worse of the two.

    The paper draws its samples but does not print them. Here the confidence of right answers has a beta distribution,
    and that of wrong answers its mirror image. Their parameters are chosen so that ECE (15 bins) and AUROC round to
    the printed values: .06 and 77.4 %, .18 and 99.46 %, .08 and 89 %.
    """
    return [
        _scenario("calibrated, not refined", 5.8, 4.2),
        _scenario("refined, not calibrated", 6.808, 1.942),
        _scenario("both", 0.716, 0.214),
    ]


def _scenario(name: str, a: float, b: float) -> Scenario:
    from scipy.special import betaincinv

    right = betaincinv(a, b, (np.arange(N) + 0.5) / N)
    outcomes = Outcomes.from_scores(np.concatenate([right, 1 - right]), np.arange(2 * N) < N)
    return Scenario(name, outcomes, densities(outcomes, 20), metrics.ece(outcomes), metrics.auroc(outcomes))
