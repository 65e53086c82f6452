"""What the figures and the page show, computed: frozen records, in natural units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan, sqrt

import numpy as np
from numpy.typing import NDArray

from assay import metrics
from assay.metrics import Bins, ClassBins, Floats, Ranking
from assay.predictions import Outcomes

POINTS = 500  # of a curve that is shown; more cannot be told apart
FEW = 20  # samples; a bin with fewer shows little but noise
NARROWEST = 0.01  # kernel of a smooth diagram


@dataclass(frozen=True, eq=False)
class Reliability:
    """Bins, and between which accuracies a calibrated model's would lie 95 % of the time; nan in an empty bin."""

    bins: Bins
    low: Floats  # [b]
    high: Floats  # [b]

    @property
    def lower(self) -> Floats:
        """Left edges, [b]."""
        return np.append(0.0, self.bins.upper[:-1])

    @property
    def confidence(self) -> Floats:
        """Mean confidence, [b]; nan in an empty bin."""
        return np.where(self.bins.count > 0, self.bins.accuracy + self.bins.gap, np.nan)

    @property
    def few(self) -> NDArray[np.bool_]:
        """Which bins hold some samples, but too few to judge by, [b]."""
        return (self.bins.count > 0) & (self.bins.count < FEW)


def reliability(bins: Bins) -> Reliability:
    """The consistency band of each bin (Bröcker & Smith 2007): how many answers of its mean confidence come right."""
    from scipy.stats import binom

    count = bins.count.astype(np.int64)
    chance = (bins.confidence / np.maximum(count, 1)).clip(0, 1)
    ends = (np.where(count > 0, binom.ppf(p, count, chance) / np.maximum(count, 1), np.nan) for p in (0.025, 0.975))
    return Reliability(bins, *ends)


@dataclass(frozen=True, eq=False)
class SmoothReliability:
    """Accuracy as a smooth function of confidence, where there are samples to tell it."""

    width: float  # of the Gaussian
    confidence: Floats  # [g] its local mean
    accuracy: Floats  # [g]
    weight: Floats  # [g] density of the samples, 1 at its peak
    low: Floats  # [g] where a calibrated model's accuracy would lie 95 % of the time ...
    high: Floats  # [g]


def smooth_reliability(r: Ranking, *, grid: int = 201, cells: int = 1024) -> SmoothReliability:
    """Both smoothed by a Gaussian as wide as the smooth ECE, reflected at 0 and 1 (Błasiok & Nakkiran 2024)."""
    from scipy.special import ndtri

    width = max(metrics.smooth_ece(r), NARROWEST)
    cell = np.minimum((r.score * cells).astype(np.int64), cells - 1)
    columns = (r.size, r.score * r.size, r.hits, r.score * (1 - r.score) * r.size)
    at, center = np.linspace(0, 1, grid)[:, None], (np.arange(cells) + 0.5) / cells
    kernel = sum(np.exp(-0.5 * ((at - image) / width) ** 2) for image in (center, -center, 2 - center))
    count, claimed, hits, variance = (np.bincount(cell, column, cells) for column in columns)
    near = kernel @ count
    some = near >= 1  # of a sample right here
    confidence, accuracy = (kernel @ claimed)[some] / near[some], (kernel @ hits)[some] / near[some]
    half = float(ndtri(0.975)) * np.sqrt(kernel**2 @ variance)[some] / near[some]
    low, high = (confidence - half).clip(0, 1), (confidence + half).clip(0, 1)
    return SmoothReliability(width, confidence, accuracy, near[some] / near.max(), low, high)


@dataclass(frozen=True, eq=False)
class Selective:
    """The risk-coverage curve, and that of a perfect ranking of the same answers."""

    coverage: Floats  # [p] ascending
    risk: Floats  # [p] share of errors among the accepted
    optimal: Floats  # [p]


def selective(r: Ranking) -> Selective:
    """Risk at each coverage, thinned; no order of the answers has fewer errors among the accepted than the optimum.

    Of tied answers a part has its share of their errors, on average over their orders, so the curve bends between the
    ends of a tie; the optimum leaves 0 where the right answers end.
    """
    right = r.n - r.n_wrong
    kept = np.union1d(r.kept[1:], np.linspace(1, r.n, POINTS).round())
    rows = thin(kept / r.n, _risk(r, kept), POINTS - 1)
    kept = np.union1d(kept[rows], max(right, 1))
    return Selective(kept / r.n, _risk(r, kept), np.maximum(1 - right / kept, 0))


def _risk(r: Ranking, kept: Floats) -> Floats:
    return np.interp(kept, r.kept, r.wrong) / kept


@dataclass(frozen=True, eq=False)
class Rates:
    """The ROC curve of telling right answers from wrong ones, right being positive."""

    wrong: Floats  # [p] share of the errors accepted
    right: Floats  # [p] share of the right answers accepted
    auroc: float


