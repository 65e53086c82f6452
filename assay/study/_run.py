"""A run: one point of a study, and its folder."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from assay._core.arrays import InputError
from assay._core.text import file_name
from assay._core.variants import Value, Variant
from assay.epochs import Record
from assay.study._study import Study

if TYPE_CHECKING:
    from assay.nn.training import Recipe

RECORD = Record()


@dataclass(frozen=True)
class Run:
    """Everything that decides how a network is trained; equal runs are the same run."""

    data: str
    network: str
    method: Variant  # the recipe, its set-up, and the values that replace its own
    seed: int
    epochs: int | None = None
    batch_size: int | None = None
    augment: bool = True
    start: str | None = None
    learning_rate: float | None = None
    weight_decay: float | None = None
    n_train: int | None = None
    held_out: int | None = None
    record: Record = RECORD  # what training records; it cannot be computed later
    label: str = field(default="", compare=False)  # the method's name in the study, without values chosen for the data

    @property
    def shown(self) -> str:
        """The name of the method in tables and figures, the same on all data sets and networks."""
        return self.label or str(self.method)

    @property
    def folder(self) -> Path:
        """Its folder under the folder of all runs: another configuration is another folder."""
        data = _labelled(self.data, n_train=self.n_train, held_out=self.held_out)
        method = _labelled(
            str(self.method),
            epochs=self.epochs,
            batch_size=self.batch_size,
            lr=self.learning_rate,
            wd=self.weight_decay,
            augment=None if self.augment else "off",
            start=self.start and Path(self.start).stem,
            record=None if self.record == RECORD else sha256(repr(self.record).encode()).hexdigest()[:8],
        )
        return Path(data, _labelled(self.network), method, str(self.seed))

    def built_recipe(self) -> Recipe:
        """The recipe that trains the run; a rate or decay among its values overrides that of the study."""
        from assay.nn.recipes import recipe

        rates = {"learning_rate": self.learning_rate, "weight_decay": self.weight_decay}
        given: dict[str, Value] = {name: rate for name, rate in rates.items() if rate is not None}
        rated = recipe(self.method.full_name, given | dict(self.method.values))
        return replace(
            rated,
            name=str(self.method),
            epochs=rated.epochs if self.epochs is None else self.epochs,
            batch_size=rated.batch_size if self.batch_size is None else self.batch_size,
            augment=self.augment,
        )


def expand(study: Study, *, only: str = "*") -> list[Run]:
    """Every run of a study whose folder matches the pattern, by seed, so that each method has a first run early."""
    axes = product(
        study.seeds,
        study.data,
        map(str, study.networks_in_full),
        study.methods,
        study.n_train,
        study.learning_rates,
        study.weight_decays,
    )
    runs = [
        Run(
            data=data,
            network=network,
            method=study.at(data, network, method),
            label=str(method),
            seed=seed,
            epochs=study.epochs,
            batch_size=study.batch_size,
            augment=study.augment,
            start=study.start,
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            n_train=n_train,
            held_out=study.held_out,
            record=study.record,
        )
        for seed, data, network, method, n_train, learning_rate, weight_decay in axes
    ]
    if len(set(runs)) < len(runs):
        raise InputError("the study has the same run twice")
    return [run for run in runs if fnmatch(str(run.folder), f"*{only}*")]


def _labelled(first: str, **more: object) -> str:
    """A part of the path; the values of a study file may be any text."""
    labels = (f"{name}={value}" for name, value in more.items() if value is not None)
    return file_name(",".join([first.replace(":", "."), *labels]))
