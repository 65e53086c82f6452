"""The tables that metrics are read from: lazy, cached, and shared by everything that looks at one set of predictions.

`ranking(x)`, `equal_width(x)`, `equal_mass(x)`, `isotonic(x)` and `class_bins(x)` take predictions, outcomes, tables or
the table itself, so that `metrics.ece(predictions)` and `metrics.ece(bins)` are the same call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Protocol, TypeGuard, TypeVar, cast

import numpy as np

from assay._core.arrays import InputError
from assay._core.plain import ClassSums
from assay.metrics._bins import Bins, MassBins, mass_bins_of, refuse_bins, width_bins, width_bins_of
from assay.metrics._classwise import ClassBins, class_bins_of, weighted_class_bins
from assay.metrics._isotonic import Isotonic, isotonic_of
from assay.metrics._ranking import Ranking, ranking_of
from assay.predictions import TAGS, Outcomes, Predictions, unknown_source

N_BINS = 15
THRESHOLD = 0.01  # of the classwise bins: probabilities at most this are summed, not binned

T = TypeVar("T")


class Moments(NamedTuple):
    """A column of numbers in short."""

    n: int
    mean: float
    variance: float  # over n - 1; 0 of one number


class Summary(Protocol):
    """Tables of rows that are not in memory: what `assay.scale.Tally` gives."""

    @property
    def is_probability(self) -> bool: ...

    @property
    def n_classes(self) -> int:
        """0 where only confidences are known."""

    @property
    def ranking(self) -> Ranking: ...

    @property
    def thresholds(self) -> Ranking:
        """The same counts at scores above which exactly so many samples are."""

    @property
    def width(self) -> Bins: ...

    @property
    def class_bins(self) -> ClassBins | None: ...

    @property
    def of_positive(self) -> Summary | None: ...

    @property
    def map_digest(self) -> str | None:
        """`maps.digest` of the maps that were applied to the rows; None where rows differ in it."""

    @property
    def groups(self) -> Mapping[str, Summary]:
        """Of the rows of each group, where they have groups."""

    @property
    def by_label(self) -> bool:
        """Whether the groups are chosen by the true label."""

    def without(self, group: str) -> Summary:
        """Of the rows of all other groups."""

    def mean(self, name: str) -> tuple[float, float] | None:
        """Of the column `nll`, `brier` or `entropy`, the mean and its standard error; None if it is absent."""

    def moments(self, name: str) -> tuple[Moments, Moments]:
        """Those of right answers and of errors, of rows that count alike."""

    def bounds(self) -> dict[str, float]:
        """By metric, how far it can be from its value on the rows; metrics that are absent have no bound."""


def is_summary(x: object) -> TypeGuard[Summary]:
    """Whether something is a summary; only these have bounds."""
    return hasattr(x, "bounds")


@dataclass(frozen=True, eq=False)
class Tables:
    """One set of predictions and everything computed from it so far, by one pass over the rows and one sort at most."""

    source: Predictions | Outcomes | Summary
    classwise: bool = True  # whether the pass over the rows fills the classwise bins too
    draws: int = 1000  # of the noise floors
    seed: int = 0
    _found: dict[object, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.source, Predictions | Outcomes) and not is_summary(self.source):
            raise unknown_source(self.source)

    def once(self, compute: Callable[[Tables], T]) -> T:
        """Apply `compute` to these tables, the first time only."""
        if compute in self._found:
            return cast(T, self._found[compute])
        found = self._found[compute] = compute(self)
        return found

    @cached_property
    def outcomes(self) -> Outcomes:
        return self._pass[0]

    @property
    def summary(self) -> Summary | None:
        """The summary that these tables are read from, if the rows are not in memory."""
        return None if isinstance(self.source, Predictions | Outcomes) else self.source

    def has(self, name: str) -> bool:
        """Whether the column `nll`, `brier` or `entropy` is known."""
        if self.summary is not None:
            return self.summary.mean(name) is not None
        return getattr(self.outcomes, name) is not None

    @cached_property
    def class_bins(self) -> ClassBins:
        """Bins of every class's probability; predictions have them, outcomes do not."""
        if self.summary is not None and self.summary.class_bins is not None:
            return self.summary.class_bins
        return self._pass[1] or Tables(self.source).class_bins

    @cached_property
    def _pass(self) -> tuple[Outcomes, ClassBins | None]:
        if isinstance(self.source, Outcomes):
            return self.source, None
        if not isinstance(self.source, Predictions):
            raise InputError("a summary has no rows; what is asked for needs them")
        if not self.classwise:
            return self.source.outcomes(), None
        if self.source.weights is not None:
            return self.source.outcomes(), weighted_class_bins(self.source, N_BINS, THRESHOLD)
        sums = ClassSums.empty(self.source.n_classes, N_BINS, THRESHOLD)
        outcomes = self.source.outcomes(sums)
        return outcomes, class_bins_of(sums, len(outcomes))

    @cached_property
    def ranking(self) -> Ranking:
        return ranking_of(self.outcomes) if self.summary is None else self.summary.ranking

    @cached_property
    def width(self) -> Bins:
        if self.summary is not None:
            return self.summary.width
        if self.outcomes.weights is not None:
            return width_bins_of(self.ranking, N_BINS)
        return width_bins(self.outcomes.confidence, self.outcomes.correct, N_BINS)

    @cached_property
    def mass_bins(self) -> MassBins:
        return mass_bins_of(self.ranking, N_BINS)

    @property
    def mass(self) -> Bins:
        return self.mass_bins.bins

    @cached_property
    def isotonic(self) -> Isotonic:
        return isotonic_of(self.ranking)

    @cached_property
    def positive(self) -> Tables:
        """Tables of the probability of class 1, for two classes."""
        if self.summary is not None and self.summary.of_positive is not None:
            return Tables(self.summary.of_positive, draws=self.draws, seed=self.seed)
        assert isinstance(self.source, Predictions)
        return Tables(positive_class(self.source), draws=self.draws, seed=self.seed)

    @cached_property
    def is_probability(self) -> bool:
        return self.outcomes.is_probability if self.summary is None else self.summary.is_probability

    @property
    def n_classes(self) -> int:
        """Number of classes; 0 for outcomes."""
        return 0 if isinstance(self.source, Outcomes) else self.source.n_classes


