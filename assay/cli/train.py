"""The command `assay train`."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from assay import evaluate
from assay._core.arrays import InputError
from assay._core.lookup import needs
from assay._core.own_code import trained_by
from assay._core.variants import parse_variant
from assay.cli.output import show
from assay.epochs import Record
from assay.nn.names import Precision
from assay.predictions import Predictions

if TYPE_CHECKING:
    from assay.nn.training import Hardware, Recipe, Trained

SHOWN = ("accuracy", "ece", "auroc", "aurc")


@Parameter(name="*")
@dataclass(frozen=True)
class Changes:
    """What is changed of a recipe.

    Parameters
    ----------
    epochs
        Length of the training, by default that of the recipe; its schedule keeps its shape.
    batch_size
        Samples a step, by default those of the recipe.
    augment
        Crop and flip images as is usual for the data set.
    """

    epochs: int | None = None
    batch_size: int | None = None
    augment: bool = True

    def of(self, recipe: Recipe) -> Recipe:
        return replace(
            recipe,
            epochs=recipe.epochs if self.epochs is None else self.epochs,
            batch_size=recipe.batch_size if self.batch_size is None else self.batch_size,
            augment=self.augment,
        )


@Parameter(name="*")
@dataclass(frozen=True)
class Place:
    """Where a run takes place.

    Parameters
    ----------
    device
        cpu, cuda, mps or auto.
    precision
        Precision of weights and arithmetic.
    workers
        Processes that read images from disk.
    threads
        CPU threads, by default OMP_NUM_THREADS or 1; a run repeats exactly only on the same number.
    """

    device: str = "auto"
    precision: Precision = "32-true"
    workers: int = 0
    threads: int | None = None

    def take(self) -> Hardware:
        """The hardware of the run, with its threads set."""
        from assay.nn import training

        if self.threads is not None or "OMP_NUM_THREADS" not in os.environ:
            training.use_threads(self.threads or 1)
        return training.Hardware(self.device, self.precision, self.workers)


def train_command(
    *,
    data: str,
    network: str,
    recipe: str,
    out: Path,
    changes: Changes = Changes(),
    seed: int = 0,
    folder: Path | None = None,
    n_train: int | None = None,
    held_out: int | None = None,
    start: Path | None = None,
    record: Annotated[Record, Parameter(name="*", consume_multiple=True, negative_iterable="")] = Record(),  # noqa: B008 (frozen)
    place: Place = Place(),
) -> None:
    """Train a network and write its predictions; an interrupted run continues from its last epoch.

    Under `torchrun --nproc-per-node N -m assay train ...` N processes share each batch.

    Parameters
    ----------
    data
        A data set, or your own at package.module:loader.
    network
        A network, possibly with values, such as tree_lstm,width=100; or your own at package.module:factory.
    recipe
        A recipe, such as focal; with @ in the set-up of another paper, and possibly with values, such as
        focal@mukhoti2020,gamma=5.
    out
        Folder of the run.
    seed
        Seed of weights, order, augmentation and dropout; the held-out samples are the same for all seeds.
    folder
        Folder that holds data sets; by default the one that ASSAY_DATA names.
    n_train
        Training samples to use; by default all.
    held_out
        Training samples to hold out; by default a tenth.
    start
        A safetensors file of weights to start from, here or in the folder of data sets; by default they are drawn.
    """
    if seed < 0:
        raise InputError(f"--seed must be 0 or more, got {seed}")
    if place.threads is not None and place.threads < 1:
        raise InputError(f"--threads must be 1 or more, got {place.threads}")
    needs("torch")
    needs("lightning")
    from assay.nn import recipes, training
    from assay.nn.data import Cut, load

    hardware = place.take()
    chosen = changes.of(recipes.recipe(recipe))
    splits = load(data, folder=folder, cut=Cut(held_out=held_out, n_train=n_train))
    made = training.fitting(network, splits.train, data, seed=seed)
    names = {"data": data, "network": network} | ({"folder": str(folder.resolve())} if folder else {})
    names |= trained_by(data, parse_variant(network).name, parse_variant(recipe).name)
    if start is not None:
        weights = training.read_weights(start, folder=folder)
        splits = training.started_from(weights, made, splits)
        names["start"] = weights.name
    trained = training.train(
        made,
        splits,
        chosen,
        seed=seed,
        out=out,
        record=record,
        hardware=hardware,
        names=names,
    )
    if os.environ.get("RANK", "0") == "0":
        _report(trained, chosen.epochs, out)


def _report(trained: Trained, epochs: int, out: Path) -> None:
    if trained.resumed_at:
        show(f"{out}: {trained.resumed_at} of {epochs} epochs were done before", "dim")
    for split, predictions in (("held_out", trained.held_out), ("test", trained.test)):
        if predictions is not None:
            show(_summary(split, predictions))
    show(f"assay audit {out / 'test.npz'} has the details", "dim")


def _summary(split: str, predictions: Predictions) -> str:
    values = evaluate(predictions, SHOWN)
    shown = "  ".join(f"{key} {values[key]:.4f}" for key in SHOWN)
    return f"{split:9}{len(predictions):>7,} samples  {shown}"
