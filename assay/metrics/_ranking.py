"""Failure prediction: one sorted table, from which every ranking metric is a line."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil, nan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from assay._core import arrays, loops
from assay._core.arrays import InputError
from assay.predictions import Outcomes

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Ranking:
    """Cumulative counts at each distinct score, most confident first.

    Accept everything scored at least `score[i]`: how many samples are kept, and how many of them are wrong?
    Ties move together, so no metric depends on the order of the samples. Rankings of two sets of rows merge by `+`.
    """

    score: Floats  # [t] distinct scores, descending
    kept: Floats  # [t + 1] samples accepted: none, those of the first score, ..., all
    wrong: Floats  # [t + 1] errors among them

    def __post_init__(self) -> None:
        for name in ("score", "kept", "wrong"):
            column = np.ascontiguousarray(getattr(self, name), dtype=np.float64)
            object.__setattr__(self, name, column if column.flags.writeable else column.copy())

    def __add__(self, other: Ranking) -> Ranking:
        score = np.concatenate([self.score, other.score])
        order = np.argsort(-score)
        size, misses = np.concatenate([self.size, other.size]), np.concatenate([self.misses, other.misses])
        last = last_of_runs(score[order])
        ends = np.append(0, last + 1)
        return Ranking(score[order[last]], _from_zero(size[order])[ends], _from_zero(misses[order])[ends])

    @cached_property
    def n(self) -> int:
        return int(self.kept[-1])

    @cached_property
    def n_wrong(self) -> int:
        return int(self.wrong[-1])

    @cached_property
    def _spread(self) -> _Spread:
        return _Spread(*(loops.spread if loops.AVAILABLE else _spread)(self.score, self.kept, self.wrong))

    @property
    def right(self) -> Floats:
        """Right answers among the kept, [t + 1]."""
        return self._spread.right

    @property
    def claimed(self) -> Floats:
        """Sum of the confidence of the kept: the right answers it promises, [t + 1]."""
        return self._spread.claimed

    @property
    def size(self) -> Floats:
        """Samples at each score, [t]."""
        return self._spread.size

    @property
    def misses(self) -> Floats:
        """Errors at each score, [t]."""
        return self._spread.misses

    @property
    def hits(self) -> Floats:
        """Right answers at each score, [t]."""
        return self._spread.hits

    @property
    def precision(self) -> Floats:
        """Accuracy of the kept at each threshold, [t]; the selective risk is what is missing to 1."""
        return self.right[1:] / self.kept[1:]

    @property
    def claims(self) -> Floats:
        """Sum of the confidence at each score, [t]."""
        return self.score * self.size

    @property
    def ascending(self) -> Floats:
        """The scores from below, to search in."""
        return self.score[::-1]


class _Spread(NamedTuple):
    """What a ranking's cumulative counts say of the right answers and of each score by itself."""

    right: Floats
    claimed: Floats
    size: Floats
    misses: Floats
    hits: Floats


def _spread(score: Floats, kept: Floats, wrong: Floats) -> tuple[Floats, ...]:
    size, misses = kept[1:] - kept[:-1], wrong[1:] - wrong[:-1]
    return kept - wrong, _from_zero(score * size), size, misses, size - misses


def ranking(outcomes: Outcomes) -> Ranking:
    """Sort the scores once, and find the place of each error among them."""
    if len(outcomes) == 0:
        raise InputError("no rows")
    # Plain doubles sort several times faster than doubles with an index or a flag in tow; negated, they descend.
    negated = np.negative(outcomes.confidence.cpu().numpy(), dtype=np.float64)
    wrong = np.sort(negated.compress(~outcomes.correct.cpu().numpy()))
    negated.sort()
    if loops.AVAILABLE:
        return Ranking(*loops.runs(negated, wrong))
    last = last_of_runs(negated)
    distinct = negated.take(last)
    misses = np.bincount(distinct.searchsorted(wrong), minlength=len(distinct))
    return Ranking(-distinct, np.append(0.0, last + 1), _from_zero(misses))


def last_of_runs(values: Floats) -> NDArray[np.int64]:
    """Where each run of equal neighbors ends."""
    return np.flatnonzero(np.append(values[1:] != values[:-1], True))


def _from_zero(steps: NDArray[np.generic]) -> Floats:
    """Cumulative sums, with the empty one in front."""
    out = np.empty(len(steps) + 1)
    out[0], out[1:] = 0, steps
    return arrays.cumsum(out)


def midway(cumulative: Floats, steps: Floats) -> Floats:
    """What lies above each score plus half of what is at it: ties count half."""
    return cumulative[:-1] + steps / 2


def auroc(r: Ranking) -> float:
    """Chance that a right answer outranks a wrong one, ties counting half; nan where there is none of either."""
    return ratio(float(r.right[:-1] @ r.misses + r.hits @ r.misses / 2), float(r.right[-1] * r.wrong[-1]))


