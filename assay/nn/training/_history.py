"""What a run records of its training, epoch by epoch, and its progress bar."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from assay._core.arrays import InputError, array
from assay._core.writing import replacing
from assay.epochs import AVERAGED, CLEAN, FIGURES, Record, Split
from assay.metrics import Bins, Tables, equal_width
from assay.nn.data import Samples
from assay.nn.networks import TreeNetwork, roots
from assay.nn.objectives import Batch
from assay.nn.training._network import last_linear
from assay.predictions import Predictions

HISTORY_FILES = ("history.json", "samples.npz")
Shown = Callable[[Iterable[Batch]], Iterable[Batch]]
Evaluated = Mapping[Split, Callable[[], Predictions | None]]
"""Predictions by split; None if it has no samples."""


@dataclass
class History:
    """What a run has recorded so far; epochs count from 0."""

    epochs: list[dict[str, float]] = field(default_factory=list)  # loss, held_out_ece, ...: one row an epoch
    learned_epoch: Tensor | None = None  # [n] int64; the number of epochs if the last answer was wrong
    gradient_norms: dict[int, Tensor] = field(default_factory=dict)  # [n] by epoch
    reliability: dict[int, Bins] = field(default_factory=dict)  # by epoch

    def state_dict(self) -> dict[str, Any]:
        """The state that a resumed run needs."""
        return {
            "epochs": self.epochs,
            "learned_epoch": self.learned_epoch,
            "gradient_norms": self.gradient_norms,
            "reliability": {epoch: _lists(bins) for epoch, bins in self.reliability.items()},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a `state_dict`."""
        self.epochs, self.learned_epoch, self.gradient_norms = (
            state[name] for name in ("epochs", "learned_epoch", "gradient_norms")
        )
        self.reliability = {
            epoch: Bins(**{name: np.array(column) for name, column in bins.items()})
            for epoch, bins in state["reliability"].items()
        }

    def write(self, folder: Path, samples: Samples) -> None:
        """Write rows and reliability to history.json, and columns of the training samples to samples.npz."""
        rows = [{key: x if isfinite(x) else None for key, x in row.items()} for row in self.epochs]
        reliability = {epoch: _lists(bins) for epoch, bins in self.reliability.items()}
        with replacing(folder / "history.json") as stream:
            stream.write(json.dumps({"epochs": rows, "reliability": reliability}, indent=1).encode())
        columns: dict[str, Any] = {
            f"gradient_norm_{epoch}": norms.numpy() for epoch, norms in self.gradient_norms.items()
        }
        if self.learned_epoch is not None:
            columns["learned_epoch"] = self.learned_epoch.numpy()
        if columns:
            with replacing(folder / "samples.npz") as stream:
                np.savez(stream, ids=samples.index.numpy(), **columns)


def _lists(bins: Bins) -> dict[str, list[float]]:
    return {name: column.tolist() for name, column in asdict(bins).items() if column is not None}  # no weights


