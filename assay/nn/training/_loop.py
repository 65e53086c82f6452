"""The loop that trains every recipe, and what a run keeps and writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Generator, nn

from assay._core.arrays import InputError
from assay.epochs import Record
from assay.nn.data import Data, Sampler, Samples, Splits, batch_sizes, shuffled_batches, splits_of
from assay.nn.objectives import Batch, Task
from assay.nn.training._configuration import described, described_network, described_splits
from assay.nn.training._folder import RunFolder, restoring
from assay.nn.training._hardware import (
    Hardware,
    launched,
    mean_of_all,
    part_of,
    part_weights,
    reused_memory,
    scaler_of,
    share_buffers,
    states_of_all,
    sum_of_all,
)
from assay.nn.training._history import Evaluated, History, Recorder, progress
from assay.nn.training._network import as_weights, predict, seed_of, weights_kept
from assay.nn.training._recipe import EpochEnd, Recipe, phases
from assay.nn.training._stage import Stage
from assay.predictions import Predictions

if TYPE_CHECKING:
    from lightning.fabric import Fabric


@dataclass(frozen=True, eq=False)
class Trained:
    """The result of a run."""

    network: nn.Module  # the one given, with the weights that the recipe keeps, in eval mode
    history: History
    held_out: Predictions | None  # None if there are no such samples
    test: Predictions | None
    resumed_at: int  # epochs that were done before


def train(
    network: nn.Module,
    splits: Splits | Data,
    recipe: Recipe,
    *,
    seed: int = 0,
    out: Path | None = None,
    record: Record = Record(),  # noqa: B008 (frozen)
    hardware: Hardware = Hardware(),  # noqa: B008 (frozen)
    names: Mapping[str, str] | None = None,
) -> Trained:
    """Train the network, in place, and predict held-out and test samples.

    A torch Dataset or DataLoader of (x, y) is taken too: a tenth of it is held out, and the batches are the recipe's.
    `assay.nn.data.splits_of` makes splits of several.

    (seed, epoch) decide order, augmentation and dropout of an epoch; torch's random state stays as it was. With a
    folder `out`, an interrupted run continues after its last finished epoch and ends as it would have without the
    interruption. `names`, for instance of the data set and the network, are written to its run.json.
    """
    if not isinstance(splits, Splits):
        splits = splits_of(splits)
    record.refuse_beyond(recipe.epochs)
    recipe.keep().refuse(recipe.epochs, held_out=len(splits.held_out))
    fabric = launched(hardware)
    if fabric.device.type == "cpu":
        # Convolutions on CPUs take about three quarters of the time.
        network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # stubs lack it
    model = _wrapped(network, fabric)
    rank, processes = fabric.global_rank, fabric.world_size
    task = Task(len(splits.train), splits.train.n_classes, recipe.epochs)
    weights = part_weights(task.n_samples, recipe.batch_size, rank, processes)
    sizes = torch.tensor(batch_sizes(task.n_samples, recipe.batch_size), device=fabric.device)
    configuration = _configuration(network, splits, recipe, record) | {"names": dict(names or {}), "seed": seed}
    configuration |= {"precision": hardware.precision, "processes": processes}
    history = History()
    recorder = Recorder(record, network, splits.train, history)
    folder = RunFolder(out, configuration, writes=rank == 0)
    saved = folder.open()
    if saved is not None:
        with restoring(out):
            network.load_state_dict(saved["network"])
            history.load_state_dict(saved["history"])
    done = len(history.epochs)

    augment = splits.train.facts.augment if recipe.augment else None
    shuffled = partial(shuffled_batches, splits.train, recipe.batch_size, augment=augment, workers=hardware.workers)

    def batches(epoch: int, sampler: Sampler | None) -> Iterator[Batch]:
        generator = Generator().manual_seed(seed_of(seed, epoch))
        drawn = shuffled(generator, epoch=epoch, sampler=sampler, rank=rank, device=fabric.device)
        return (replace(batch, x=as_weights(batch.x, next(network.parameters()))) for batch in drawn)

    def predicted(samples: Samples) -> Predictions | None:
        try:
            return predict(network, samples, workers=hardware.workers) if len(samples) else None
        except InputError as problem:
            epoch = min(len(history.epochs), recipe.epochs - 1)
            raise InputError(f"recipe {recipe.name}, after epoch {epoch}: {problem}") from problem

    evaluated: Evaluated = {"held_out": partial(predicted, splits.held_out), "test": partial(predicted, splits.test)}

    def finish(stage: Stage) -> None:
        torch.manual_seed(seed_of(seed, recipe.epochs))
        stage.keeper.finish(network, (batch.x for batch in batches(recipe.epochs, recipe.sampler)))

    def save(stage: Stage, *, finished: bool) -> None:
        state = {"network": network.state_dict(), "history": history.state_dict(), "finished": finished}
        folder.save(state | {"stages": states_of_all(stage.state_dict(), fabric)})

    bar = progress(recipe.name, done=done * len(weights), steps=recipe.epochs * len(weights), visible=rank == 0)
    with torch.random.fork_rng(range(torch.cuda.device_count())), reused_memory(), bar as shown:
        for phase in phases(recipe):
            stage = Stage(phase.recipe, task, network, model, fabric.backward, scaler_of(fabric))
            sampler = part_of(phase.recipe.sampler, rank, processes)
            if saved is not None and phase.first < done <= phase.end:
                with restoring(out):
                    stage.load_state_dict(saved["stages"][rank])
            elif done <= phase.first:
                stage.keeper.begin(network)
            for epoch in range(max(phase.first, done), phase.end):
                torch.manual_seed(seed_of(seed, epoch, 1 + rank))
                with recorder.watching(epoch) as announce:
                    losses = stage.epoch(epoch, shown(batches(epoch, sampler)), weights, announce)
                share_buffers(network, fabric)
                here = {name: cache(evaluate) for name, evaluate in evaluated.items()}
                factor = phase.recipe.schedule(epoch, recipe.epochs)
                loss = float(mean_of_all(losses, fabric) @ sizes.to(losses.dtype)) / task.n_samples
                row = {"epoch": epoch, "learning_rate": stage.rates[0] * factor, "loss": loss}
                recorder.write(epoch, row, here, partial(sum_of_all, fabric=fabric))
                stage.keeper.look(EpochEnd(network, epoch, recipe.epochs, here["held_out"]))
                if record.clean_train:
                    clean = predicted(splits.train)
                    assert clean is not None, "there is a training set"
                    recorder.write_of_clean(row, clean)
                if recorder.looks_at_average and stage.keeper.has_average():
                    with weights_kept(network):
                        finish(stage)
                        recorder.write_of_average(row, evaluated)
                save(stage, finished=False)
        if saved is None or not saved["finished"]:
            finish(stage)
    network.eval()
    trained = Trained(network, history, predicted(splits.held_out), predicted(splits.test), done)
    folder.write(history, {"held_out": trained.held_out, "test": trained.test}, splits)
    save(stage, finished=True)
    return trained


def _wrapped(network: nn.Module, fabric: Fabric) -> Any:
    """The network as Fabric runs it; trees have a second forward method, which DDP must treat like the first."""
    model = fabric.setup_module(network)
    if hasattr(network, "nodes"):
        model.mark_forward_method("nodes")
    return model


def _configuration(network: nn.Module, splits: Splits, recipe: Recipe, record: Record) -> dict[str, Any]:
    """What a run trains: only a run with the same is resumed."""
    return {
        "network": described_network(network),
        "data": described_splits(splits),
        "recipe": described(recipe),
        "record": described(record),
    }
