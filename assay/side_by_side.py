"""Several confidences of the same answers: which ranks better, which is better calibrated?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from math import nan

from assay._core.arrays import InputError
from assay.comparing import AXES, LEVEL, Difference, compare
from assay.metrics import COMPARED
from assay.metrics.inference import holm
from assay.predictions import Outcomes

COMPARED_BY = {"refinement": "ranks", "calibration": "is calibrated"}  # the answers are the same, so accuracy is too


@dataclass(frozen=True)
class Pair:
    """Two confidences on one axis; a negative difference of calibration errors is for the better."""

    axis: str
    metric: str
    first: str
    second: str
    difference: Difference  # of the second minus the first, its interval for this pair alone
    p_value: float  # corrected for the number of pairs and axes (Holm)

    @property
    def better(self) -> str | None:
        """The better of the two, if one is shown to be."""
        if not self.p_value < LEVEL:
            return None
        return self.second if AXES[self.axis][1] * self.difference.value > 0 else self.first

    def __str__(self) -> str:
        unit, d = COMPARED[self.metric].unit, self.difference
        figures = f"{self.metric} {unit(d.a)} against {unit(d.b)}"
        if d.p_value is None:
            return f"{self.first} and {self.second}: cannot tell ({d.note})"
        if self.better is None:
            return f"{self.first} and {self.second}: no difference shown ({figures}, p = {self.p_value:.2g})"
        worse = self.first if self.better == self.second else self.second
        said = f"{self.better} {COMPARED_BY[self.axis]} better than {worse}"
        values = figures if self.better == self.first else f"{self.metric} {unit(d.b)} against {unit(d.a)}"
        return f"{said} ({values}, p = {self.p_value:.2g})"


def side_by_side(confidences: Mapping[str, Outcomes]) -> tuple[Pair, ...]:
    """Paired tests of every two confidences of the same answers, on refinement and on calibration.

    All tests together call equal confidences different at most one time in twenty.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> chance = rng.random(2000)
    >>> correct = rng.random(2000) < chance
    >>> told = {"sure": chance**0.2, "unsure": (chance + rng.random(2000)) / 2}
    >>> for pair in side_by_side({name: Outcomes.from_scores(c, correct) for name, c in told.items()}):
    ...     print(pair)
    sure ranks better than unsure (auroc 84.02% against 73.84%, p = 1.1e-27)
    unsure is calibrated better than sure (calibration_part 0.067% against 13.585%, p = 1.8e-75)
    """
    if len(confidences) < 2:
        raise InputError("side by side there must be two confidences or more")
    found = [
        (axis, a, b, made[AXES[axis][0]])
        for a, b in combinations(confidences, 2)
        for made in [compare(confidences[a], confidences[b], names=(a, b)).differences]
        for axis in COMPARED_BY
    ]
    tested = [i for i, (*_, d) in enumerate(found) if d.p_value is not None]
    corrected = dict(zip(tested, holm([found[i][3].p_value or 0.0 for i in tested]), strict=True))
    pairs = [Pair(axis, AXES[axis][0], a, b, d, corrected.get(i, nan)) for i, (axis, a, b, d) in enumerate(found)]
    return tuple(sorted(pairs, key=lambda pair: list(COMPARED_BY).index(pair.axis)))
