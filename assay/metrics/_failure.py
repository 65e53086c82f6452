"""Failure prediction: how well confidence tells right answers from wrong ones. Every metric is a line on a ranking."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, nan

import numpy as np

from assay._core.arrays import Floats, Labels
from assay.metrics._ranking import ROUNDING, Ranking, ratio
from assay.metrics._tables import Rankable, once, ranking
from assay.predictions import Outcomes

MANY = 10**6  # errors beyond which sums over them are taken by their closed form


def auroc(x: Rankable) -> float:
    """Chance that a right answer outranks a wrong one, ties counting half; nan where there is none of either."""
    r = ranking(x)
    return ratio(r.areas.outranked, float(r.right[-1] * r.wrong[-1]))


def fpr95(x: Rankable, *, nearest: bool = False) -> float:
    """Share of errors still accepted once 95 % of the right answers are; nan as for `auroc`.

    `nearest` takes the corner of the ROC curve whose rate is nearest .95 instead of the first at or above it, as the
    code of CRL and FMFP does through scikit-learn's thinned curve.
    """
    r = ranking(x)
    if r.n_wrong in (0, r.n):
        return nan
    if not nearest and r.order is not None:
        return r.order.wrong_at_95 / float(r.wrong[-1])
    if not nearest:
        return float(r.wrong[r.right.searchsorted(19 * r.right[-1] / 20 - ROUNDING)] / r.wrong[-1])
    tpr = r.right / r.right[-1]
    corner = np.ones(len(tpr), dtype=bool)
    corner[1:-1] = (np.diff(r.right, n=2) != 0) | (np.diff(r.wrong, n=2) != 0)
    return float(r.wrong[corner][np.abs(tpr[corner] - 0.95).argmin()] / r.wrong[-1])


def aupr_success(x: Rankable, *, trapezoid: bool = False) -> float:
    """Average precision with right answers as the positive class; nan if there are none.

    `trapezoid` joins the points of the curve by straight lines, as FMFP's code does.
    """
    r = ranking(x)
    if not trapezoid:
        return ratio(r.areas.precision_of_hits, float(r.right[-1]))
    precision = (r.precision + np.append(1.0, r.precision[:-1])) / 2
    return ratio(float(precision @ r.hits), float(r.right[-1]))


def aupr_error(x: Rankable, *, trapezoid: bool = False) -> float:
    """Average precision with errors as the positive class, the least confident first; nan if there are none."""
    r = ranking(x)
    if not trapezoid:
        return ratio(r.areas.precision_of_misses, float(r.wrong[-1]))
    precision = (r.wrong[-1] - r.wrong[:-1]) / (r.kept[-1] - r.kept[:-1])  # of all at or below each score
    return ratio(float((precision + np.append(precision[1:], 1.0)) @ r.misses) / 2, float(r.wrong[-1]))


def aurc(x: Rankable, *, trapezoid: bool = False) -> float:
    """Area under the risk-coverage curve: the mean over k of the error rate among the k most confident.

    With ties it is the expectation over their orders. `trapezoid` integrates over coverage by straight lines between
    distinct scores, flat before the first, as FD-Shifts does.
    """
    r = ranking(x)
    if trapezoid:
        risk = 1 - r.precision
        return float((risk + np.append(risk[:1], risk[:-1])) @ r.size) / (2 * r.n)
    at_ends = r.n - r.areas.precision
    if r.order is not None and r.order.tie_excess is not None:
        return (at_ends + r.order.tie_excess) / r.n
    if len(r.score) == r.n and r.weighing is None:
        return at_ends / r.n
    return (at_ends + tie_excess(r, np.flatnonzero(r.kept[:-1] + 1 != r.kept[1:]))) / r.n


def tie_excess(r: Ranking, tied: Labels) -> float:
    """What the risks inside tie blocks add up to, over all orders, beyond the risk at the end of each."""
    from scipy.special import digamma

    before, after, wrong = r.kept[tied], r.kept[tied + 1], r.wrong[tied]
    size, misses = after - before, r.wrong[tied + 1] - wrong
    rate = misses / size
    # After j of a block the expected risk is (wrong + j rate) / (before + j); summing it over j = 1..size takes the
    # harmonic numbers between the two ends of the block.
    inside = misses + (wrong - rate * before) * (digamma(after + 1) - digamma(before + 1))
    return float((inside - size * (wrong + misses) / after).sum())


def aurc_in_file_order(outcomes: Outcomes) -> float:
    """AURC with tied samples in the order of the file, as the code of CRL and FMFP has it. Only to meet its figures."""
    order = np.argsort(-outcomes.confidence, kind="stable")
    wrong = np.cumsum(~outcomes.correct[order])
    return float((wrong / np.arange(1, len(wrong) + 1)).mean())


def e_aurc(x: Rankable, *, closed_form: bool = False) -> float:
    """AURC minus that of the best order of the same answers, all right ones first.

    `closed_form` takes the optimum r + (1 - r) ln(1 - r) of an infinite sample, as CRL and FMFP do; it is smaller than
    what n samples can reach.
    """
    r = ranking(x)
    wrong = float(r.wrong[-1])
    return once(x, aurc) - (optimal_aurc_closed(wrong / r.n) if closed_form else optimal_aurc(r.n, wrong))


def optimal_aurc(n: int, wrong: float) -> float:
    """AURC with all right answers first: the mean over k of max(0, k - n_right) / k.

    Of weighted errors, which need not count an integer, the last takes the part that is left.
    """
    right, whole = n - wrong, int(wrong)
    part = (wrong - whole) * wrong / n
    if whole > MANY:
        from scipy.special import digamma

        return (whole - right * float(digamma(right + whole + 1) - digamma(right + 1)) + part) / n
    j = np.arange(1, whole + 1)
    return (float((j / (right + j)).sum()) + part) / n


def optimal_aurc_closed(error_rate: float) -> float:
    """r + (1 - r) ln(1 - r), the limit of `optimal_aurc` for many samples."""
    return error_rate + (1 - error_rate) * float(np.log1p(-error_rate)) if error_rate < 1 else 1.0


def augrc(x: Rankable) -> float:
    """Area under the generalized risk-coverage curve, (wrong and accepted) / n against coverage (Traub et al. 2024).

    Equals (1 - AUROC) acc r + r^2 / 2 with r the error rate.
    """
    r = ranking(x)
    return r.areas.accepted_errors / r.n**2


def risk_at_coverage(x: Rankable, coverage: float) -> float:
    """Error rate among the ceil(coverage n) most confident; of a tie block its expected share is taken."""
    r = ranking(x)
    if not 0 < coverage <= 1:
        raise ValueError(f"coverage must be in (0, 1], got {coverage}")
    k = ceil(coverage * r.n - 1e-9)
    if r.order is not None and k in r.order.wrong_at:
        return r.order.wrong_at[k] / k
    block = r.kept.searchsorted(k)
    (before, after), (wrong_before, wrong_after) = r.kept[block - 1 : block + 1], r.wrong[block - 1 : block + 1]
    return float(wrong_before + (k - before) * (wrong_after - wrong_before) / (after - before)) / k


def coverage_at_risk(x: Rankable, risk: float) -> float:
    """Largest share of samples that a threshold can accept with at most this error rate among them; else 0."""
    r = ranking(x)
    enough = np.flatnonzero(r.wrong[1:] / r.kept[1:] <= risk)
    return float(r.kept[enough[-1] + 1]) / r.n if len(enough) else 0.0


def risk_at_80(x: Rankable) -> float:
    """Error rate among the 80 % most confident."""
    return risk_at_coverage(x, 0.80)


def risk_at_90(x: Rankable) -> float:
    """Error rate among the 90 % most confident."""
    return risk_at_coverage(x, 0.90)


def risk_at_95(x: Rankable) -> float:
    """Error rate among the 95 % most confident."""
    return risk_at_coverage(x, 0.95)


@dataclass(frozen=True, eq=False)
class RiskCoverage:
    """The risk-coverage curve at each distinct score, most confident first."""

    score: Floats  # [t]
    coverage: Floats  # [t]
    risk: Floats  # [t]


def risk_coverage(x: Rankable) -> RiskCoverage:
    """Coverage and selective risk of each threshold."""
    r = ranking(x)
    return RiskCoverage(r.score, r.kept[1:] / r.n, 1 - r.precision)
