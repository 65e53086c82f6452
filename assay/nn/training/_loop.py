"""The loop that trains every recipe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

import torch
from torch import Generator, nn

from assay._core.arrays import InputError
from assay.nn.batch import Batch, Task
from assay.nn.data import Sampler, Samples, Splits, batch_sizes, shuffled_batches
from assay.nn.training._configuration import described, described_network, described_splits
from assay.nn.training._folder import RunFolder
from assay.nn.training._hardware import Hardware, launched
from assay.nn.training._history import History, Record
from assay.nn.training._keeping import EpochEnd
from assay.nn.training._memory import reused
from assay.nn.training._predict import as_weights, predict
from assay.nn.training._processes import mean_of_all, of_all, part_of, part_weights, share_buffers, sum_of_all
from assay.nn.training._progress import progress
from assay.nn.training._recipe import Recipe, phases
from assay.nn.training._recording import Recorder
from assay.nn.training._seeds import seed_of
from assay.nn.training._stage import Stage
from assay.predictions import Predictions


@dataclass(frozen=True, eq=False)
class Trained:
    """What a run ends with."""

    network: nn.Module  # the one given, with the weights that the recipe keeps, in eval mode
    history: History
    held_out: Predictions | None  # None where there are no such samples
    test: Predictions | None
    resumed_at: int  # epochs that had been done before


def train(
    network: nn.Module,
    splits: Splits,
    recipe: Recipe,
    *,
    seed: int = 0,
    out: Path | None = None,
    record: Record = Record(),  # noqa: B008 (frozen)
    hardware: Hardware = Hardware(),  # noqa: B008 (frozen)
    names: Mapping[str, str] | None = None,
) -> Trained:
    """Train the network, in place, and say what it answers to held-out and test samples.

    Order, augmentation and dropout of an epoch are decided by (seed, epoch); torch's random state is left as it was.
    In a folder `out` a run that was interrupted goes on after the last epoch it finished, and ends as it would have;
    `names`, as of the data set and the network, are what else its run.json shall say.
    """
    record.refuse_beyond(recipe.epochs)
    recipe.keep().refuse(recipe.epochs, held_out=len(splits.held_out))
    fabric = launched(hardware)
    model = fabric.setup_module(network)
    if hasattr(network, "nodes"):  # another way through the network, which DDP must see as it does its forward
        model.mark_forward_method("nodes")
    rank, processes = fabric.global_rank, fabric.world_size
    task = Task(len(splits.train), splits.train.n_classes, recipe.epochs)
    weights = part_weights(task.n_samples, recipe.batch_size, rank, processes)
    sizes = torch.tensor(batch_sizes(task.n_samples, recipe.batch_size), device=fabric.device)
    configuration = {
        "names": dict(names or {}),
        "network": described_network(network),
        "data": described_splits(splits),
        "recipe": described(recipe),
        "record": described(record),
        "seed": seed,
        "precision": hardware.precision,
        "processes": processes,
    }
    history = History()
    recorder = Recorder(record, network, splits.train, history)
    folder = RunFolder(out, configuration, writes=rank == 0)
    saved = folder.open()
    if saved is not None:
        network.load_state_dict(saved["network"])
        history.load_state_dict(saved["history"])
    done = len(history.epochs)

    def batches(epoch: int, sampler: Sampler | None) -> Iterator[Batch]:
        found = shuffled_batches(
            splits.train,
            recipe.batch_size,
            Generator().manual_seed(seed_of(seed, epoch)),
            epoch=epoch,
            augment=splits.train.facts.augment if recipe.augment else None,
            sampler=sampler,
            rank=rank,
            device=fabric.device,
            workers=hardware.workers,
        )
        return (replace(batch, x=as_weights(batch.x, next(network.parameters()))) for batch in found)

    def predicted(samples: Samples) -> Predictions | None:
        try:
            return predict(network, samples, workers=hardware.workers) if len(samples) else None
        except InputError as problem:
            epoch = min(len(history.epochs), recipe.epochs - 1)
            raise InputError(f"recipe {recipe.name}, after epoch {epoch}: {problem}") from problem

    def save(stage: Stage, *, finished: bool) -> None:
        state = {"network": network.state_dict(), "history": history.state_dict(), "finished": finished}
        folder.save(state | {"stages": of_all(stage.state_dict(), fabric)})

    steps = len(weights)
    bar = progress(recipe.name, done=done * steps, steps=recipe.epochs * steps, visible=rank == 0)
    with torch.random.fork_rng(range(torch.cuda.device_count())), reused(), bar as shown:
        for phase in phases(recipe):
            stage = Stage(phase.recipe, task, network, model, fabric.backward)
            sampler = part_of(phase.recipe.sampler, rank, processes)
            if saved is not None and phase.first < done <= phase.end:
                stage.load_state_dict(saved["stages"][rank])
            for epoch in range(max(phase.first, done), phase.end):
                torch.manual_seed(seed_of(seed, epoch, 1 + rank))
                with recorder.watching(epoch) as tell:
                    losses = stage.epoch(epoch, shown(batches(epoch, sampler)), weights, tell)
                share_buffers(network, fabric)
                held_out, test = (cache(partial(predicted, part)) for part in (splits.held_out, splits.test))
                factor = phase.recipe.schedule(epoch, recipe.epochs)
                loss = float(mean_of_all(losses, fabric) @ sizes.to(losses.dtype)) / task.n_samples
                row = {"epoch": epoch, "learning_rate": stage.rates[0] * factor, "loss": loss}
                recorder.write(epoch, row, {"held_out": held_out, "test": test}, partial(sum_of_all, fabric=fabric))
                stage.keeper.look(EpochEnd(network, epoch, recipe.epochs, held_out))
                save(stage, finished=False)
        if saved is None or not saved["finished"]:
            torch.manual_seed(seed_of(seed, recipe.epochs))
            stage.keeper.finish(network, (batch.x for batch in batches(recipe.epochs, recipe.sampler)))
    network.eval()
    trained = Trained(network, history, predicted(splits.held_out), predicted(splits.test), done)
    folder.write(history, {"held_out": trained.held_out, "test": trained.test}, splits)
    save(stage, finished=True)
    return trained
