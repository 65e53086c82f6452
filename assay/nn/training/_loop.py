"""The loop that trains every recipe, and what a run keeps and writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Generator, Tensor, nn

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
from assay.nn.training._history import Evaluated, History, Recorder, Shown, progress
from assay.nn.training._network import as_weights, predict, seed_of, weights_kept
from assay.nn.training._recipe import EpochEnd, Phase, Recipe, phases
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
    configuration = _configuration(network, splits, recipe, record) | {"names": dict(names or {}), "seed": seed}
    configuration |= {"precision": hardware.precision, "processes": fabric.world_size}
    recorder = Recorder(record, network, splits.train, History())
    folder = RunFolder(out, configuration, writes=fabric.global_rank == 0)
    run = _Run(network, model, splits, recipe, seed, hardware, fabric, recorder, folder)
    saved = run.resumed()
    done = len(run.history.epochs)
    with torch.random.fork_rng(range(torch.cuda.device_count())), reused_memory(), run.progress() as shown:
        for phase in phases(recipe):
            stage = run.stage(phase, saved, done)
            for epoch in range(max(phase.first, done), phase.end):
                run.epoch(epoch, stage, shown)
        if saved is None or not saved["finished"]:
            run.finish(stage)
    network.eval()
    trained = Trained(network, run.history, run.predicted(splits.held_out), run.predicted(splits.test), done)
    folder.write(run.history, {"held_out": trained.held_out, "test": trained.test}, splits)
    run.save(stage, finished=True)
    return trained


@dataclass(frozen=True, eq=False)
class _Run:
    """A run under way: what is trained, on what, and where it is written."""

    network: nn.Module
    model: Any  # the network as Fabric runs it
    splits: Splits
    recipe: Recipe
    seed: int
    hardware: Hardware
    fabric: Fabric
    recorder: Recorder
    folder: RunFolder

    @property
    def history(self) -> History:
        return self.recorder.history

    @cached_property
    def task(self) -> Task:
        return Task(len(self.splits.train), self.splits.train.n_classes, self.recipe.epochs)

    @cached_property
    def weights(self) -> list[float]:
        """Of each batch, what this process counts in it."""
        fabric = self.fabric
        return part_weights(self.task.n_samples, self.recipe.batch_size, fabric.global_rank, fabric.world_size)

    @cached_property
    def evaluated(self) -> Evaluated:
        return {name: partial(self.predicted, getattr(self.splits, name)) for name in ("held_out", "test")}

    def resumed(self) -> dict[str, Any] | None:
        """Open the folder; what an earlier run saved there, whose weights and history are taken over."""
        saved = self.folder.open()
        if saved is not None:
            with restoring(self.folder.path):
                self.network.load_state_dict(saved["network"])
                self.history.load_state_dict(saved["history"])
        return saved

    def progress(self) -> AbstractContextManager[Shown]:
        done, steps = len(self.history.epochs), len(self.weights)
        visible = self.fabric.global_rank == 0
        return progress(self.recipe.name, done=done * steps, steps=self.recipe.epochs * steps, visible=visible)

    def stage(self, phase: Phase, saved: dict[str, Any] | None, done: int) -> Stage:
        """The state of a phase of the recipe at its beginning, or where the run was interrupted."""
        fabric = self.fabric
        stage = Stage(phase.recipe, self.task, self.network, self.model, fabric.backward, scaler_of(fabric))
        if saved is not None and phase.first < done <= phase.end:
            with restoring(self.folder.path):
                stage.load_state_dict(saved["stages"][fabric.global_rank])
        elif done <= phase.first:
            stage.keeper.begin(self.network)
        return stage

    def epoch(self, epoch: int, stage: Stage, shown: Shown) -> None:
        """Train an epoch, and write down what is recorded of it."""
        network, fabric, recorder, recipe = self.network, self.fabric, self.recorder, stage.recipe
        sampler = part_of(recipe.sampler, fabric.global_rank, fabric.world_size)
        torch.manual_seed(seed_of(self.seed, epoch, 1 + fabric.global_rank))
        with recorder.watching(epoch) as announce:
            losses = stage.epoch(epoch, shown(self.batches(epoch, sampler)), self.weights, announce)
        share_buffers(network, fabric)
        here = {name: cache(evaluate) for name, evaluate in self.evaluated.items()}
        rate = stage.rates[0] * recipe.schedule(epoch, self.recipe.epochs)
        row = {"epoch": epoch, "learning_rate": rate, "loss": self.mean_loss(losses)}
        recorder.write(epoch, row, here, partial(sum_of_all, fabric=fabric))
        stage.keeper.look(EpochEnd(network, epoch, self.recipe.epochs, here["held_out"]))
        if recorder.record.clean_train:
            clean = self.predicted(self.splits.train)
            assert clean is not None, "there is a training set"
            recorder.write_of_clean(row, clean)
        if recorder.looks_at_average and stage.keeper.has_average():
            with weights_kept(network):
                self.finish(stage)
                recorder.write_of_average(row, self.evaluated)
        self.save(stage, finished=False)

    def batches(self, epoch: int, sampler: Sampler | None) -> Iterator[Batch]:
        drawn = shuffled_batches(
            self.splits.train,
            self.recipe.batch_size,
            Generator().manual_seed(seed_of(self.seed, epoch)),
            epoch=epoch,
            augment=self.splits.train.facts.augment if self.recipe.augment else None,
            sampler=sampler,
            rank=self.fabric.global_rank,
            device=self.fabric.device,
            workers=self.hardware.workers,
        )
        return (replace(batch, x=as_weights(batch.x, next(self.network.parameters()))) for batch in drawn)

    def mean_loss(self, losses: Tensor) -> float:
        """Of the losses of all batches, over the samples of all processes."""
        sizes = torch.tensor(batch_sizes(self.task.n_samples, self.recipe.batch_size), device=self.fabric.device)
        return float(mean_of_all(losses, self.fabric) @ sizes.to(losses.dtype)) / self.task.n_samples

    def predicted(self, samples: Samples) -> Predictions | None:
        try:
            return predict(self.network, samples, workers=self.hardware.workers) if len(samples) else None
        except InputError as problem:
            epoch = min(len(self.history.epochs), self.recipe.epochs - 1)
            raise InputError(f"recipe {self.recipe.name}, after epoch {epoch}: {problem}") from problem

    def finish(self, stage: Stage) -> None:
        """Give the network the weights that the recipe keeps."""
        torch.manual_seed(seed_of(self.seed, self.recipe.epochs))
        stage.keeper.finish(self.network, (batch.x for batch in self.batches(self.recipe.epochs, self.recipe.sampler)))

    def save(self, stage: Stage, *, finished: bool) -> None:
        state = {"network": self.network.state_dict(), "history": self.history.state_dict(), "finished": finished}
        self.folder.save(state | {"stages": states_of_all(stage.state_dict(), self.fabric)})


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