def rates(r: Ranking) -> Rates:
    """Nothing accepted, then each score; nan where there is no error or no right answer."""
    wrong, right = (x / x[-1] if x[-1] else np.full(len(x), np.nan) for x in (r.wrong, r.right))
    rows = thin(wrong, right)
    return Rates(wrong[rows], right[rows], metrics.auroc(r))


@dataclass(frozen=True, eq=False)
class PrecisionRecall:
    """Of those taken, how many are positive, against the share of the positive that is taken."""

    positive: str  # right or wrong answers
    recall: Floats  # [p]
    precision: Floats  # [p]
    average: float  # precision
    base: float  # share of the positive, the precision of chance


def precision_of_right(r: Ranking) -> PrecisionRecall:
    """Right answers are positive, the most confident taken first."""
    return _precision("right", r.right[1:], r.kept[1:], metrics.aupr_success(r))


def precision_of_wrong(r: Ranking) -> PrecisionRecall:
    """Errors are positive, the least confident taken first."""
    wrong, taken = r.wrong[-1] - r.wrong[-2::-1], r.kept[-1] - r.kept[-2::-1]
    return _precision("wrong", wrong, taken, metrics.aupr_error(r))


def _precision(positive: str, found: Floats, taken: Floats, average: float) -> PrecisionRecall:
    """It starts at none taken: of answers that are tied at the top any part has the precision of the whole."""
    precision, found = np.append(found[0] / taken[0], found / taken), np.append(0.0, found)
    recall = found / found[-1] if found[-1] else np.full(len(found), np.nan)
    rows = thin(recall, precision)
    return PrecisionRecall(positive, recall[rows], precision[rows], average, float(found[-1] / taken[-1]))


@dataclass(frozen=True, eq=False)
class Densities:
    """How the confidence of right and of wrong answers is spread; each sums to its share of all samples."""

    edges: Floats  # [b + 1]
    right: Floats  # [b] share of all samples
    wrong: Floats  # [b]


def densities(outcomes: Outcomes, n_bins: int = 40) -> Densities:
    """Over [0, 1], or for a mere score over what it takes."""
    score, correct = outcomes.confidence.cpu().numpy(), outcomes.correct.cpu().numpy()
    ends = (0.0, 1.0) if outcomes.is_probability else (float(score.min()), float(score.max()))
    edges = np.histogram_bin_edges(score, n_bins, ends)
    right, wrong = (np.histogram(score[rows], edges)[0] / len(score) for rows in (correct, ~correct))
    return Densities(edges, right, wrong)


@dataclass(frozen=True, eq=False)
class Classwise:
    """Each class against the rest: its calibration error, and how much too often it is expected."""

    ece: Floats  # [k]; their mean is the classwise ECE
    excess: Floats  # [k] mean probability minus frequency


def classwise(bins: ClassBins) -> Classwise:
    """The bins of each class by themselves, where `metrics.classwise_ece` takes their mean."""
    gap = (bins.confidence - bins.correct).cpu().numpy()
    gap[:, 0] += (bins.rest_confidence - bins.rest_correct).cpu().numpy()
    return Classwise(np.abs(gap).sum(1) / bins.n, gap.sum(1) / bins.n)


@dataclass(frozen=True)
class Line:
    """One curve of a family: a metric by epoch, by strength of a coefficient, by severity of a shift."""

    name: str
    x: tuple[float, ...]
    mean: tuple[float, ...]
    spread: tuple[
        float, ...
    ]  # standard deviation over seeds, 0 where there is one; or the error that an analysis names


@dataclass(frozen=True)
class Method:
    """A method on both axes, one value a seed."""

    name: str
    calibration: tuple[float, ...]
    refinement: tuple[float, ...]


@dataclass(frozen=True)
class Effect:
    """A standardized difference with its interval."""

    name: str
    size: float
    low: float
    high: float


def thin(x: Floats, y: Floats, most: int = POINTS) -> NDArray[np.int64]:
    """At most `most` rows of a curve, evenly along its way, both ends among them.

    No row left out is farther from a kept one than a step of 1 / (most - 1) of the way.
    """
    if len(x) <= most:
        return np.arange(len(x))
    way = np.append(0.0, np.cumsum(np.nan_to_num(np.abs(np.diff(x)) + np.abs(np.diff(y)))))
    return np.unique(np.append(np.searchsorted(way, np.linspace(0, way[-1], most - 1)), len(x) - 1))


def mean_and_spread(values: tuple[float, ...]) -> tuple[float, float]:
    """Mean and standard deviation over seeds; of one seed the spread is 0."""
    mean = sum(values) / len(values)
    return mean, sqrt(sum((v - mean) ** 2 for v in values) / (len(values) - 1)) if len(values) > 1 else 0.0


def line(name: str, values: Mapping[float, Sequence[float]]) -> Line:
    """A curve through the seeds' means at each x; seeds where it is undefined do not count, nan where it is for all."""
    defined = {x: tuple(v for v in values[x] if not isnan(v)) for x in sorted(values)}
    found = [mean_and_spread(seeds) if seeds else (nan, nan) for seeds in defined.values()]
    return Line(name, tuple(defined), *zip(*found, strict=True))
