"""A summary of any number of rows in a table of fixed size; two of them add up."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from importlib import import_module
from math import isfinite, isnan, nan, sqrt
from operator import add
from pathlib import Path

import numpy as np

from assay._core.arrays import Floats, InputError, NoRows
from assay._core.plain import from_zero
from assay._core.writing import replacing
from assay.grouping import Pairs, chosen_by_label
from assay.metrics import METRICS, Bins, ClassBins, Moments, Order, Ranking, equal_width, weighted_ranking
from assay.predictions import Outcomes, Predictions
from assay.scale._bounds import bounds, expected_order
from assay.scale._cells import MOST, Cells

MEANS = ("nll", "brier", "entropy")
AREAS = ("auroc", "aupr_success", "aupr_error", "aurc", "e_aurc", "augrc")
ORDERED = (*AREAS, "fpr95", "risk_at_80", "risk_at_90", "risk_at_95")  # exact once the rows have been sorted
SOME_GROUPS = "rows with groups and rows without do not add up to one tally; give a group to all"


@dataclass(frozen=True, eq=False)
class Tally:
    """How many answers were given with which confidence, and how many were wrong; `+` adds rows to rows.

    Up to 20,000 distinct scores each is kept, and every metric is exact. Beyond, confidences are counted in the cells
    of a grid, the finest on which no more than that have samples: accuracy, NLL, Brier, ECE and classwise ECE stay
    exact, `bounds` says how far the metrics of the ranking can be from their values on the rows. Any split of the rows,
    in any order, adds up to the same tally.

    Weighted rows give a weighted tally: metrics, intervals and noise floors are those of the weighted rows.

    >>> from assay import Outcomes, evaluate
    >>> a = Tally.of(Outcomes.from_scores([0.9, 0.8], [True, True]))
    >>> b = Tally.of(Outcomes.from_scores([0.7, 0.6], [False, True]))
    >>> {key: round(value, 3) for key, value in evaluate(a + b, ["ece", "auroc"]).items()}
    {'ece': 0.35, 'auroc': 0.667}
    """

    cells: Cells
    sums: Floats  # [3, 2, 2] of NLL, Brier and entropy, of right answers and errors, and of squares; nan where unknown;
    # of weighted rows [3, 2, 3]: times the weight, times its square, and squares times that
    class_bins: ClassBins | None = None
    of_positive: Tally | None = None  # of two classes, the tally of the probability of class 1
    is_probability: bool = True
    groups: dict[str, Tally] = field(default_factory=dict)  # of the rows of each group, where they have groups
    label_groups: Pairs | None = field(default_factory=dict)  # None of too many labels to be what groups are chosen by
    order: Order | None = None  # of all rows, where they have been sorted; a sum of tallies has none
    map_digest: str | None = ""  # `maps.digest` of the maps that were applied; None where rows differ in it
    classes: tuple[str, ...] | None = None  # [k] what the classes are called, in the order in which they are counted

    @staticmethod
    def of(rows: Predictions | Outcomes) -> Tally:
        """The tally of rows in memory; of no rows, a tally that adds nothing to another."""
        filling = import_module("assay.scale._filling").Filling()
        filling.add(rows)
        made: Tally = filling.tally()
        return made

    def __add__(self, other: Tally) -> Tally:
        if not isinstance(other, Tally):
            return NotImplemented
        if not (len(self) and len(other)):
            return self if len(self) else other
        if bool(self.groups) != bool(other.groups):
            raise InputError(SOME_GROUPS)
        return self.merged(other)

    def merged(self, other: Tally) -> Tally:
        """The sum, also of tallies whose rows a `Filling` still has to count."""
        if self.is_probability != other.is_probability:
            raise InputError("a probability and a score that is none do not add up to one tally")
        if self.weighted != other.weighted:
            raise InputError("rows with weights and rows without do not add up to one tally; give weights to all")
        self._refuse_other_classes(other)
        classes = None
        if self.class_bins is not None and other.class_bins is not None:
            classes = self.class_bins + other.class_bins
        positive = None
        if self.of_positive is not None and other.of_positive is not None:
            positive = self.of_positive + other.of_positive
        cells = (self.cells + other.cells).fitting(self.is_probability)
        groups = self.groups | {
            name: self.groups[name] + group if name in self.groups else group for name, group in other.groups.items()
        }
        labels = added_pairs(self.label_groups, other.label_groups)
        return Tally(
            *(cells, self.sums + other.sums, classes, positive, self.is_probability, groups, labels),
            map_digest=self.map_digest if self.map_digest == other.map_digest else None,
            classes=self.classes or other.classes,
        )

    def _refuse_other_classes(self, other: Tally) -> None:
        if self.n_classes and other.n_classes and self.n_classes != other.n_classes:
            raise InputError(
                f"predictions of {self.n_classes} classes and of {other.n_classes} do not add up to one tally"
            )
        if self.classes and other.classes and self.classes != other.classes:
            i = next(i for i, name in enumerate(self.classes) if name != other.classes[i])
            raise InputError(
                f"class {i} is '{self.classes[i]}' in one tally and '{other.classes[i]}' in the other; "
                "bring the rows into one order by Predictions.in_order before they are counted"
            )

    def __len__(self) -> int:
        """How many rows it has counted."""
        return self.cells.n

    def __repr__(self) -> str:
        kind = f"{'grid' if self.cells.level else 'exact'}{', weighted' if self.weighted else ''}"
        return f"Tally(n={len(self)}, errors={self.cells.n_wrong}, {kind})"

    @property
    def weighted(self) -> bool:
        return bool(self.sums.shape[2] == 3)

    @property
    def by_label(self) -> bool:
        """Whether the groups are chosen by the true label."""
        return chosen_by_label(self.label_groups or {})

    def without(self, group: str) -> Tally:
        """The tally of all other groups."""
        return reduce(add, (tally for name, tally in self.groups.items() if name != group))

    @property
    def n_classes(self) -> int:
        return 0 if self.class_bins is None else len(self.class_bins.count)

    @cached_property
    def ranking(self) -> Ranking:
        """The ranking by confidence; a cell ranks as one score, the mean of its confidences."""
        if not len(self):
            raise NoRows("no rows")
        cells = self.cells.in_units
        blocks = self._blocks(cells.claims / cells.table[:, 0])
        if not self.cells.mixed.any():
            return blocks
        return replace(blocks, order=self.order or expected_order(cells, blocks))

    @cached_property
    def thresholds(self) -> Ranking:
        """The same counts at the lowest confidence of each cell: exactly so many samples have at least that."""
        return self._blocks(self.cells.lowest) if self.cells.level else self.ranking

    def _blocks(self, score: Floats) -> Ranking:
        cells, n = self.cells.in_units, len(self)
        kept, wrong = (from_zero(column[::-1]) for column in cells.table.T[:2])
        score = np.where(cells.mixed, score, cells.table[:, 2])[::-1]
        if not self.weighted:
            return Ranking(score, kept, wrong)
        squares = (from_zero(column[::-1]) for column in cells.squares)
        return weighted_ranking(score, [kept, wrong, *squares], self.cells.weight / n, n, cells.n_wrong)

    @cached_property
    def width(self) -> Bins:
        """Bins of equal width."""
        return self.cells.in_units.width if self.cells.level else equal_width(self.ranking)

    def mean(self, name: str) -> tuple[float, float] | None:
        """Of NLL, Brier or entropy, the mean and its standard error; None if unknown."""
        total, first, second = self.sums[MEANS.index(name)].sum(0)[[0, -2, -1]].tolist()
        if isnan(total):
            return None
        cells, n = self.cells, len(self)
        mean = total / cells.weight
        if not isfinite(total):
            return mean, nan
        spread = max(second - 2 * mean * first + mean**2 * float(cells.squares[0].sum()), 0.0)
        return mean, sqrt(spread * n / max(n - 1, 1)) / cells.weight

    def moments(self, name: str) -> tuple[Moments, Moments]:
        """Of NLL, Brier or entropy, those of right answers and of errors, of rows that count alike."""
        sums, n_wrong = self.sums[MEANS.index(name)], self.cells.n_wrong
        return _moments(len(self) - n_wrong, *sums[0].tolist()), _moments(n_wrong, *sums[1].tolist())

    def bounds(self) -> dict[str, float]:
        """By metric, how far it can be from its value on the rows; of absent metrics no bound is known."""
        found = dict.fromkeys(METRICS, 0.0)
        if self.cells.mixed.any():
            found = bounds(self.cells.in_units) | (dict.fromkeys(ORDERED, 0.0) if self.order else {})
        of_class_1 = {} if self.of_positive is None else self.of_positive.bounds()
        same = {"roc_auc": "auroc", "average_precision": "aupr_success"}
        return found | {key: of_class_1[other] for key, other in same.items() if other in of_class_1}

    def to_bytes(self) -> bytes:
        """As bytes, in the npz format."""
        written: bytes = import_module("assay.scale._storing").to_bytes(self)
        return written

    @staticmethod
    def from_bytes(stored: bytes) -> Tally:
        made: Tally = import_module("assay.scale._storing").from_bytes(stored)
        return made

    def save(self, file: str | Path) -> None:
        """Write it to a file, which appears whole or not at all."""
        with replacing(Path(file)) as stream:
            stream.write(self.to_bytes())

    @staticmethod
    def load(file: str | Path) -> Tally:
        try:
            return Tally.from_bytes(Path(file).read_bytes())
        except (OSError, InputError) as problem:
            reason = problem.strerror if isinstance(problem, OSError) else problem
            raise InputError(f"{file}: {reason}") from problem


def added_pairs(a: Pairs | None, b: Pairs | None) -> Pairs | None:
    """Rows of each label and group; None if there are more labels than any classes."""
    if a is None or b is None or len(a.keys() | b.keys()) > MOST:
        return None
    return dict(Counter(a) + Counter(b))


def _moments(n: int, total: float, squares: float) -> Moments:
    mean = total / max(n, 1)
    spread = max(squares - n * mean * mean, 0.0) if isfinite(total) else nan
    return Moments(n, mean, spread / max(n - 1, 1))
