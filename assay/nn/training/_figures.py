"""Figures of an epoch: one number each, of the predictions on one split."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from torch import Tensor

from assay.calibrators import temperature_optimal_on_test
from assay.metrics import Ranking, aurc, auroc, ece, equal_width, ranking
from assay.predictions import Outcomes, Predictions


class Look:
    """Predictions and what several figures read off them, each made once."""

    def __init__(self, predictions: Predictions) -> None:
        self.predictions = predictions

    @cached_property
    def outcomes(self) -> Outcomes:
        return self.predictions.outcomes()

    @cached_property
    def ranking(self) -> Ranking:
        return ranking(self.outcomes)

    @property
    def correct(self) -> Tensor:
        return self.outcomes.correct

    @property
    def nll(self) -> Tensor:
        assert self.outcomes.nll is not None, "predictions always have one"
        return self.outcomes.nll

    @property
    def entropy(self) -> Tensor:
        assert self.outcomes.entropy is not None, "predictions always have one"
        return self.outcomes.entropy


def optimal_ece(predictions: Predictions) -> float:
    """ECE at the temperature of .1 to 10 that is best on these very samples (wang2021, fig 4): a bound, no method."""

    def loss(outcomes: Outcomes) -> float:
        return ece(equal_width(outcomes))

    return temperature_optimal_on_test(predictions, loss, step=0.1).fit.after


def _mean(column: Tensor) -> float:
    """nan of nothing, as where no answer is wrong."""
    return float(column.double().mean())


FIGURES: dict[str, Callable[[Look], float]] = {
    "accuracy": lambda look: _mean(look.correct),
    "nll": lambda look: _mean(look.nll),
    "nll_correct": lambda look: _mean(look.nll[look.correct]),
    "nll_wrong": lambda look: _mean(look.nll[~look.correct]),
    "entropy_correct": lambda look: _mean(look.entropy[look.correct]),
    "entropy_wrong": lambda look: _mean(look.entropy[~look.correct]),
    "true_class": lambda look: _mean((-look.nll).exp()),  # mean probability of the true class
    "true_class_correct": lambda look: _mean((-look.nll[look.correct]).exp()),
    "true_class_wrong": lambda look: _mean((-look.nll[~look.correct]).exp()),
    "ece": lambda look: ece(equal_width(look.outcomes)),
    "auroc": lambda look: auroc(look.ranking),
    "aurc": lambda look: aurc(look.ranking),
    "optimal_ece": lambda look: optimal_ece(look.predictions),
}
