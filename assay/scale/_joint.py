"""What two models have in common on the same rows, in a few sums: enough to compare their means in pairs."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from assay._core.arrays import Floats, InputError
from assay._matching import matched
from assay.metrics.inference import AccuracyChange, Estimate, accuracy_change_of
from assay.predictions import Outcomes, Predictions

MEANS = ("nll", "brier")


@dataclass(frozen=True, eq=False)
class Joint:
    """Counts of rows by which of two models is right, and moments of the differences of their losses; `+` adds rows.

    >>> from assay import Outcomes
    >>> a = Outcomes.from_scores([0.9, 0.8, 0.7], [True, False, True])
    >>> b = Outcomes.from_scores([0.9, 0.9, 0.6], [True, True, True])
    >>> joint = Joint.of(a, b)
    >>> joint.accuracy().p_value
    1.0
    """

    counts: Floats  # [2, 2] rows by whether the first and whether the second is right
    differences: Floats  # [2, 2] of NLL and Brier, second minus first: the sum, and that of squares; nan where unknown

    @staticmethod
    def of(first: Predictions | Outcomes, second: Predictions | Outcomes) -> Joint:
        """Of the same rows: matched by ids, or without ids in the same order."""
        for column in ("weights", "cluster"):
            if getattr(first, column) is not None or getattr(second, column) is not None:
                raise InputError(f"sums over pairs take all rows as alike; compare rows with {column} in memory")
        a, b = (rows.outcomes() for rows in matched(first, second))
        counts = np.bincount(2 * a.correct + b.correct, minlength=4).reshape(2, 2).astype(np.float64)
        return Joint(counts, np.array([_moments(getattr(a, name), getattr(b, name)) for name in MEANS]))

    def __add__(self, other: Joint) -> Joint:
        return Joint(self.counts + other.counts, self.differences + other.differences)

    def __len__(self) -> int:
        """How many rows it has counted."""
        return int(self.counts.sum())

    @property
    def errors(self) -> tuple[int, int]:
        """Errors of the first and of the second model."""
        return int(self.counts[0].sum()), int(self.counts[:, 0].sum())

    def accuracy(self) -> AccuracyChange:
        """The paired test of accuracies, as from the rows."""
        return accuracy_change_of(gained=int(self.counts[0, 1]), lost=int(self.counts[1, 0]), n=len(self))

    def mean(self, name: str) -> Estimate | None:
        """The mean difference of NLL or Brier with its standard error; None if a value is unknown or infinite."""
        total, squares = self.differences[MEANS.index(name)].tolist()
        n = len(self)
        if not np.isfinite(squares) or n < 2:
            return None
        variance = max(squares - total * total / n, 0.0) / (n - 1)
        return Estimate(total / n, sqrt(variance / n), n - 1)


def _moments(a: Floats | None, b: Floats | None) -> list[float]:
    if a is None or b is None:
        return [np.nan, np.nan]
    with np.errstate(invalid="ignore"):
        difference = b - a
    return [float(difference.sum()), float(difference @ difference)]
