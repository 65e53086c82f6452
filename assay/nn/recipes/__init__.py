"""Recipes: the methods of the five papers as one table, each in the set-up of any of them.

`recipe("focal")` is focal loss in the set-up of zhu2022, `recipe("focal@mukhoti2020")` in that of mukhoti2020.
Hyper-parameters are those of the papers; a comment says if a paper's code has others. Schedules are shares of the
training, so that any recipe runs at any length: `dataclasses.replace(recipe("fmfp"), epochs=20)`.
"""

from __future__ import annotations

from dataclasses import replace

from assay._core.arrays import InputError
from assay._core.lookup import lookup
from assay.nn.names import ABOUT, Value
from assay.nn.recipes._methods import Method, Values, with_rates
from assay.nn.recipes._setups import OF_ONE_METHOD, SETUPS, Setup
from assay.nn.recipes._table import METHODS, PRIMARIES, SECONDARIES
from assay.nn.training import Recipe


def recipe(name: str, values: Values | None = None) -> Recipe:
    """The recipe of that name: a method in the set-up of zhu2022, or after @ in another, as in focal@mukhoti2020.

    `values` replace its own hyper-parameters.

    >>> recipe("fmfp").epochs, recipe("fmfp@mukhoti2020").epochs
    (200, 350)
    >>> smoother = recipe("label_smoothing", {"epsilon": 0.1})
    """
    method, _, paper = name.partition("@")
    try:
        setup = OF_ONE_METHOD[name] if name in OF_ONE_METHOD else lookup("set-up", paper or "zhu2022", SETUPS)
        made = lookup("recipe", method, METHODS)(setup, values or {})
    except InputError as problem:
        raise InputError(f"recipe '{name}': {problem}" if values else str(problem)) from problem
    return replace(made, name=name)


RECIPES: dict[str, Recipe] = {name: recipe(name) for name in METHODS}
"""Every method, in the set-up of zhu2022."""

__all__ = [
    "ABOUT",
    "METHODS",
    "PRIMARIES",
    "RECIPES",
    "SECONDARIES",
    "SETUPS",
    "Method",
    "Setup",
    "Value",
    "Values",
    "recipe",
    "with_rates",
]
