"""The statistics that figures and pages show: frozen records, in natural units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan, sqrt

import numpy as np

from assay import metrics
from assay._core.arrays import Floats, Labels, Mask
from assay.metrics import Bins, ClassBins, Ranking
from assay.metrics._tables import Measurable

POINTS = 500  # of a curve; more cannot be told apart
FEW = 20  # samples; a bin with fewer shows little but noise
NARROWEST = 0.01  # kernel of a smooth diagram
FARTHEST = 12.0  # log-odds beyond which confidences are not told apart: .999994


@dataclass(frozen=True, eq=False)
class Reliability:
    """Bins, and the range of a calibrated model's accuracy 95 % of the time; nan in an empty bin."""

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
    def few(self) -> Mask:
        """Which bins have samples, but too few to judge, [b]."""
        return (self.bins.count > 0) & (self.bins.count < FEW)


def reliability(bins: Bins) -> Reliability:
    """The consistency band of each bin (Bröcker & Smith 2007), from its mean confidence and its count."""
    count = bins.count.astype(np.int64)
    n = np.maximum(count, 1)
    chance = (bins.confidence / n).clip(0, 1)
    ends = (np.where(count > 0, _binomial_quantile(p, n, chance) / n, np.nan) for p in (0.025, 0.975))
    return Reliability(bins, *ends)


def _binomial_quantile(p: float, n: Labels, chance: Floats) -> Floats:
    """The least number of successes whose cumulative probability is at least `p`, as `scipy.stats.binom.ppf`."""
    from scipy.special import bdtr, bdtrik

    # bdtrik is nan for chances below the precision of a double, where the quantile is 0.
    found: Floats = np.ceil(np.nan_to_num(bdtrik(p, n, chance)))
    below = np.maximum(found - 1, 0)
    return np.where(bdtr(below, n, chance) >= p, below, found)


@dataclass(frozen=True, eq=False)
class SmoothReliability:
    """Accuracy as a smooth function of confidence, in the range that has samples."""

    width: float  # of the Gaussian
    confidence: Floats  # [g] local mean
    accuracy: Floats  # [g]
    weight: Floats  # [g] density of the samples, 1 at its peak
    low: Floats  # [g] range of a calibrated model's accuracy 95 % of the time
    high: Floats  # [g]


def smooth_reliability(r: Ranking, *, grid: int = 201, cells: int = 1024) -> SmoothReliability:
    """Confidence and accuracy smoothed by a Gaussian as wide as the smooth ECE (Błasiok & Nakkiran 2024).

    The Gaussian is reflected at 0 and 1.
    """
    from scipy.special import ndtri

    width = max(metrics.smooth_ece(r), NARROWEST)
    cell = np.minimum((r.score * cells).astype(np.int64), cells - 1)
    columns = (r.size, r.score * r.size, r.hits, r.score * (1 - r.score) * r.size)
    at, center = np.linspace(0, 1, grid)[:, None], (np.arange(cells) + 0.5) / cells
    kernel = sum(np.exp(-0.5 * ((at - image) / width) ** 2) for image in (center, -center, 2 - center))
    count, claimed, hits, variance = (np.bincount(cell, column, cells) for column in columns)
    near = kernel @ count
    some = near >= 1  # at least one sample right here
    confidence, accuracy = (kernel @ claimed)[some] / near[some], (kernel @ hits)[some] / near[some]
    half = float(ndtri(0.975)) * np.sqrt(kernel**2 @ variance)[some] / near[some]
    low, high = (confidence - half).clip(0, 1), (confidence + half).clip(0, 1)
    return SmoothReliability(width, confidence, accuracy, near[some] / near.max(), low, high)


@dataclass(frozen=True, eq=False)
class Selective:
    """The risk-coverage curve of a model, and of a perfect ranking of the same answers."""

    coverage: Floats  # [p] ascending
    risk: Floats  # [p] share of errors among the accepted
    optimal: Floats  # [p]


def selective(r: Ranking) -> Selective:
    """Risk at each coverage, thinned, and the lowest risk that any order of the answers has there.

    A part of tied answers has its share of their errors, on average over their orders, so the curve bends between the
    ends of a tie. The optimum is above 0 once all right answers are accepted.
    """
    right = float(r.right[-1])
    accepted = np.union1d(r.kept[1:], np.linspace(1, r.n, POINTS).round())
    rows = thin(accepted / r.n, _risk(r, accepted), POINTS - 1)
    accepted = np.union1d(accepted[rows], max(right, 1))
    return Selective(accepted / r.n, _risk(r, accepted), np.maximum(1 - right / accepted, 0))


def _risk(r: Ranking, accepted: Floats) -> Floats:
    return np.interp(accepted, r.kept, r.wrong) / accepted


@dataclass(frozen=True, eq=False)
class Rates:
    """The ROC curve of right against wrong answers; right is positive."""

    wrong: Floats  # [p] share of the errors accepted
    right: Floats  # [p] share of the right answers accepted
    auroc: float


def rates(r: Ranking) -> Rates:
    """The rates at each score, starting with nothing accepted; nan if there is no error or no right answer."""
    wrong, right = (x / x[-1] if x[-1] else np.full(len(x), np.nan) for x in (r.wrong, r.right))
    rows = thin(wrong, right)
    return Rates(wrong[rows], right[rows], metrics.auroc(r))


