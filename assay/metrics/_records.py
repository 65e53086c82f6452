"""One record per metric: its name, how it is shown, how it is computed, and how certain it is.

A line of `METRICS` adds a metric to evaluate, audit, compare, the terminal, JSON, tables, figures, pages, studies and
the documentation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from inspect import signature
from types import MappingProxyType
from typing import Any

from numpy.typing import ArrayLike

from assay._core import loops
from assay._core.arrays import InputError
from assay._core.lookup import check_values, lookup
from assay._core.own_code import entry_point, import_own, is_own
from assay._core.variants import Variant, parse_variant
from assay.metrics._by_class import ada_ece_positive, average_precision, classwise_ece, ece_positive, roc_auc, tace
from assay.metrics._calibration import (
    ada_ece,
    debiased_ece,
    ece,
    ece_l2_mass,
    ece_lb_l1,
    ece_lb_l2,
    mce,
    oe,
    rmsce,
)
from assay.metrics._failure import (
    augrc,
    aupr_error,
    aupr_success,
    aurc,
    auroc,
    e_aurc,
    fpr95,
    risk_at_80,
    risk_at_90,
    risk_at_95,
)
from assay.metrics._kernel import mmce, smooth_ece
from assay.metrics._means import accuracy, brier, mean_confidence, mean_entropy, nll
from assay.metrics._proper import brier_calibration, brier_refinement, nll_calibration, nll_refinement
from assay.metrics._ranking import Ranking
from assay.metrics._split import (
    confidence_gap,
    ece_beta,
    ece_correct,
    ece_gamma,
    ece_wrong,
    overconfident_bins,
    s99,
    s99_accuracy,
)
from assay.metrics._sweep import sweep_ece
from assay.metrics._tables import Measurable, Tables, tables
from assay.metrics.inference import (
    Influence,
    augrc_influence,
    aupr_error_influence,
    aupr_success_influence,
    aurc_influence,
    auroc_influence,
    e_aurc_influence,
)
from assay.metrics.inference import _rules as rules
from assay.metrics.inference._intervals import Interval
from assay.metrics.inference._rules import Change, FloorRule, IntervalRule, PairedRule, Runs, Withheld
from assay.predictions import Predictions

MANY_ROWS, SEVERAL = 200_000, 8  # from so many rows and metrics on, threads save more than they cost


@dataclass(frozen=True)
class Unit:
    """How a number is shown: multiplied by the factor, with this many digits, followed by the sign."""

    factor: float
    sign: str
    digits: int

    def number(self, value: float) -> str:
        """The value without its sign, for a column that has it in its head."""
        return f"{self.factor * value:.{self.digits}f}"

    def __call__(self, value: float) -> str:
        """The value with its sign.

        >>> PERCENT(0.1586), PER_MILLE(0.0828), PLAIN(0.6931)
        ('15.86%', '82.80‰', '0.6931')
        """
        return f"{self.number(value)}{self.sign}"


PERCENT = Unit(100, "%", 2)
SMALL_PERCENT = Unit(100, "%", 3)  # of squared errors
PER_MILLE = Unit(1000, "‰", 2)  # the x10³ of the papers' tables
PLAIN = Unit(1, "", 4)


Of = Callable[[Tables], float]
Needs = Callable[[Tables], bool]


def _any(t: Tables) -> bool:
    return True


def _confidence(t: Tables) -> bool:
    return t.is_probability


def _all_classes(t: Tables) -> bool:
    return t.n_classes > 0


def _two_classes(t: Tables) -> bool:
    return t.n_classes == 2


def _nll(t: Tables) -> bool:
    return t.is_probability and t.has("nll")


def _brier(t: Tables) -> bool:
    return t.is_probability and t.has("brier")


def _entropy(t: Tables) -> bool:
    return t.is_probability and t.has("entropy")


@dataclass(frozen=True)
class Metric:
    """Everything the package knows about a metric."""

    key: str
    axis: str  # scoring, calibration, refinement or description
    better: str  # higher, lower, or - where neither is
    unit: Unit
    title: str  # what a picture or a page calls it
    line: str  # what it is, in a line
    of: Of
    needs: Needs = _confidence  # what the input must have for it
    interval: IntervalRule | None = None  # none where no interval of known coverage exists
    floor: FloorRule | None = None  # what a calibrated model would show
    paired: PairedRule | None = None  # none where no paired test of known level exists
    headline: bool = False  # whether it stands in the short table
    what: str = ""  # what tables add to the key where it alone would be misread: auroc (errors)

    def bar(self, t: Tables) -> Interval | Withheld:
        """The interval, or why there is none."""
        if self.interval is None:
            return Withheld("no interval of known coverage")
        doubt = rules.too_few_clusters(t)
        return Withheld(doubt) if doubt else self.interval(t)

    def change(self, a: Runs, b: Runs) -> Change | Withheld:
        """The test of the difference of two models on the same samples, or why there is none."""
        if self.paired is None:
            return Withheld("no paired test of known level")
        doubt = rules.too_few_clusters(a[0])
        return Withheld(doubt) if doubt else self.paired(a, b)


def _score(of: Of, title: str, line: str, needs: Needs, *, unit: Unit = PLAIN, better: str = "lower") -> Metric:
    """A score of the answers themselves."""
    return Metric(of.__name__, "scoring", better, unit, title, line, of, needs)


def _gap(of: Of, title: str, line: str, needs: Needs = _confidence) -> Metric:
    """A calibration error, lower for better, in per cent."""
    return Metric(of.__name__, "calibration", "lower", PERCENT, title, line, of, needs)


def _ranks(
    of: Of, title: str, line: str, needs: Needs = _any, *, unit: Unit = PERCENT, better: str = "lower"
) -> Metric:
    """A metric of how well confidence separates right answers from wrong ones."""
    return Metric(of.__name__, "refinement", better, unit, title, line, of, needs)


def _says(of: Of, title: str, line: str, needs: Needs = _confidence, *, unit: Unit = PERCENT) -> Metric:
    """A description, of which neither higher nor lower is better."""
    return Metric(of.__name__, "description", "-", unit, title, line, of, needs)


def _by_influence(metric: Metric, influence: Callable[[Ranking], Influence]) -> Metric:
    """A ranking metric whose interval and paired test come from its influence function."""
    interval, paired = rules.by_influence(metric.of, influence), rules.paired_by_influence(metric.of, influence)
    return replace(metric, interval=interval, paired=paired)


def _positive_by_influence(metric: Metric, of: Of, influence: Callable[[Ranking], Influence]) -> Metric:
    """The same of a metric `of` the ranking by the probability of class 1."""
    words = ("row of class 0", "row of class 1")
    interval = rules.of_positive(rules.by_influence(of, influence, *words))
    paired = rules.of_both_positives(rules.paired_by_influence(of, influence, *words))
    return replace(metric, interval=interval, paired=paired)


_SCORES = (
    replace(
        _score(accuracy, "accuracy", "share of right answers", _any, unit=PERCENT, better="higher"),
        interval=rules.accuracy_rule,
        paired=rules.accuracy_paired,
    ),
    replace(
        _score(nll, "NLL", "mean -log probability of the true class", _nll),
        interval=rules.nll_rule,
        paired=rules.nll_paired,
    ),
    replace(
        _score(brier, "Brier score", "mean squared distance from the one-hot label, summed over classes", _brier),
        interval=rules.brier_rule,
        paired=rules.brier_paired,
    ),
    _positive_by_influence(
        _score(
            roc_auc,
            "ROC AUC of class 1",
            "two classes: chance that a row of class 1 outranks one of class 0",
            _two_classes,
            unit=PERCENT,
            better="higher",
        ),
        auroc,
        auroc_influence,
    ),
    _positive_by_influence(
        _score(
            average_precision,
            "average precision of class 1",
            "two classes: average precision of class 1, by its probability",
            _two_classes,
            unit=PERCENT,
            better="higher",
        ),
        aupr_success,
        aupr_success_influence,
    ),
)
_GAPS = (
    replace(
        _gap(ece, "ECE", "expected calibration error, 15 equal-width bins, l1"),
        interval=rules.ece_rule,
        floor=rules.ece_floor,
    ),
    _gap(mce, "MCE", "gap of the worst of 15 equal-width bins"),
    _gap(oe, "overconfidence error", "overconfidence error: gaps where confidence exceeds accuracy, by confidence"),
    _gap(rmsce, "RMSCE", "root mean squared calibration error, 15 equal-width bins"),
    replace(
        _gap(ada_ece, "AdaECE", "AdaECE: 15 equal-mass bins, l1"),
        interval=rules.ada_ece_rule,
        floor=rules.ada_ece_floor,
    ),
    replace(
        _gap(ece_l2_mass, "ECE, equal mass, l2", "15 equal-mass bins, l2"),
        interval=rules.l2_rule,
        floor=rules.l2_floor,
    ),
    replace(
        _gap(
            debiased_ece,
            "debiased ECE",
            "l2 over 15 equal-mass bins without what noise adds, at least 0 (Kumar et al.)",
        ),
        interval=rules.l2_rule,
    ),
    _gap(ece_lb_l1, "label-binned ECE, l1", "label-binned: each confidence against its bin's accuracy, l1"),
    _gap(ece_lb_l2, "label-binned ECE, l2", "label-binned, l2"),
    _gap(sweep_ece, "ECE sweep", "as many equal-mass bins as keep accuracy monotone, l1"),
    _gap(smooth_ece, "smooth ECE", "smECE: no bins, a Gaussian as wide as the error it finds"),
    _gap(mmce, "MMCE", "maximum mean calibration error: a kernel instead of bins"),
    _gap(ece_correct, "ECE of right answers", "of the right answers alone: how far their confidence stays below 1"),
    _gap(ece_wrong, "ECE of wrong answers", "of the wrong answers alone: their mean confidence"),
    replace(
        _gap(nll_calibration, "calibration part of NLL", "top-label log loss that isotonic recalibration removes"),
        unit=PLAIN,
    ),
    _gap(brier_calibration, "calibration part of Brier", "top-label squared error that isotonic recalibration removes"),
    _gap(classwise_ece, "classwise ECE", "mean over classes of the one-vs-rest ECE, 15 equal-width bins", _all_classes),
    _gap(tace, "TACE", "classwise ECE over probabilities above .01", _all_classes),
    replace(
        _gap(ece_positive, "ECE of class 1", "two classes: ECE of the probability of class 1", _two_classes),
        interval=rules.of_positive(rules.ece_rule),
        floor=rules.of_positive(rules.ece_floor),
    ),
    replace(
        _gap(ada_ece_positive, "AdaECE of class 1", "two classes: AdaECE of the probability of class 1", _two_classes),
        interval=rules.of_positive(rules.ada_ece_rule),
        floor=rules.of_positive(rules.ada_ece_floor),
    ),
)
_RANKS = (
    _by_influence(
        replace(
            _ranks(
                auroc,
                "error AUROC",
                "chance that a right answer is more confident than a wrong one; not the ROC AUC of a class",
                better="higher",
            ),
            what="errors",
        ),
        auroc_influence,
    ),
    _by_influence(
        _ranks(aupr_success, "AUPR-success", "average precision, right answers positive", better="higher"),
        aupr_success_influence,
    ),
    _by_influence(
        _ranks(aupr_error, "AUPR-error", "average precision, errors positive, least confident first", better="higher"),
        aupr_error_influence,
    ),
    replace(
        _ranks(fpr95, "FPR95", "share of errors accepted when 95 % of right answers are"), interval=rules.fpr95_rule
    ),
    _by_influence(_ranks(aurc, "AURC", "area under the risk-coverage curve", unit=PER_MILLE), aurc_influence),
    _by_influence(
        _ranks(e_aurc, "E-AURC", "AURC above that of a perfect ranking of the same answers", unit=PER_MILLE),
        e_aurc_influence,
    ),
    _by_influence(
        _ranks(augrc, "AUGRC", "area under the generalized risk-coverage curve", unit=PER_MILLE), augrc_influence
    ),
    *(
        replace(
            _ranks(of, f"risk at {share} % coverage", f"error rate among the {share} % most confident"),
            interval=rules.risk_rule(share / 100),
        )
        for of, share in ((risk_at_80, 80), (risk_at_90, 90), (risk_at_95, 95))
    ),
    _ranks(
        nll_refinement,
        "refinement part of NLL",
        "top-label log loss left after isotonic recalibration",
        _confidence,
        unit=PLAIN,
    ),
    _ranks(
        brier_refinement,
        "refinement part of Brier",
        "top-label squared error left after isotonic recalibration",
        _confidence,
    ),
    _ranks(
        confidence_gap,
        "confidence gap",
        "mean confidence of right minus that of wrong answers",
        _confidence,
        better="higher",
    ),
)
_DESCRIPTIONS = (
    _says(mean_confidence, "mean confidence", "mean confidence; above accuracy means over-confident"),
    _says(mean_entropy, "mean entropy", "mean entropy of the probabilities, in nats", _entropy, unit=PLAIN),
    _says(s99, "|S99|", "share of samples with confidence at least .99"),
    _says(ece_beta, "ECE term beta", "AUROC times twice the shares of right and wrong answers (singh2021, eq 9)", _any),
    _says(ece_gamma, "ECE term gamma", "half the squared shares of right and of wrong answers (singh2021, eq 9)", _any),
    _says(overconfident_bins, "over-confident bins", "share of filled bins, of 100, no more accurate than confident"),
    replace(_says(s99_accuracy, "accuracy of S99", "accuracy of those samples"), better="higher"),
)
_HEADLINE = (
    *("ece", "ada_ece", "ece_l2_mass", "debiased_ece", "smooth_ece", "classwise_ece", "ece_positive"),
    *("auroc", "aupr_error", "fpr95", "aurc", "e_aurc", "risk_at_90"),
    *("accuracy", "nll", "brier", "roc_auc", "average_precision"),
    *("mean_confidence", "calibration_part", "part_positive"),
)
_COMPARED_ONLY = (
    Metric(
        key="calibration_part",
        axis="calibration",
        better="lower",
        unit=SMALL_PERCENT,
        title="calibration part",
        line="unbiased calibration part of the top-label Brier score",
        of=rules.calibration_square,
        paired=rules.calibration_paired,
    ),
    Metric(
        key="part_positive",
        axis="calibration",
        better="lower",
        unit=SMALL_PERCENT,
        title="calibration part of class 1",
        line="two classes: the same of the probability of class 1",
        of=rules.of_positive(rules.calibration_square),
        needs=_two_classes,
        paired=rules.positive_paired,
    ),
)


def _by_key(*metrics: Metric) -> dict[str, Metric]:
    return {metric.key: replace(metric, headline=metric.key in _HEADLINE) for metric in metrics}


_METRICS = _by_key(*_SCORES, *_GAPS, *_RANKS, *_DESCRIPTIONS)
_COMPARED = _METRICS | _by_key(*_COMPARED_ONLY)

METRICS: Mapping[str, Metric] = MappingProxyType(_METRICS)
"""Every metric that `evaluate` and `audit` give."""

COMPARED: Mapping[str, Metric] = MappingProxyType(_COMPARED)
"""The same and what only a comparison gives: calibration errors whose difference has a test of known level."""


TRIAL = Predictions.from_logits([[2.0, 0.0], [0.0, 1.0]], [0, 0])
"""Predictions that every metric is defined on, to try the values of a variant before the work."""


def metric(name: str) -> Metric:
    """The record of a metric, by its key or with values of its own, such as ece,n_bins=25 or fpr95,nearest=True.

    Intervals and tests belong to the default values alone. Your own is package.module:function, a function of
    predictions or outcomes; it is imported when it is first computed, and nothing knows which way it is better.

    >>> metric("e_aurc,closed_form=True").title
    'E-AURC (closed_form=True)'
    """
    if name in METRICS:
        return METRICS[name]
    variant = parse_variant(name)
    if (own := own_metric(variant.name)) is not None:
        return _of_own(own, variant)
    record = lookup("metric", variant.name, METRICS)
    if not variant.values:
        return record
    check_values("metric", list(signature(record.of).parameters)[1:], variant.values)
    values: dict[str, Any] = dict(variant.values)
    shown = str(variant).partition(",")[2]
    of = partial(record.of, **values)
    try:
        of(tables(TRIAL))
    except (TypeError, ValueError, ArithmeticError) as problem:
        raise InputError(f"'{name}': {problem}") from problem
    return replace(
        record, key=str(variant), title=f"{record.title} ({shown})", of=of, interval=None, floor=None, paired=None
    )


def _of_own(function: str, variant: Variant) -> Metric:
    values: dict[str, Any] = dict(variant.values)

    def of(t: Tables) -> float:
        if t.summary is not None:
            raise InputError(f"{function} needs the rows, of which this is a summary")
        return float(import_own("metric", function)(t.source, **values))

    return Metric(str(variant), "description", "-", PLAIN, str(variant), f"your own, {function}", of, _any)


def own_metric(name: str) -> str | None:
    """The code of a metric that is a user's own or an installed package's, as package.module:name."""
    return name if is_own(name) else None if name in METRICS else entry_point("metric", name)


def known_metric(name: str) -> Metric | None:
    """The same; None if there is no metric of that name, as for a temperature."""
    key = name.partition(",")[0]
    return metric(name) if key in METRICS or own_metric(key) else None


def evaluate(
    predictions: Measurable | None = None,
    keys: Iterable[str] | None = None,
    *,
    logits: ArrayLike | None = None,
    probabilities: ArrayLike | None = None,
    labels: ArrayLike | None = None,
) -> dict[str, float]:
    """Compute every metric that the input allows, or only those in `keys`.

    The input is predictions, outcomes or a summary; or arrays: `labels` with `logits` or `probabilities`.

    From `Outcomes` metrics that need the probabilities of all classes are absent; from a score that is no probability,
    all but accuracy and the ranking metrics. An undefined metric (AUROC without an error) is nan.

    >>> from assay import Outcomes
    >>> o = Outcomes.from_scores([0.9, 0.8, 0.7, 0.6], [True, True, False, True])
    >>> {key: round(value, 3) for key, value in evaluate(o, ["ece", "auroc"]).items()}
    {'ece': 0.35, 'auroc': 0.667}
    """
    if predictions is None:
        predictions = _of_arrays(logits, probabilities, labels)
    elif not (logits is None and probabilities is None and labels is None):
        raise InputError("evaluate takes predictions or arrays, not both")
    if keys is None:
        t = tables(predictions)
        return _values(t, {key: each for key, each in METRICS.items() if each.needs(t)})
    asked = {key: metric(key) for key in keys}
    classwise = any(each.needs is _all_classes for each in asked.values())
    t = predictions if isinstance(predictions, Tables) else Tables(predictions, classwise)
    for each in asked.values():
        if not each.needs(t):
            raise InputError(f"these predictions do not give '{each.key}': {each.line}")
    return _values(t, asked)


def _values(t: Tables, asked: dict[str, Metric]) -> dict[str, float]:
    """Values by key; of many rows on several threads, once the tables that most metrics share are there."""
    if loops.n_threads() == 1 or len(asked) < SEVERAL or t.summary is not None or len(t.outcomes) < MANY_ROWS:
        return {key: t.once(each.of) for key, each in asked.items()}
    found: dict[str, float] = {}
    loops.on_threads(lambda name: getattr(t, name), ["ranking", "width"])
    loops.on_threads(lambda name: getattr(t.ranking, name), ["areas", "right"])
    loops.on_threads(lambda key: found.update({key: t.once(asked[key].of)}), list(asked))
    return {key: found[key] for key in asked}


def _of_arrays(logits: ArrayLike | None, probabilities: ArrayLike | None, labels: ArrayLike | None) -> Predictions:
    if labels is None or (logits is None) == (probabilities is None):
        raise InputError("evaluate takes predictions, or labels with either logits or probabilities")
    if logits is not None:
        return Predictions.from_logits(logits, labels)
    assert probabilities is not None, "one of the two is given"
    return Predictions.from_probabilities(probabilities, labels)