def fpr95(r: Ranking, *, nearest: bool = False) -> float:
    """Share of errors still accepted once 95 % of the right answers are; nan as for `auroc`.

    `nearest` takes the corner of the ROC curve whose rate is nearest .95 instead of the first at or above it, as the
    code of CRL and FMFP does through scikit-learn's thinned curve.
    """
    if r.n_wrong in (0, r.n):
        return nan
    if not nearest:
        enough = -(-19 * (r.n - r.n_wrong) // 20)
        return float(r.wrong[r.right.searchsorted(enough)]) / r.n_wrong
    tpr = r.right / r.right[-1]
    corner = np.ones(len(tpr), dtype=bool)
    corner[1:-1] = (np.diff(r.right, n=2) != 0) | (np.diff(r.wrong, n=2) != 0)
    return float(r.wrong[corner][np.abs(tpr[corner] - 0.95).argmin()]) / r.n_wrong


def aupr_success(r: Ranking, *, trapezoid: bool = False) -> float:
    """Average precision with right answers as the positive class; nan if there are none.

    `trapezoid` joins the points of the curve by straight lines, as FMFP's code does.
    """
    precision = (r.precision + np.append(1.0, r.precision[:-1])) / 2 if trapezoid else r.precision
    return ratio(float(precision @ r.hits), float(r.right[-1]))


def aupr_error(r: Ranking, *, trapezoid: bool = False) -> float:
    """Average precision with errors as the positive class, the least confident first; nan if there are none."""
    precision = (r.wrong[-1] - r.wrong[:-1]) / (r.kept[-1] - r.kept[:-1])  # of all at or below each score
    if trapezoid:
        precision = (precision + np.append(precision[1:], 1.0)) / 2
    return ratio(float(precision @ r.misses), r.n_wrong)


def aurc(r: Ranking, *, trapezoid: bool = False) -> float:
    """Area under the risk-coverage curve: the mean over k of the error rate among the k most confident.

    With ties it is the expectation over their orders. `trapezoid` integrates over coverage by straight lines between
    distinct scores, flat before the first, as FD-Shifts does.
    """
    if trapezoid:
        risk = 1 - r.precision
        return float((risk + np.append(risk[:1], risk[:-1])) @ r.size) / (2 * r.n)
    return (loops.risks(r.kept, r.wrong) if loops.AVAILABLE else _risks(r)) / r.n


def _risks(r: Ranking) -> float:
    """Sum over k of the expected error rate among the k most confident."""
    at_ends = r.n - float(r.precision @ r.size)
    return at_ends + _tie_excess(r, np.flatnonzero(r.size > 1)) if len(r.score) < r.n else at_ends


def _tie_excess(r: Ranking, tied: NDArray[np.int64]) -> float:
    """What the risks inside tie blocks add up to, over all orders, beyond the risk at the end of each."""
    from scipy.special import digamma

    before, after, wrong, rate = r.kept[tied], r.kept[tied + 1], r.wrong[tied], r.misses[tied] / r.size[tied]
    # After j of a block the expected risk is (wrong + j rate) / (before + j); summing it over j = 1..size takes the
    # harmonic numbers between the two ends of the block.
    inside = r.misses[tied] + (wrong - rate * before) * (digamma(after + 1) - digamma(before + 1))
    return float((inside - r.size[tied] * r.wrong[tied + 1] / after).sum())


def aurc_in_file_order(outcomes: Outcomes) -> float:
    """AURC with tied samples in the order of the file, as the code of CRL and FMFP has it. Only to meet its figures."""
    order = np.argsort(-outcomes.confidence.cpu().numpy(), kind="stable")
    wrong = np.cumsum(~outcomes.correct.cpu().numpy()[order])
    return float((wrong / np.arange(1, len(wrong) + 1)).mean())


def e_aurc(r: Ranking, *, closed_form: bool = False) -> float:
    """AURC minus that of the best order of the same answers, all right ones first.

    `closed_form` takes the optimum r + (1 - r) ln(1 - r) of an infinite sample, as CRL and FMFP do; it is smaller than
    what n samples can reach.
    """
    return aurc(r) - (optimal_aurc_closed(r.n_wrong / r.n) if closed_form else optimal_aurc(r.n, r.n_wrong))


def optimal_aurc(n: int, n_wrong: int) -> float:
    """AURC with all right answers first: the mean over k of max(0, k - n_right) / k."""
    k = np.arange(n - n_wrong + 1, n + 1)
    return float(((k - (n - n_wrong)) / k).sum()) / n


def optimal_aurc_closed(error_rate: float) -> float:
    """r + (1 - r) ln(1 - r), the limit of `optimal_aurc` for many samples."""
    return error_rate + (1 - error_rate) * float(np.log1p(-error_rate)) if error_rate < 1 else 1.0


def augrc(r: Ranking) -> float:
    """Area under the generalized risk-coverage curve, (wrong and accepted) / n against coverage (Traub et al. 2024).

    Equals (1 - AUROC) acc r + r^2 / 2 with r the error rate.
    """
    return float(r.wrong[:-1] @ r.size + r.misses @ r.size / 2) / r.n**2


def risk_at_coverage(r: Ranking, coverage: float) -> float:
    """Error rate among the ceil(coverage n) most confident; of a tie block its expected share is taken."""
    if not 0 < coverage <= 1:
        raise ValueError(f"coverage must be in (0, 1], got {coverage}")
    k = ceil(coverage * r.n - 1e-9)
    block = r.kept.searchsorted(k)
    inside = k - float(r.kept[block - 1])
    return float(r.wrong[block - 1] + inside * r.misses[block - 1] / r.size[block - 1]) / k


def coverage_at_risk(r: Ranking, risk: float) -> float:
    """Largest share of samples that a threshold can accept with at most this error rate among them; else 0."""
    enough = np.flatnonzero(r.wrong[1:] / r.kept[1:] <= risk)
    return float(r.kept[enough[-1] + 1]) / r.n if len(enough) else 0.0


@dataclass(frozen=True, eq=False)
class RiskCoverage:
    """The risk-coverage curve at each distinct score, most confident first."""

    score: Floats  # [t]
    coverage: Floats  # [t]
    risk: Floats  # [t]


def risk_coverage(r: Ranking) -> RiskCoverage:
    """Coverage and selective risk of each threshold."""
    return RiskCoverage(r.score, r.kept[1:] / r.n, 1 - r.precision)


def ratio(a: float, b: float) -> float:
    """a / b, nan where there is nothing to divide by."""
    return a / b if b else nan