@dataclass(frozen=True, eq=False)
class PrecisionRecall:
    """Precision against recall of right or of wrong answers."""

    positive: str  # right or wrong
    metric: str  # the key of the average precision
    recall: Floats  # [p]
    precision: Floats  # [p]
    average: float  # precision
    base: float  # share of the positive, which is the precision of chance


def precision_of_right(r: Ranking) -> PrecisionRecall:
    """Precision of right answers, the most confident first."""
    return _precision("right", "aupr_success", r.right[1:], r.kept[1:], metrics.aupr_success(r))


def precision_of_wrong(r: Ranking) -> PrecisionRecall:
    """Precision of errors, the least confident first."""
    wrong, taken = r.wrong[-1] - r.wrong[-2::-1], r.kept[-1] - r.kept[-2::-1]
    return _precision("wrong", "aupr_error", wrong, taken, metrics.aupr_error(r))


def _precision(positive: str, metric: str, hits: Floats, taken: Floats, average: float) -> PrecisionRecall:
    """The curve starts at recall 0: any part of the answers tied at the top has the precision of all of them."""
    precision, hits = np.append(hits[0] / taken[0], hits / taken), np.append(0.0, hits)
    recall = hits / hits[-1] if hits[-1] else np.full(len(hits), np.nan)
    rows = thin(recall, precision)
    return PrecisionRecall(positive, metric, recall[rows], precision[rows], average, float(hits[-1] / taken[-1]))


@dataclass(frozen=True, eq=False)
class Densities:
    """Histograms of the confidence of right and of wrong answers; each sums to its share of all samples."""

    edges: Floats  # [b + 1]
    right: Floats  # [b] share of all samples
    wrong: Floats  # [b]


def densities(x: Measurable, n_bins: int = 40) -> Densities:
    """Histograms over [0, 1], or over the range of a score that is no probability."""
    t = metrics.tables(x)
    score = t.ranking.score
    ends = (0.0, 1.0) if t.is_probability else (float(score[-1]), float(score[0]))
    return _densities(t.ranking, score, np.histogram_bin_edges(score, n_bins, ends))


def densities_in_odds(x: Measurable, n_bins: int = 40) -> Densities:
    """The same over the log-odds of the confidence, where those near 1 lie apart; the ends take what lies beyond."""
    from scipy.special import logit

    r = metrics.ranking(x)
    score = np.clip(logit(r.score), -FARTHEST, FARTHEST)
    low, high = float(score[-1]), float(score[0])
    return _densities(r, score, np.linspace(low, max(high, low + 1), n_bins + 1))


def _densities(r: Ranking, score: Floats, edges: Floats) -> Densities:
    right, wrong = (np.histogram(score, edges, weights=column)[0] / r.n for column in (r.hits, r.misses))
    return Densities(edges, right, wrong)


@dataclass(frozen=True, eq=False)
class Classwise:
    """Each class against the rest: its calibration error, and by how much it is expected too often."""

    ece: Floats  # [k]; their mean is the classwise ECE
    excess: Floats  # [k] mean probability minus frequency


def classwise(bins: ClassBins) -> Classwise:
    """The calibration error of each class; `metrics.classwise_ece` is their mean."""
    gap = bins.confidence - bins.correct
    gap[:, 0] += bins.rest_confidence - bins.rest_correct
    return Classwise(np.abs(gap).sum(1) / bins.n, gap.sum(1) / bins.n)


@dataclass(frozen=True)
class Line:
    """One curve of a family: a metric by epoch, by strength of a coefficient, by severity of a shift."""

    name: str
    x: tuple[float, ...]
    mean: tuple[float, ...]
    spread: tuple[float, ...]  # standard deviation over seeds, 0 of one; or the error that an analysis names
    ends: tuple[tuple[float, float], ...] = ()  # least and greatest of the seeds; empty if it has no seeds


@dataclass(frozen=True)
class MethodPoint:
    """A method on both axes, calibration and refinement, one value a seed."""

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


def thin(x: Floats, y: Floats, most: int = POINTS) -> Labels:
    """At most `most` rows of a curve, evenly spaced along it, including both ends.

    Every other row is within 1 / (most - 1) of the curve's length of one of them.
    """
    if len(x) <= most:
        return np.arange(len(x))
    way = np.append(0.0, np.cumsum(np.nan_to_num(np.abs(np.diff(x)) + np.abs(np.diff(y)))))
    return np.unique(np.append(np.searchsorted(way, np.linspace(0, way[-1], most - 1)), len(x) - 1))


def mean_and_spread(values: tuple[float, ...]) -> tuple[float, float]:
    """Mean and standard deviation over seeds; the spread of one seed is 0."""
    mean = sum(values) / len(values)
    return mean, sqrt(sum((v - mean) ** 2 for v in values) / (len(values) - 1)) if len(values) > 1 else 0.0


def line(name: str, values: Mapping[float, Sequence[float]]) -> Line:
    """A curve through the means over seeds at each x; undefined seeds do not count, nan if all are undefined."""
    defined = {x: tuple(v for v in values[x] if not isnan(v)) for x in sorted(values)}
    found = [mean_and_spread(seeds) if seeds else (nan, nan) for seeds in defined.values()]
    mean, spread = zip(*found, strict=True)
    ends = tuple((min(seeds, default=nan), max(seeds, default=nan)) for seeds in defined.values())
    return Line(name, tuple(defined), mean, spread, ends)
