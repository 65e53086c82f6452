"""From the training pass to the history: what hooks see of a step, and what becomes of it after an epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from assay._core.arrays import InputError
from assay.metrics import equal_width
from assay.nn.batch import Batch
from assay.nn.data import Samples
from assay.nn.networks import TreeNetwork, roots
from assay.nn.training._figures import FIGURES, Look
from assay.nn.training._history import History, Record, Split
from assay.nn.training._predict import last_linear
from assay.predictions import Predictions


class FirstLook:
    """One row a training sample, taken when its batch is first looked at in a step: SAM looks twice.

    An objective that looks at some of a batch, as CS-KD at the samples and then at their partners, begins with those
    that count.
    """

    def __init__(self, n: int) -> None:
        self.n = n
        self.awaited: tuple[Batch, float] | None = None
        self.rows: Tensor | None = None  # [n, ...]

    def expect(self, batch: Batch, weight: float) -> None:
        """The next look is at this batch, whose loss is weighted so."""
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
        """A forward hook of the last layer: there a sample's gradient is that of its logits times its features.

        Of a loss that is no mean over samples, the size of the batch times a sample's part in the gradient.
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

    @contextmanager
    def watching(self, epoch: int) -> Iterator[Callable[[Batch, float], None]]:
        """Within it, the first look is caught at each batch that the call it gives was told of, with its weight."""
        self.logits, self.norms = FirstLook(len(self.samples)), FirstLook(len(self.samples))
        hooks = []
        if "train" in self.record.on or self.record.learned_epochs or epoch in self.record.reliability_at:
            hooks.append((self.logits, self._watch_logits()))
        if self.head is not None and epoch in self.record.gradient_norms_at:
            hooks.append((self.norms, self.head.register_forward_hook(self.norms.gradient_norms)))

        def tell(batch: Batch, weight: float) -> None:
            for look, _ in hooks:
                look.expect(batch, weight)

        try:
            yield tell
        finally:
            for _, hook in hooks:
                hook.remove()

    def _head(self) -> nn.Linear:
        try:
            return last_linear(self.network, self.samples)
        except InputError as problem:
            raise InputError(f"{problem}: neither weight_norm nor gradient_norms_at can be recorded") from problem

    def _watch_logits(self) -> RemovableHandle:
        if isinstance(self.network, TreeNetwork):  # whose objective may look at all nodes, past its forward
            return self.network.head.register_forward_hook(self.logits.root_logits)
        return self.network.register_forward_hook(self.logits.logits)

    def write(
        self,
        epoch: int,
        row: dict[str, float],
        evaluated: Mapping[Split, Callable[[], Predictions | None]],
        total: Callable[[Tensor], Tensor],
    ) -> None:
        """Add an epoch: a row begun by the loop, and what was seen; `total` sums over processes."""
        logits, norms = (None if look.rows is None else total(look.rows).cpu() for look in (self.logits, self.norms))
        train = None if logits is None else Look(Predictions(logits, self.samples.y))
        looks: dict[Split, Look | None] = {"train": train} if "train" in self.record.on else {}
        for split, predictions in evaluated.items():
            found = predictions() if split in self.record.on else None
            looks[split] = None if found is None else Look(found)
        for split, look in looks.items():
            if look is not None:
                row |= {f"{split}_{name}": FIGURES[name](look) for name in self.record.figures}
        if self.head is not None and self.record.weight_norm:
            row["weight_norm"] = float(self.head.weight.detach().norm())
        self.history.epochs.append(row)
        if norms is not None:
            self.history.gradient_norms[epoch] = norms
        if train is not None:
            self._write_of_train(epoch, train)

    def _write_of_train(self, epoch: int, train: Look) -> None:
        if epoch in self.record.reliability_at:
            self.history.reliability[epoch] = equal_width(train.outcomes)
        if self.record.learned_epochs:
            if self.history.learned_epoch is None:
                self.history.learned_epoch = torch.zeros(len(self.samples), dtype=torch.int64)
            self.history.learned_epoch[~train.correct] = epoch + 1