class FirstLook:
    """One row a training sample, from the first evaluation of its batch in a step: SAM evaluates twice.

    An objective that evaluates parts of a batch, as CS-KD the samples and then their partners, begins with the samples.
    """

    def __init__(self, n: int) -> None:
        self.n = n
        self.awaited: tuple[Batch, float] | None = None
        self.rows: Tensor | None = None  # [n, ...]

    def expect(self, batch: Batch, weight: float) -> None:
        """Announce the next batch and the weight of its loss."""
        self.awaited = batch, weight

    def logits(self, module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        """A forward hook of the network."""
        if self.awaited is not None:
            batch, _ = self.awaited
            self.awaited = None
            self._take(batch.index[: len(output)], output.detach())

    def root_logits(self, module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        """A forward hook of the head of a network over trees, which may answer for every node: [b, nodes, k]."""
        if self.awaited is not None and output.ndim == 3:
            trees = self.awaited[0].x
            output = output[torch.arange(len(trees), device=trees.device), roots(trees)]
        self.logits(module, inputs, output)

    def gradient_norms(self, module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        """A forward hook of the last layer, where a sample's gradient is that of its logits times its features.

        If the loss is no mean over samples, this is the batch size times a sample's part in the gradient.
        """
        if self.awaited is None:
            return
        if output.ndim != 2:
            raise InputError(f"gradient norms need one row of logits a sample, not {list(output.shape)}")
        batch, weight = self.awaited
        self.awaited = None
        of_features = inputs[0].detach().float().norm(dim=1) * (len(output) / weight)
        index = batch.index[: len(output)]
        output.register_hook(  # type: ignore[no-untyped-call]
            lambda g: self._take(index, g.float().norm(dim=1) * of_features)
        )

    def _take(self, index: Tensor, rows: Tensor) -> None:
        if self.rows is None:
            self.rows = rows.new_zeros(self.n, *rows.shape[1:])
        self.rows.index_copy_(0, index.to(rows.device), rows)


class Recorder:
    """Watches the training pass and writes the history."""

    def __init__(self, record: Record, network: nn.Module, samples: Samples, history: History) -> None:
        self.record, self.network, self.samples, self.history = record, network, samples, history
        self.logits, self.norms = FirstLook(len(samples)), FirstLook(len(samples))
        self.head = self._head() if record.weight_norm or record.gradient_norms_at else None
        self.looks_at_average = record.of_average and bool({"held_out", "test"} & {*record.on})

    @contextmanager
    def watching(self, epoch: int) -> Iterator[Callable[[Batch, float], None]]:
        """Inside the block, record the first evaluation of each batch that the yielded function announces."""
        self.logits, self.norms = FirstLook(len(self.samples)), FirstLook(len(self.samples))
        hooks = []
        if "train" in self.record.on or self.record.learned_epochs or epoch in self.record.reliability_at:
            hooks.append((self.logits, self._watch_logits()))
        if self.head is not None and epoch in self.record.gradient_norms_at:
            hooks.append((self.norms, self.head.register_forward_hook(self.norms.gradient_norms)))

        def announce(batch: Batch, weight: float) -> None:
            for look, _ in hooks:
                look.expect(batch, weight)

        try:
            yield announce
        finally:
            for _, hook in hooks:
                hook.remove()

    def _head(self) -> nn.Linear:
        try:
            return last_linear(self.network, self.samples)
        except InputError as problem:
            raise InputError(f"{problem}: neither weight_norm nor gradient_norms_at can be recorded") from problem

    def _watch_logits(self) -> RemovableHandle:
        if isinstance(self.network, TreeNetwork):  # its objective may call the head for all nodes, not its forward
            return self.network.head.register_forward_hook(self.logits.root_logits)
        return self.network.register_forward_hook(self.logits.logits)

    def write(
        self,
        epoch: int,
        row: dict[str, float],
        evaluated: Evaluated,
        total: Callable[[Tensor], Tensor],
    ) -> None:
        """Complete the row of an epoch with what was recorded; `total` sums over processes."""
        logits, norms = (None if look.rows is None else total(look.rows).cpu() for look in (self.logits, self.norms))
        train = None if logits is None else _tables(self._trained_on(logits))
        if train is not None and "train" in self.record.on:
            row |= self._figures("train", train)
        row |= self._figures_of(evaluated)
        if self.head is not None and self.record.weight_norm:
            row["weight_norm"] = float(self.head.weight.detach().norm())
        self.history.epochs.append(row)
        if norms is not None:
            self.history.gradient_norms[epoch] = norms
        if train is not None:
            self._write_of_train(epoch, train)

    def write_of_clean(self, row: dict[str, float], predicted: Predictions) -> None:
        """Add the figures of the training set by a pass without augmentation."""
        row |= self._figures(CLEAN + "train", _tables(predicted))

    def write_of_average(self, row: dict[str, float], evaluated: Evaluated) -> None:
        """Add the figures of averaged weights to the row of an epoch."""
        row |= self._figures_of(evaluated, prefix=AVERAGED)

    def _figures_of(self, evaluated: Evaluated, *, prefix: str = "") -> dict[str, float]:
        """The figures of all splits to record on that have samples."""
        found = {split: predicted() for split, predicted in evaluated.items() if split in self.record.on}
        figures: dict[str, float] = {}
        for split, predictions in found.items():
            if predictions is not None:
                figures |= self._figures(prefix + split, _tables(predictions))
        return figures

    def _figures(self, of: str, tables: Tables) -> dict[str, float]:
        return {f"{of}_{name}": FIGURES[name](tables) for name in self.record.figures}

    def _trained_on(self, logits: Tensor) -> Predictions:
        return Predictions(array(logits, name="logits"), array(self.samples.y, name="labels"))

    def _write_of_train(self, epoch: int, train: Tables) -> None:
        if epoch in self.record.reliability_at:
            self.history.reliability[epoch] = equal_width(train, self.record.reliability_bins)
        if self.record.learned_epochs:
            if self.history.learned_epoch is None:
                self.history.learned_epoch = torch.zeros(len(self.samples), dtype=torch.int64)
            self.history.learned_epoch[torch.from_numpy(~train.outcomes.correct)] = epoch + 1


def _tables(predictions: Predictions) -> Tables:
    return Tables(predictions, classwise=False)


@contextmanager
def progress(name: str, *, done: int, steps: int, visible: bool) -> Iterator[Shown]:
    """A progress bar on stderr that the batches advance; nothing if stderr is no terminal."""
    console = Console(stderr=True)
    if not (visible and console.is_terminal):
        yield lambda batches: batches
        return
    times = (TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
    with Progress(TextColumn(name), BarColumn(), TaskProgressColumn(), *times, console=console) as bar:
        task = bar.add_task(name, total=steps, completed=done)

        def shown(batches: Iterable[Batch]) -> Iterator[Batch]:
            for batch in batches:
                yield batch
                bar.advance(task)

        yield shown
