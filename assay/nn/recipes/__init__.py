"""Recipes: the methods of the five papers as one table, each in the set-up of any of them.

`recipe("focal")` is focal loss in the set-up of zhu2022, `recipe("focal@mukhoti2020,gamma=5")` in that of mukhoti2020
with another gamma.
Hyper-parameters are those of the papers; a comment says if a paper's code has others. Schedules are shares of the
training, so that any recipe runs at any length: `dataclasses.replace(recipe("fmfp"), epochs=20)`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from assay._core.arrays import InputError
from assay._core.lookup import lookup, lookup_or_import
from assay._core.variants import Value, Variant, parse_variant
from assay.nn.names import ABOUT
from assay.nn.recipes._methods import (
    Method,
    Values,
    from_baseline,
    minimizing,
    number,
    with_objective,
    with_optimizer,
    with_rates,
)
from assay.nn.recipes._setups import OF_ONE_METHOD, SETUPS, Setup
from assay.nn.recipes._table import METHODS, PRIMARIES, SECONDARIES
from assay.nn.training import Recipe

OWN: dict[str, Callable[..., Method]] = {
    "loss": minimizing,
    "objective": with_objective,
    "optimizer": with_optimizer,
}
"""Parts of a recipe that can be a user's own, and the method that puts one into the baseline."""
RATES = {"learning_rate": "lr", "weight_decay": "weight_decay"}
"""Values that every recipe has, and what its optimizer calls them."""


def recipe(name: str, values: Values | None = None) -> Recipe:
    """The recipe of that name: a method in the set-up of zhu2022, or after @ in another, as in focal@mukhoti2020.

    `values`, and those behind the name, replace its own hyper-parameters; every recipe has a learning_rate and a
    weight_decay.

    The baseline with a part of your own is loss=package.module:function, objective=... or optimizer=..., and a recipe
    of your own is package.module:function, a function of the baseline. Their other parameters are values:
    recipe("loss=mine:smooth,strength=0.1").

    >>> recipe("fmfp").epochs, recipe("fmfp@mukhoti2020").epochs
    (200, 350)
    >>> smoother = recipe("label_smoothing,epsilon=0.1")
    >>> recipe("label_smoothing", {"epsilon": 0.1}).name
    'label_smoothing,epsilon=0.1'
    """
    named = parse_variant(name)
    variant = Variant(named.name, {**named.values, **(values or {})}, named.setup)
    own = {name: value for name, value in variant.values.items() if name not in RATES}
    try:
        rates = {RATES[name]: _rate(name, value) for name, value in variant.values.items() if name in RATES}
        made = _method(variant.name)(_setup(variant), own)
        return replace(with_rates(made, rates), name=str(variant))
    except (InputError, ValueError, TypeError) as problem:
        raise InputError(f"recipe '{variant}': {problem}" if variant.values else str(problem)) from problem


def _method(name: str) -> Method:
    part, equals, function = name.partition("=")
    if equals:
        return lookup("part of a recipe", part, OWN)(lookup_or_import(part, function, {}))
    if name in METHODS:
        return METHODS[name]
    found: Callable[..., Recipe] = lookup_or_import("recipe", name, METHODS)
    return from_baseline(found)


def _rate(name: str, value: Value) -> float:
    rate = number(name, value)
    if not rate >= 0:
        raise InputError(f"{name} must be >= 0, got {value}")
    return rate


def _setup(variant: Variant) -> Setup:
    if variant.full_name in OF_ONE_METHOD:
        return OF_ONE_METHOD[variant.full_name]
    return lookup("set-up", variant.setup or "zhu2022", SETUPS)


RECIPES: Mapping[str, Recipe] = MappingProxyType({name: recipe(name) for name in METHODS})
"""Every method, in the set-up of zhu2022; read-only, your own is `package.module:recipe`."""

__all__ = [
    "ABOUT",
    "METHODS",
    "OWN",
    "PRIMARIES",
    "RATES",
    "RECIPES",
    "SECONDARIES",
    "SETUPS",
    "Method",
    "Setup",
    "Value",
    "Values",
    "recipe",
]