Measurable = Predictions | Outcomes | Summary | Tables
Rankable = Measurable | Ranking
Binnable = Rankable | Bins


def tables(x: Measurable) -> Tables:
    """Tables of predictions or outcomes; tables are returned as they are."""
    return x if isinstance(x, Tables) else Tables(x)


def plain_tables(x: Measurable) -> Tables:
    """The same without classwise bins, for one metric that does not need them."""
    return x if isinstance(x, Tables) else Tables(x, classwise=False)


def once(x: Rankable, compute: Callable[[Any], T]) -> T:
    """Apply `compute` to `x`; for tables the result is cached."""
    return x.once(compute) if isinstance(x, Tables) else compute(x)


def ranking(x: Rankable) -> Ranking:
    """The ranking by confidence: cumulative counts at each distinct score."""
    return x if isinstance(x, Ranking) else plain_tables(x).ranking


def equal_width(x: Binnable, n_bins: int = N_BINS) -> Bins:
    """Bins (0, 1/b], ..., (1 - 1/b, 1] as in Guo et al. (2017); a confidence of 0 is in the first."""
    if isinstance(x, Bins):
        return x
    if isinstance(x, Ranking):
        return width_bins_of(x, n_bins)
    t = plain_tables(x)
    return t.width if n_bins == N_BINS else width_bins_of(t.ranking, n_bins)


def equal_mass(x: Binnable, n_bins: int = N_BINS) -> Bins:
    """Bins of equal count: the sample of ascending rank i (from 0) is in bin floor(i b / n).

    Tied confidences share the bin of their first rank, so some bins may be empty.
    """
    return x if isinstance(x, Bins) else mass_bins(x, n_bins).bins


def mass_bins(x: Rankable, n_bins: int = N_BINS) -> MassBins:
    """The same with the distances of confidence from the accuracy of its bin."""
    return x.mass_bins if isinstance(x, Tables) and n_bins == N_BINS else mass_bins_of(ranking(x), n_bins)


def isotonic(x: Rankable) -> Isotonic:
    """Isotonic regression of correctness on confidence."""
    return x.isotonic if isinstance(x, Tables) else isotonic_of(ranking(x))


def class_bins(x: Predictions | Tables, n_bins: int = N_BINS, threshold: float | None = None) -> ClassBins:
    """Bins of every class's probability; the threshold is .01, or 1 / b where bins are narrower than that."""
    if isinstance(x, Tables) and n_bins == N_BINS and threshold is None:
        return x.class_bins
    source = cast(Predictions, x.source if isinstance(x, Tables) else x)
    refuse_bins(n_bins)
    threshold = min(THRESHOLD, 1 / n_bins) if threshold is None else threshold
    if source.weights is not None:
        return weighted_class_bins(source, n_bins, threshold)
    sums = ClassSums.empty(source.n_classes, n_bins, threshold)
    source.outcomes(sums)
    return class_bins_of(sums, len(source))


def positive_class(predictions: Predictions) -> Outcomes:
    """Outcomes of class 1 of two: its probability is the confidence, and a label of 1 is a success.

    Every calibration metric of the result is one of the positive class instead of the top label.
    """
    from scipy.special import expit

    if predictions.n_classes != 2:
        raise ValueError(f"only two classes have a positive one; these predictions have {predictions.n_classes}")
    values = predictions.values.astype(np.float64)
    p = np.minimum(values[:, 1], 1) if predictions.normalized else expit(values[:, 1] - values[:, 0])
    return Outcomes(p, predictions.labels == 1, **{name: getattr(predictions, name) for name in TAGS})
