"""assay with Hugging Face's Trainer: metrics, losses and SAM."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from torch import Tensor

from assay._core.outputs import logits_of
from assay.metrics import evaluate
from assay.nn.losses import Loss
from assay.nn.optim import climbed, gradients
from assay.predictions import Predictions

KEYS = ("accuracy", "nll", "ece", "auroc", "aurc")
AnyTrainer = TypeVar("AnyTrainer")


def compute_metrics(keys: Iterable[str] = KEYS) -> Callable[[Any], dict[str, float]]:
    """`Trainer(compute_metrics=hf.compute_metrics())`: metrics of `evaluate` by key."""
    chosen = list(keys)

    def of(prediction: Any) -> dict[str, float]:
        return evaluate(predictions(prediction), chosen)

    return of


def predictions(output: Any) -> Predictions:
    """The `Predictions` in what `Trainer.predict` returns, to audit or to calibrate."""
    logits = output.predictions
    return Predictions.from_logits(logits[0] if isinstance(logits, tuple) else logits, output.label_ids)


def loss(of: Loss) -> Callable[..., Tensor]:
    """`Trainer(compute_loss_func=hf.loss(focal))`: a loss of assay, right also over accumulated batches.

    The Trainer adds up the batches of a step itself and expects the sum of the samples' losses over the number of
    samples in the step; a mean would count each batch as a whole step.
    """

    def compute(outputs: Any, labels: Tensor, num_items_in_batch: Tensor | int | None = None, **_: Any) -> Tensor:
        mean = of(logits_of(outputs), labels)
        return mean if num_items_in_batch is None else mean * len(labels) / num_items_in_batch

    return compute


def sharpness_aware(trainer: AnyTrainer, *, rho: float = 0.05) -> AnyTrainer:
    """The Trainer, which now looks twice at each batch: SAM with its own optimizer, also over accumulated batches."""
    if not rho >= 0:
        raise ValueError(f"rho must be >= 0, got {rho}")
    known: Any = trainer
    once = known.training_step

    def training_step(model: Any, inputs: dict[str, Any], *rest: Any, **named: Any) -> Tensor:
        parameters = list(model.parameters())
        before = gradients(parameters)
        first: Tensor = once(model, dict(inputs), *rest, **named)
        with climbed(parameters, before, rho=rho):
            once(model, dict(inputs), *rest, **named)
        return first

    known.training_step = training_step
    return trainer
