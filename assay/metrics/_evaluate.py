"""Every metric of the table from one pass, one sort and a few tallies."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
import torch

from assay.metrics._bins import Bins, debiased_ece, ece, equal_mass, equal_width, label_gap, mce, oe
from assay.metrics._classwise import class_tally, classwise_ece, tace
from assay.metrics._kernel import mmce, smooth_ece
from assay.metrics._proper import brier_decomposition, isotonic, nll_decomposition
from assay.metrics._ranking import (
    Ranking,
    augrc,
    aupr_error,
    aupr_success,
    aurc,
    auroc,
    fpr95,
    optimal_aurc,
    ranking,
    risk_at_coverage,
)
from assay.metrics._split import ece_correct, ece_wrong, s99, s99_accuracy
from assay.metrics._sweep import sweep_ece
from assay.predictions import Outcomes, Predictions


@dataclass(frozen=True)
class Metric:
    """What a key of `evaluate` means."""

    axis: str  # scoring, calibration, refinement or description
    better: str  # higher, lower, or - where neither is
    line: str


METRICS: dict[str, Metric] = {
    "accuracy": Metric("scoring", "higher", "share of right answers"),
    "nll": Metric("scoring", "lower", "mean -log probability of the true class"),
    "brier": Metric("scoring", "lower", "mean squared distance from the one-hot label, summed over classes"),
    "ece": Metric("calibration", "lower", "expected calibration error, 15 equal-width bins, l1"),
    "mce": Metric("calibration", "lower", "gap of the worst of 15 equal-width bins"),
    "oe": Metric("calibration", "lower", "overconfidence error: gaps where confidence exceeds accuracy, by confidence"),
    "rmsce": Metric("calibration", "lower", "root mean squared calibration error, 15 equal-width bins"),
    "ada_ece": Metric("calibration", "lower", "AdaECE: 15 equal-mass bins, l1"),
    "ece_l2_mass": Metric("calibration", "lower", "15 equal-mass bins, l2"),
    "debiased_ece": Metric("calibration", "lower", "15 equal-mass bins, l2, without what noise adds (Kumar et al.)"),
    "ece_lb_l1": Metric("calibration", "lower", "label-binned: each confidence against its bin's accuracy, l1"),
    "ece_lb_l2": Metric("calibration", "lower", "label-binned, l2"),
    "sweep_ece": Metric("calibration", "lower", "as many equal-mass bins as keep accuracy monotone, l1"),
    "smooth_ece": Metric("calibration", "lower", "smECE: no bins, a Gaussian as wide as the error it finds"),
    "mmce": Metric("calibration", "lower", "maximum mean calibration error: a kernel instead of bins"),
    "ece_correct": Metric("calibration", "lower", "of the right answers alone: how far their confidence stays below 1"),
    "ece_wrong": Metric("calibration", "lower", "of the wrong answers alone: their mean confidence"),
    "nll_calibration": Metric("calibration", "lower", "top-label log loss that isotonic recalibration removes"),
    "brier_calibration": Metric("calibration", "lower", "top-label squared error that isotonic recalibration removes"),
    "classwise_ece": Metric("calibration", "lower", "mean over classes of the one-vs-rest ECE, 15 equal-width bins"),
    "tace": Metric("calibration", "lower", "classwise ECE over probabilities above .01"),
    "ece_positive": Metric("calibration", "lower", "two classes: ECE of the probability of class 1"),
    "ada_ece_positive": Metric("calibration", "lower", "two classes: AdaECE of the probability of class 1"),
    "auroc": Metric("refinement", "higher", "chance that a right answer is more confident than a wrong one"),
    "aupr_success": Metric("refinement", "higher", "average precision, right answers positive"),
    "aupr_error": Metric("refinement", "higher", "average precision, errors positive, least confident first"),
    "fpr95": Metric("refinement", "lower", "share of errors accepted when 95 % of right answers are"),
    "aurc": Metric("refinement", "lower", "area under the risk-coverage curve"),
    "e_aurc": Metric("refinement", "lower", "AURC above that of a perfect ranking of the same answers"),
    "augrc": Metric("refinement", "lower", "area under the generalized risk-coverage curve"),
    "risk_at_80": Metric("refinement", "lower", "error rate among the 80 % most confident"),
    "risk_at_90": Metric("refinement", "lower", "error rate among the 90 % most confident"),
    "risk_at_95": Metric("refinement", "lower", "error rate among the 95 % most confident"),
    "nll_refinement": Metric("refinement", "lower", "top-label log loss left after isotonic recalibration"),
    "brier_refinement": Metric("refinement", "lower", "top-label squared error left after isotonic recalibration"),
    "confidence_gap": Metric("refinement", "higher", "mean confidence of right minus that of wrong answers"),
    "mean_confidence": Metric("description", "-", "mean confidence; above accuracy means over-confident"),
    "mean_entropy": Metric("description", "-", "mean entropy of the probabilities, in nats"),
    "s99": Metric("description", "-", "share of samples with confidence at least .99"),
    "s99_accuracy": Metric("description", "higher", "accuracy of those samples"),
}


COVERAGES = {"risk_at_80": 0.80, "risk_at_90": 0.90, "risk_at_95": 0.95}


@dataclass(frozen=True, eq=False)
class Survey:
    """All metrics, and the tables they were read from."""

    values: dict[str, float]
    outcomes: Outcomes
    ranking: Ranking
    width: Bins | None  # 15 equal-width bins; none where the confidence is no probability
    mass: Bins | None  # 15 equal-mass bins


def evaluate(predictions: Predictions | Outcomes) -> dict[str, float]:
    """Every metric that the input allows, by key, in the order of `METRICS`.

    From `Outcomes` those that need the probabilities of all classes are absent; from a score that is no probability,
    all but accuracy and the ranking metrics. What is undefined (AUROC without an error) is nan.

    >>> scores = evaluate(Outcomes.from_scores([0.9, 0.8, 0.7, 0.6], [True, True, False, True]))
    >>> round(scores["ece"], 3), round(scores["auroc"], 3)
    (0.35, 0.667)
    """
    return survey(predictions).values


def survey(predictions: Predictions | Outcomes) -> Survey:
    """As `evaluate`, and the tables too: one pass over the rows, one sort, a few tallies."""
    classwise: dict[str, float] = {}
    if isinstance(predictions, Outcomes):
        outcomes = predictions
    else:
        tally = class_tally(predictions)
        outcomes = predictions.outcomes(watch=tally)
        classes = tally.bins()
        classwise = {"classwise_ece": classwise_ece(classes), "tace": tace(classes)}
        if predictions.n_classes == 2:
            positive = positive_class(predictions)
            classwise["ece_positive"] = ece(equal_width(positive))
            classwise["ada_ece_positive"] = ece(equal_mass(ranking(positive)))
    r = ranking(outcomes)
    found = _of_ranking(r) | classwise
    width, mass = None, None
    if outcomes.is_probability:
        width, mass = equal_width(r), equal_mass(r)
        found |= _of_confidence(outcomes, r, width, mass) | {"smooth_ece": smooth_ece(r)}
    return Survey({key: found[key] for key in METRICS if key in found}, outcomes, r, width, mass)


def positive_class(predictions: Predictions) -> Outcomes:
    """Of two classes: the probability of class 1 as the confidence, the label being 1 as its success.

    Every calibration metric of the result is one of the positive class instead of the top label.
    """
    if predictions.n_classes != 2:
        raise ValueError(f"only two classes have a positive one; these predictions have {predictions.n_classes}")
    values = predictions.values.double()
    p = values[:, 1].clamp(max=1) if predictions.normalized else torch.sigmoid(values[:, 1] - values[:, 0])
    return Outcomes(p.contiguous(), predictions.labels == 1, ids=predictions.ids, group=predictions.group)


def _of_ranking(r: Ranking) -> dict[str, float]:
    area = aurc(r)
    return {
        "accuracy": 1 - r.n_wrong / r.n,
        "auroc": auroc(r),
        "aupr_success": aupr_success(r),
        "aupr_error": aupr_error(r),
        "fpr95": fpr95(r),
        "aurc": area,
        "e_aurc": area - optimal_aurc(r.n, r.n_wrong),
        "augrc": augrc(r),
    } | {key: risk_at_coverage(r, coverage) for key, coverage in COVERAGES.items()}


def _of_confidence(o: Outcomes, r: Ranking, width: Bins, mass: Bins) -> dict[str, float]:
    fit = isotonic(r)
    log_loss, squared = nll_decomposition(r, fit), brier_decomposition(r, fit)
    columns = {"nll": o.nll, "brier": o.brier, "mean_entropy": o.entropy}
    right, wrong = ece_correct(r), ece_wrong(r)
    return {key: float(column.cpu().numpy().sum()) / r.n for key, column in columns.items() if column is not None} | {
        "mean_confidence": float(r.claimed[-1]) / r.n,
        "ece": ece(width),
        "mce": mce(width),
        "oe": oe(width),
        "rmsce": ece(width, norm=2),
        "ada_ece": ece(mass),
        "ece_l2_mass": ece(mass, norm=2),
        "debiased_ece": debiased_ece(mass),
        **_label_binned(r, mass),
        "sweep_ece": sweep_ece(r),
        "mmce": mmce(r),
        "nll_calibration": log_loss.calibration,
        "nll_refinement": log_loss.refinement,
        "brier_calibration": squared.calibration,
        "brier_refinement": squared.refinement,
        "ece_correct": right,
        "ece_wrong": wrong,
        "confidence_gap": 1 - right - wrong,
        "s99": s99(r),
        "s99_accuracy": s99_accuracy(r),
    }


def _label_binned(r: Ranking, mass: Bins) -> dict[str, float]:
    """Both norms from one look at the gaps."""
    gap = label_gap(r, mass)
    return {"ece_lb_l1": float(np.abs(gap) @ r.size) / r.n, "ece_lb_l2": sqrt(float((gap * gap) @ r.size) / r.n)}
