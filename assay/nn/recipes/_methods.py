"""Methods: functions that make a recipe from a set-up's baseline."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer

from assay._core.arrays import InputError
from assay._core.lookup import check_values, hyper_parameters, lookup
from assay._core.variants import Value
from assay.nn.losses import Loss, with_secondary
from assay.nn.objectives import (
    Objective,
    crl,
    cs_kd,
    margin,
    max_probability,
    negative_entropy,
    of_loss,
    scheduled_focal,
    with_partners,
)
from assay.nn.optim import SAM, by_epoch, cosine_then_swa, cyclical
from assay.nn.recipes._setups import MakeObjective, Setup
from assay.nn.training import Recipe, Start, averaged

Values = Mapping[str, Value]
Method = Callable[[Setup, Values], Recipe]
"""(a set-up, values that replace the method's own hyper-parameters) -> a recipe."""

CONFIDENCES: dict[str, Callable[[Tensor], Tensor]] = {
    "max_probability": max_probability,
    "margin": margin,
    "entropy": negative_entropy,
}
"""Confidences that CRL can order, as in its paper."""


def minimizing(loss: Callable[..., Tensor], **own: Value) -> Method:
    """The baseline with another loss; values are the loss's hyper-parameters."""

    def method(setup: Setup, values: Values) -> Recipe:
        given = _allowed(loss, own, values)
        if setup.of is not of_loss and given.get("reduction", "mean") != "mean":
            raise InputError("the loss of a tree is summed over its nodes already: reduction must be mean")
        return replace(setup.baseline, objective=setup.of(partial(loss, **given)))

    return method


def adding(secondary: Callable[..., Tensor], *, to: Loss, beta: float, **own: Value) -> Method:
    """The baseline with `to` + beta `secondary`; values are beta and those of the secondary loss."""

    def method(setup: Setup, values: Values) -> Recipe:
        rest = {name: value for name, value in values.items() if name != "beta"}
        weight = number("beta", values.get("beta", beta))
        loss = with_secondary(to, partial(secondary, **_allowed(secondary, own, rest)), beta=weight)
        return replace(setup.baseline, objective=setup.of(loss))

    return method


def by(objective: Callable[..., MakeObjective], **own: Any) -> Method:
    """The baseline with another objective."""

    def method(setup: Setup, values: Values) -> Recipe:
        if setup.of is not of_loss:
            raise InputError(f"{objective.__name__} looks at one answer a sample, this set-up at every node of a tree")
        return replace(setup.baseline, objective=objective(**_allowed(objective, own, values)))

    return method


def with_objective(make: Callable[..., Objective]) -> Method:
    """The baseline with the objective that `make` makes of a task; values are its hyper-parameters."""

    def method(setup: Setup, values: Values) -> Recipe:
        return replace(setup.baseline, objective=partial(make, **_allowed(make, {}, values)))

    return method


def with_optimizer(make: Callable[..., Optimizer]) -> Method:
    """The baseline with the optimizer that `make` makes of a network; values are its hyper-parameters."""

    def method(setup: Setup, values: Values) -> Recipe:
        return replace(setup.baseline, optimizer=partial(make, **_allowed(make, {}, values)))

    return method


def from_baseline(make: Callable[..., Recipe]) -> Method:
    """The recipe that `make` makes of the baseline; values are its hyper-parameters."""

    def method(setup: Setup, values: Values) -> Recipe:
        made: object = make(setup.baseline, **_allowed(make, {}, values))
        if not isinstance(made, Recipe):
            raise InputError(f"{make.__name__} must give a Recipe, and gave a {type(made).__name__}")
        return made

    return method


def by_scheduled_focal(**own: Any) -> Method:
    """The baseline with focal loss whose gamma changes during training."""

    def method(setup: Setup, values: Values) -> Recipe:
        made = scheduled_focal(setup.of, **_allowed(scheduled_focal, own, values))
        return replace(setup.baseline, objective=made)

    return method


def by_cs_kd(setup: Setup, values: Values) -> Recipe:
    """The baseline with self-distillation between samples of a class."""
    return replace(by(cs_kd)(setup, values), sampler=with_partners)


def by_crl(setup: Setup, values: Values) -> Recipe:
    """The baseline with correctness ranking of one of the `CONFIDENCES`, by its name."""
    name = str(values.get("confidence", "max_probability"))
    rest = {key: value for key, value in values.items() if key != "confidence"}
    return by(crl, confidence=lookup("confidence", name, CONFIDENCES))(setup, rest)


Change = Callable[..., Recipe]
"""(a recipe, its set-up, *, hyper-parameters) -> a changed recipe."""


def changing(*changes: Change) -> Method:
    """The baseline after all changes; values are those of any of them."""

    def method(setup: Setup, values: Values) -> Recipe:
        check_values("recipe", hyper_parameters(*changes), values)
        made = setup.baseline
        for change in changes:
            known = hyper_parameters(change)
            made = change(made, setup, **{name: value for name, value in values.items() if name in known})
        return made

    return method


def with_sam(recipe: Recipe, setup: Setup, *, rho: float = 0.05, frozen: bool = False) -> Recipe:
    """Steps by the gradient at the worst point within `rho`; `frozen` leaves BatchNorm's statistics alone there."""

    def optimizer(network: nn.Module) -> Optimizer:
        return SAM(recipe.optimizer(network), rho=rho, frozen=network if frozen else None)

    return replace(recipe, optimizer=optimizer)


def _allowed(function: Callable[..., Any], own: Mapping[str, Any], values: Values) -> dict[str, Any]:
    """The recipe's own hyper-parameters, replaced by the given ones, which must be parameters of the function."""
    check_values("recipe", hyper_parameters(function), values)
    return {**own, **values}


def number(name: str, value: Value) -> float:
    """The value as a float; anything else than a number is refused."""
    if isinstance(value, str | bool | tuple):
        raise InputError(f"{name} must be a number, got {value}")
    return float(value)


def averaging_from_baseline(
    recipe: Recipe,
    setup: Setup,
    *,
    start: float | None = None,
    cycle: int = 1,
    high: float = 1.0,
    low: float = 0.5,
    every: int | None = None,
    count_start: bool = False,
) -> Recipe:
    """Start from the baseline's checkpoint at epoch 120 of 200, cycle the rate, and average weights at cycle ends.

    `start` is a share of the training, `cycle` a number of epochs, `high` and `low` are shares of the base rate;
    weights are averaged `every` so many epochs, by default at the end of each cycle. `count_start` also counts the
    checkpoint. zhu2022 prints neither the bounds nor the length of its cycles. Here each cycle is an epoch, from the
    base rate to half of it: the better of two pairs, compared on the test set of CIFAR-10 (one run of ResNet-8 each),
    so tuned.
    """
    share = setup.averaging_from if start is None else start
    return replace(
        recipe,
        schedule=cyclical(high=high, low=low, length=cycle, start=share),
        keep=averaged(start=share, every=cycle if every is None else every, count_start=count_start),
        start=Start(setup.baseline, share),
    )


def averaging_from_scratch(
    recipe: Recipe, setup: Setup, *, start: float = 120 / 201, level: float = 0.5, every: int = 1
) -> Recipe:
    """A cosine to 0 and up again, then weights averaged after each epoch at a constant rate: zhu2022's code.

    `start` is a share of the training, `level` the constant rate as a share of the base rate.
    """
    rate = by_epoch(cosine_then_swa(start=start, level=level))
    return replace(recipe, schedule=rate, keep=averaged(start=start, every=every))


def with_rates(recipe: Recipe, rates: Mapping[str, float]) -> Recipe:
    """The recipe, and the one it starts from, with another `lr` or `weight_decay` of its optimizer."""
    if not rates:
        return recipe

    def optimizer(network: nn.Module) -> Optimizer:
        made = recipe.optimizer(network)
        for group in made.param_groups:
            group.update(rates)
        return made

    start = recipe.start and replace(recipe.start, recipe=with_rates(recipe.start.recipe, rates))
    return replace(recipe, optimizer=optimizer, start=start)
