"""A run: one point of a study, and where it is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from itertools import product
from pathlib import Path

from torch import nn
from torch.optim import Optimizer

from assay.arrays import InputError
from assay.recipes import Value
from assay.recipes import recipe as recipe_named
from assay.study._study import Study
from assay.training import Recipe


@dataclass(frozen=True)
class Run:
    """What decides how a network is trained; equal runs are the same run."""

    data: str
    network: str
    recipe: str
    values: tuple[tuple[str, Value], ...]  # hyper-parameters of the recipe that are not its own
    seed: int
    epochs: int | None = None
    batch_size: int | None = None
    augment: bool = True
    learning_rate: float | None = None
    weight_decay: float | None = None
    n_train: int | None = None
    held_out: int | None = None

    @property
    def method(self) -> str:
        """The recipe, and what of it differs from its own."""
        return ",".join([self.recipe, *(f"{name}={value}" for name, value in self.values)])

    @property
    def folder(self) -> Path:
        """Where it is kept under the folder of all runs: another configuration is another folder."""
        data = _named(self.data, n_train=self.n_train, held_out=self.held_out)
        method = _named(
            self.method,
            epochs=self.epochs,
            batch_size=self.batch_size,
            lr=self.learning_rate,
            wd=self.weight_decay,
            augment=None if self.augment else "off",
        )
        return Path(data, self.network.replace(":", "."), method, str(self.seed))

    def built_recipe(self) -> Recipe:
        """The recipe that the run trains by."""
        found = recipe_named(self.recipe, dict(self.values))
        return replace(
            found,
            name=self.method,
            epochs=found.epochs if self.epochs is None else self.epochs,
            batch_size=found.batch_size if self.batch_size is None else self.batch_size,
            augment=self.augment,
            optimizer=_with_rates(found, self.learning_rate, self.weight_decay),
        )


def expand(study: Study, *, only: str = "*") -> list[Run]:
    """Every run of a study whose folder fits the pattern, seeds last, so that each method has a first run early."""
    axes = product(
        study.seeds,
        study.data,
        study.networks,
        _methods(study),
        study.n_train,
        study.learning_rates,
        study.weight_decays,
    )
    runs = [
        Run(
            data,
            network,
            name,
            values,
            seed,
            study.epochs,
            study.batch_size,
            study.augment,
            learning_rate,
            weight_decay,
            n_train,
            study.held_out,
        )
        for seed, data, network, (name, values), n_train, learning_rate, weight_decay in axes
    ]
    if len(set(runs)) < len(runs):
        raise InputError("the study has the same run twice")
    return [run for run in runs if fnmatch(str(run.folder), f"*{only}*")]


def _methods(study: Study) -> list[tuple[str, tuple[tuple[str, Value], ...]]]:
    """Recipes, each with every combination of the values that it is given."""
    methods: list[tuple[str, tuple[tuple[str, Value], ...]]] = []
    for entry in study.recipes:
        if isinstance(entry, str):
            methods.append((entry, ()))
            continue
        axes = {
            name: value if isinstance(value, list) else [value] for name, value in entry.items() if name != "recipe"
        }
        for values in product(*axes.values()):
            methods.append((str(entry["recipe"]), tuple(zip(axes, values, strict=True))))
    return methods


def _named(first: str, **more: object) -> str:
    return ",".join(
        [first.replace(":", "."), *(f"{name}={value}" for name, value in more.items() if value is not None)]
    )


def _with_rates(
    recipe: Recipe, learning_rate: float | None, weight_decay: float | None
) -> Callable[[nn.Module], Optimizer]:
    """The recipe's optimizer with another rate or decay."""
    changed = {"lr": learning_rate, "weight_decay": weight_decay}
    given = {name: value for name, value in changed.items() if value is not None}
    if not given:
        return recipe.optimizer

    def optimizer(network: nn.Module) -> Optimizer:
        made = recipe.optimizer(network)
        for group in made.param_groups:
            group.update(given)
        return made

    return optimizer
