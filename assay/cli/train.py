"""The command `assay train`."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import torch
from cyclopts import Parameter
from rich.console import Console
from torch import Tensor, nn

from assay import evaluate
from assay._core.arrays import InputError
from assay.nn.data import Cut, batches, load
from assay.nn.networks import network as network_named
from assay.nn.recipes import recipe as recipe_named
from assay.nn.training import Hardware, Record, fitting, initialized, load_weights, train
from assay.predictions import Predictions

SHOWN = ("accuracy", "ece", "auroc", "aurc")


def train_command(
    *,
    data: str,
    network: str,
    recipe: str,
    out: Path,
    epochs: int | None = None,
    batch_size: int | None = None,
    seed: int = 0,
    folder: Path | None = None,
    n_train: int | None = None,
    held_out: int | None = None,
    augment: bool = True,
    record: Annotated[Record, Parameter(name="*", consume_multiple=True, negative_iterable="")] = Record(),  # noqa: B008 (frozen)
    device: str = "auto",
    precision: Literal["32-true", "bf16-mixed", "64-true"] = "32-true",
    workers: int = 0,
    threads: int | None = None,
) -> None:
    """Train a network and write its predictions; a run that was interrupted goes on where it was.

    Under `torchrun --nproc-per-node N -m assay train ...` N processes share each batch.

    Parameters
    ----------
    data
        A data set, or your own at package.module:loader.
    network
        A network, or your own at package.module:factory.
    recipe
        A recipe, as focal; with @ in another paper's set-up, as focal@mukhoti2020.
    out
        Folder of the run.
    epochs
        Length of the training, the recipe's own by default; its schedule keeps its shape.
    batch_size
        Samples a step, the recipe's own by default.
    seed
        Of weights, order, augmentation and dropout; the held-out samples are the same for all seeds.
    folder
        Folder that holds data sets; by default the one that ASSAY_DATA names.
    n_train
        Training samples to use; by default all.
    held_out
        Training samples to hold out; by default a tenth.
    augment
        Crop and flip images as is usual for the data set.
    device
        cpu, cuda, mps or auto.
    precision
        Of weights and arithmetic.
    workers
        Processes that read images which are not in memory.
    threads
        Threads on the CPU; a run is the same again only with as many.
    """
    if seed < 0:
        raise InputError(f"--seed must be 0 or more, got {seed}")
    if threads is not None:
        if threads < 1:
            raise InputError(f"--threads must be 1 or more, got {threads}")
        torch.set_num_threads(threads)
    chosen = recipe_named(recipe)
    chosen = replace(
        chosen,
        epochs=chosen.epochs if epochs is None else epochs,
        batch_size=chosen.batch_size if batch_size is None else batch_size,
        augment=augment,
    )
    splits = load(data, folder=folder, cut=Cut(held_out=held_out, n_train=n_train))
    trained = train(
        fitting(network, splits.train, data, seed=seed),
        splits,
        chosen,
        seed=seed,
        out=out,
        record=record,
        hardware=Hardware(device, precision, workers),
        names={"data": data, "network": network} | ({"folder": str(folder.resolve())} if folder else {}),
    )
    if os.environ.get("RANK", "0") == "0":
        console = Console()
        if trained.resumed_at:
            console.print(f"{out}: {trained.resumed_at} of {chosen.epochs} epochs were done before", style="dim")
        for split, predictions in (("held_out", trained.held_out), ("test", trained.test)):
            if predictions is not None:
                console.print(_summary(split, predictions), highlight=False)
        console.print(f"assay audit {out / 'test.npz'} tells more", style="dim")


def _summary(split: str, predictions: Predictions) -> str:
    values = evaluate(predictions)
    shown = "  ".join(f"{key} {values[key]:.4f}" for key in SHOWN)
    return f"{split:9}{len(predictions):>7,} samples  {shown}"


def kept_network(run: Path, *, n: int = 64) -> tuple[nn.Module, Tensor]:
    """The network that a run of named data and network has kept, and some of its test samples."""
    try:
        names = json.loads((run / "run.json").read_text())["names"]
        data, network = names["data"], names["network"]
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise InputError(f"{run}: no run of `assay train` or of a study: {problem}") from problem
    splits = load(data, folder=names.get("folder"))
    made = initialized(network_named(network), splits.train, seed=0)
    load_weights(made, run)
    some = splits.test[torch.arange(min(n, len(splits.test)))]
    return made.eval(), next(batches(some, len(some))).x
