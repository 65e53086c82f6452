"""Failure prediction: one sorted table, from which every ranking metric is a line."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from assay.predictions import Outcomes


@dataclass(frozen=True, eq=False)
class Ranking:
    """Cumulative counts at each distinct score, most confident first.

    Accept everything scored at least `score[i]`: how many samples are kept, and how many of them are wrong?
    Ties move together, so no metric depends on the order of the samples. Rankings of two sets of rows merge by `+`.
    """

    score: Tensor  # [t] distinct scores, descending
    kept: Tensor  # [t + 1] samples accepted: none, those of the first score, ..., all
    wrong: Tensor  # [t + 1] errors among them

    def __add__(self, other: Ranking) -> Ranking:
        return _table(
            torch.cat([self.score, other.score]),
            torch.cat([self.kept.diff(), other.kept.diff()]),
            torch.cat([self.wrong.diff(), other.wrong.diff()]),
        )

    @cached_property
    def n(self) -> int:
        return int(self.kept[-1])

    @cached_property
    def n_wrong(self) -> int:
        return int(self.wrong[-1])

    @cached_property
    def right(self) -> Tensor:
        """Right answers among the kept, [t + 1]."""
        return self.kept - self.wrong

    @cached_property
    def claimed(self) -> Tensor:
        """Sum of the confidence of the kept: the right answers they promise, [t + 1]."""
        return _from_zero(self.score * self.kept.diff())


def ranking(outcomes: Outcomes) -> Ranking:
    """Sort once."""
    return _table(outcomes.confidence, torch.ones_like(outcomes.confidence), (~outcomes.correct).double())


def _table(score: Tensor, count: Tensor, wrong: Tensor) -> Ranking:
    order = descending(score)
    score = score[order]
    last_of_tie = torch.ones(len(score), dtype=torch.bool, device=score.device)
    torch.ne(score[:-1], score[1:], out=last_of_tie[:-1])
    rows = last_of_tie.nonzero().squeeze(1)
    kept, missed = _from_zero(count[order]), _from_zero(wrong[order])
    if len(rows) < len(score):
        ends = torch.cat([rows.new_zeros(1), rows + 1])
        score, kept, missed = score[rows], kept[ends], missed[ends]
    return Ranking(score, kept, missed)


def descending(score: Tensor) -> Tensor:
    """Order of the scores from the highest; among ties any."""
    if score.device.type != "cpu":
        return score.argsort(descending=True)
    return torch.from_numpy(np.argsort(score.numpy())).flip(0)  # about twice as fast as torch's


def _from_zero(steps: Tensor) -> Tensor:
    """Cumulative sums, with the empty one in front."""
    out = torch.zeros(len(steps) + 1, dtype=torch.float64, device=steps.device)
    torch.cumsum(steps, 0, out=out[1:])
    return out


def auroc(r: Ranking) -> float:
    """Chance that a right answer outranks a wrong one, ties counting half; nan where there is none of either."""
    return _ratio(torch.trapezoid(r.right, r.wrong), r.right[-1] * r.wrong[-1])


def fpr95(r: Ranking, *, nearest: bool = False) -> float:
    """Share of errors still accepted once 95 % of the right answers are; nan as for `auroc`.

    `nearest` takes the corner of the ROC curve whose rate is nearest .95 instead of the first at or above it, as the
    code of CRL and FMFP does through scikit-learn's thinned curve.
    """
    if not r.right[-1] or not r.wrong[-1]:
        return float("nan")
    tpr, fpr = r.right / r.right[-1], r.wrong / r.wrong[-1]
    if not nearest:
        return float(fpr[tpr >= 0.95][0])
    corner = torch.ones(len(tpr), dtype=torch.bool, device=tpr.device)
    corner[1:-1] = (r.right.diff(n=2) != 0) | (r.wrong.diff(n=2) != 0)
    return float(fpr[corner][(tpr[corner] - 0.95).abs().argmin()])


def aupr_success(r: Ranking, *, trapezoid: bool = False) -> float:
    """Average precision with right answers as the positive class; nan if there are none.

    `trapezoid` joins the points of the curve by straight lines, as FMFP's code does.
    """
    return _average_precision(r.right, r.kept, trapezoid)


def aupr_error(r: Ranking, *, trapezoid: bool = False) -> float:
    """Average precision with errors as the positive class, the least confident first; nan if there are none."""
    return _average_precision((r.wrong[-1] - r.wrong).flip(0), (r.kept[-1] - r.kept).flip(0), trapezoid)


def _average_precision(hits: Tensor, kept: Tensor, trapezoid: bool) -> float:
    precision = hits[1:] / kept[1:]
    if trapezoid:
        area = torch.trapezoid(torch.cat([precision.new_ones(1), precision]), hits)
    else:
        area = (precision * hits.diff()).sum()
    return _ratio(area, hits[-1])


def aurc(r: Ranking, *, trapezoid: bool = False) -> float:
    """Area under the risk-coverage curve: the mean over k of the error rate among the k most confident.

    With ties it is the expectation over their orders. `trapezoid` integrates over coverage by straight lines between
    distinct scores, flat before the first, as FD-Shifts does.
    """
    if trapezoid:
        risk = r.wrong[1:] / r.kept[1:]
        return float(torch.trapezoid(torch.cat([risk[:1], risk]), r.kept)) / r.n
    if len(r.score) == r.n:
        return float((r.wrong[1:] / r.kept[1:]).mean())
    size, before, wrong_before = r.kept.diff(), r.kept[:-1], r.wrong[:-1]
    rate = r.wrong.diff() / size
    # After j of a tie block the expected risk is (wrong_before + j rate) / (before + j); summing it over j = 1..size
    # takes the harmonic numbers between the two ends of the block.
    harmonic = _from_zero(1 / torch.arange(1, r.n + 1, dtype=torch.float64, device=size.device))[r.kept.long()].diff()
    return float((rate * size + (wrong_before - rate * before) * harmonic).sum()) / r.n


def aurc_in_file_order(outcomes: Outcomes) -> float:
    """AURC with tied samples in the order of the file, as the code of CRL and FMFP has it. Only to meet its figures."""
    wrong = (~outcomes.correct[outcomes.confidence.argsort(descending=True, stable=True)]).double()
    return float((wrong.cumsum(0) / torch.arange(1, len(wrong) + 1, device=wrong.device)).mean())


def e_aurc(r: Ranking, *, closed_form: bool = False) -> float:
    """AURC minus that of the best order of the same answers, all right ones first.

    `closed_form` takes the optimum r + (1 - r) ln(1 - r) of an infinite sample, as CRL and FMFP do; it is smaller than
    what n samples can reach.
    """
    return aurc(r) - (optimal_aurc_closed(r.n_wrong / r.n) if closed_form else optimal_aurc(r.n, r.n_wrong))


def optimal_aurc(n: int, n_wrong: int) -> float:
    """AURC with all right answers first: the mean over k of max(0, k - n_right) / k."""
    k = torch.arange(n - n_wrong + 1, n + 1, dtype=torch.float64)
    return float(((k - (n - n_wrong)) / k).sum()) / n


def optimal_aurc_closed(error_rate: float) -> float:
    """r + (1 - r) ln(1 - r), the limit of `optimal_aurc` for many samples."""
    return error_rate + (1 - error_rate) * float(np.log1p(-error_rate)) if error_rate < 1 else 1.0


def augrc(r: Ranking) -> float:
    """Area under the generalized risk-coverage curve, (wrong and accepted) / n against coverage (Traub et al. 2024).

    Equals (1 - AUROC) acc r + r^2 / 2 with r the error rate.
    """
    return float(torch.trapezoid(r.wrong, r.kept)) / r.n**2


def risk_at_coverage(r: Ranking, coverage: float) -> float:
    """Error rate among the ceil(coverage n) most confident; of a tie block its expected share is taken."""
    if not 0 < coverage <= 1:
        raise ValueError(f"coverage must be in (0, 1], got {coverage}")
    k = float(np.ceil(coverage * r.n - 1e-9))
    block = int(torch.searchsorted(r.kept, k))
    size, errors = r.kept[block] - r.kept[block - 1], r.wrong[block] - r.wrong[block - 1]
    return float(r.wrong[block - 1] + (k - r.kept[block - 1]) * errors / size) / k


def coverage_at_risk(r: Ranking, risk: float) -> float:
    """Largest share of samples that a threshold can accept with at most this error rate among them; else 0."""
    enough = (r.wrong <= risk * r.kept).nonzero()
    return float(r.kept[enough[-1, 0]]) / r.n


@dataclass(frozen=True, eq=False)
class RiskCoverage:
    """The risk-coverage curve at each distinct score, most confident first."""

    score: Tensor  # [t]
    coverage: Tensor  # [t]
    risk: Tensor  # [t]


def risk_coverage(r: Ranking) -> RiskCoverage:
    """Coverage and selective risk of each threshold."""
    return RiskCoverage(r.score, r.kept[1:] / r.n, r.wrong[1:] / r.kept[1:])


def _ratio(a: Tensor, b: Tensor) -> float:
    return float(a / b)  # 0 / 0 = nan: what is undefined says so
