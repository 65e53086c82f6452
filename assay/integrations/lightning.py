"""Callbacks for Lightning's Trainer: SAM and averaged weights under automatic optimization, and numbers each epoch."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor, distributed

from assay import files, maps
from assay._core.arrays import InputError
from assay._core.outputs import logits_of
from assay._core.writing import replacing
from assay.auditing import audit
from assay.calibrators import temperature
from assay.integrations.trackers import log_figure
from assay.metrics import evaluate
from assay.nn.optim import WeightAverage, climbed, gradients, recompute_batch_norm, swa
from assay.predictions import Predictions
from assay.report.page import audit_page

KEYS = ("accuracy", "ece", "auroc", "aurc")


class SharpnessAware(Callback):
    """SAM with whatever optimizer the module has, also over accumulated batches and in mixed precision.

    After each backward it runs `training_step` and backward again at the worst point within `rho`; what the second run
    logs is left out.
    """

    def __init__(self, rho: float = 0.05):
        if not rho >= 0:
            raise ValueError(f"rho must be >= 0, got {rho}")
        self.rho = rho
        self._batch: tuple[Any, ...] = ()
        self._before: list[Tensor | None] = []
        self._away = False

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if not pl_module.automatic_optimization:
            raise InputError("SharpnessAware needs automatic optimization; in your own, use assay.nn.optim.SAM")

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        self._batch = (batch, batch_idx)

    def on_before_backward(self, trainer: Trainer, pl_module: LightningModule, loss: Tensor) -> None:
        if not self._away:
            self._before = gradients(pl_module.parameters())

    def on_after_backward(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if self._away:
            return
        self._away = True
        try:
            with _silent(pl_module), climbed(list(pl_module.parameters()), self._before, rho=self.rho):
                found: Any = trainer.strategy.training_step(*self._batch)
                loss = found["loss"] if isinstance(found, dict) else found
                trainer.strategy.backward(loss / trainer.accumulate_grad_batches, None)
        finally:
            self._away = False


@contextmanager
def _silent(module: Any) -> Iterator[None]:
    """Within it the module logs nothing."""
    log, log_dict = module.log, module.log_dict
    module.log = module.log_dict = lambda *_, **__: None
    try:
        yield
    finally:
        module.log, module.log_dict = log, log_dict


class AveragedWeights(Callback):
    """SWA, or another `WeightAverage`, of the weights after each epoch from the share `start` on.

    At the end the module has the averaged weights and BatchNorm's statistics for them, from the training data.
    """

    def __init__(self, start: float = 0.6, average: WeightAverage | None = None):
        self.start, self.average = start, average or swa()

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if trainer.current_epoch >= self.start * (trainer.max_epochs or 1):
            self.average.update(pl_module)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.average.copy_to(pl_module)
        loader: Any = trainer.train_dataloader
        recompute_batch_norm(pl_module, (batch[0].to(pl_module.device) for batch in loader))

    def state_dict(self) -> dict[str, Any]:
        return self.average.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.average.load_state_dict(state_dict)


class TrustCallback(Callback):
    """Logs metrics of the validation set each epoch, and writes predictions, a temperature and a page at the end.

    `validation_step` returns a dict with `logits` and `labels`; the rows of all processes are put together. After the
    epochs of `figures`, counted from 0, the audit's figure is logged too, by the loggers of TensorBoard, Weights &
    Biases and MLflow. Files go to `out`, if one is given: the validation predictions, the map fitted on them, the
    audit as a page, and the figures.
    """

    def __init__(self, *keys: str, prefix: str = "val/", out: str | Path | None = None, figures: Collection[int] = ()):
        self.keys, self.prefix, self.out = keys or KEYS, prefix, None if out is None else Path(out)
        self.figures = figures
        self._rows: list[tuple[Tensor, Tensor]] = []
        self.predictions: Predictions | None = None

    def on_validation_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._rows = []

    def on_validation_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int, *_: Any
    ) -> None:
        if not isinstance(outputs, dict) or "labels" not in outputs:
            raise InputError("TrustCallback needs a validation_step that returns {'logits': ..., 'labels': ...}")
        self._rows.append((logits_of(outputs).detach().float().cpu(), outputs["labels"].cpu()))

    def on_validation_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        logits, labels = (torch.cat(parts) for parts in zip(*_of_all_processes(self._rows), strict=True))
        self.predictions = Predictions.from_logits(logits, labels)
        found = evaluate(self.predictions, self.keys)
        pl_module.log_dict({self.prefix + key: value for key, value in found.items()})
        if trainer.current_epoch in self.figures and trainer.is_global_zero and not trainer.sanity_checking:
            self._draw(trainer, self.predictions)

    def _draw(self, trainer: Trainer, predictions: Predictions) -> None:
        """The audit's figure to every logger that takes figures, and to a file."""
        figure, epoch = audit(predictions).plot(), trainer.current_epoch
        for logger in trainer.loggers:
            log_figure(logger, figure, f"{self.prefix}audit", epoch)
        if self.out is not None:
            self.out.mkdir(parents=True, exist_ok=True)
            with replacing(self.out / f"epoch_{epoch}.png") as stream:
                figure.savefig(stream, format="png")

    def on_fit_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if self.out is None or self.predictions is None or not trainer.is_global_zero:
            return
        self.out.mkdir(parents=True, exist_ok=True)
        files.write(self.predictions, self.out / "validation.npz")
        maps.save(temperature(self.predictions), self.out / "map.json")
        rows: dict[str, Any] = {"validation": self.predictions}
        audit_page(rows, {"validation": audit(self.predictions)}, self.out / "page.html")


def _of_all_processes(rows: list[tuple[Tensor, Tensor]]) -> list[tuple[Tensor, Tensor]]:
    """The rows of this process, or of all that train together."""
    if not (distributed.is_available() and distributed.is_initialized()):
        return rows
    parts: list[Any] = [None] * distributed.get_world_size()
    distributed.all_gather_object(parts, rows)
    return [row for part in parts for row in part]
