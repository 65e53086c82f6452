"""Recipes: the methods of the seeds as one table, each in the set-up of any seed.

`recipe("focal")` is focal loss in the set-up of seed 000, `recipe("focal@004")` in that of seed 004. Hyper-parameters
are the papers'; where their code has others, a comment says so. Schedules are shares of the training, so that any
recipe runs at any length: `dataclasses.replace(recipe("fmfp"), epochs=20)`.
"""

from __future__ import annotations

from dataclasses import replace

from assay.arrays import InputError
from assay.names import found
from assay.recipes._methods import Method, Value, Values
from assay.recipes._setups import OF_ONE_METHOD, SETUPS, Setup
from assay.recipes._table import ABOUT, METHODS, PRIMARIES, SECONDARIES
from assay.training import Recipe


def recipe(name: str, values: Values | None = None) -> Recipe:
    """The recipe of that name: a method in the set-up of seed 000, or with @ in another's, as focal@004.

    `values` take the place of its own hyper-parameters.

    >>> recipe("fmfp").epochs, recipe("fmfp@004").epochs
    (200, 350)
    >>> smoother = recipe("label_smoothing", {"epsilon": 0.1})
    """
    method, _, seed = name.partition("@")
    try:
        setup = OF_ONE_METHOD[name] if name in OF_ONE_METHOD else found("set-up", seed or "000", SETUPS)
        made = found("recipe", method, METHODS)(setup, values or {})
    except InputError as problem:
        raise InputError(f"recipe '{name}': {problem}" if values else str(problem)) from problem
    return replace(made, name=name)


RECIPES: dict[str, Recipe] = {name: recipe(name) for name in METHODS}
"""Every method, in the set-up of seed 000."""

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
]
