"""A classifier that abstains where it is not sure enough."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from assay._core.arrays import ArrayLike
from assay._core.arrays import labels as checked_labels
from assay.maps import Map, answer
from assay.thresholds import Threshold

ABSTAIN = -1


class Estimator(Protocol):
    """A fitted scikit-learn classifier."""

    classes_: NDArray[Any]

    def predict_proba(self, x: Any) -> NDArray[np.float64]: ...


@dataclass(frozen=True, eq=False)
class Decisions:
    """One row an input: the index of its class or ABSTAIN, and the confidence that decided."""

    label: Tensor  # [n] int64
    confidence: Tensor  # [n] float64
    n_classes: int

    @property
    def accepted(self) -> Tensor:
        return self.label != ABSTAIN


@dataclass(frozen=True)
class SelectiveReport:
    """How a selective classifier did on labeled inputs."""

    n: int
    coverage: float
    risk: float  # share of errors among the accepted; nan where none is
    rejected_by_class: tuple[float, ...]  # share of each true class that was left for review; nan where it is absent

    def __str__(self) -> str:
        most = int(np.nanargmax(self.rejected_by_class))
        return (
            f"{self.risk:.2%} errors on {self.coverage:.1%} of {self.n:,} inputs; "
            f"class {most} is rejected most, {self.rejected_by_class[most]:.1%} of it"
        )


class SelectiveClassifier:
    """A model, the map of its confidence, and the threshold below which it abstains.

    `model` is a torch module that gives logits [n, k], used as it stands (call `eval()` first), or a fitted
    scikit-learn classifier; labels are indices of classes, of an estimator those of its `classes_`.
    """

    def __init__(self, model: nn.Module | Estimator, mapping: Map | None, threshold: Threshold | float):
        self.model, self.mapping = model, mapping
        self.threshold = threshold.value if isinstance(threshold, Threshold) else float(threshold)
        self._logits: Callable[[Any], Tensor] = model if isinstance(model, nn.Module) else _logits_of(model)

    @torch.no_grad()
    def decide(self, x: Any) -> Decisions:
        """Answer each input, or abstain."""
        given = answer(self.mapping, self._logits(x))
        label = given.label.where(given.confidence >= self.threshold, ABSTAIN)
        return Decisions(label, given.confidence, given.logits.shape[1])

    def report(self, x: Any, labels: ArrayLike) -> SelectiveReport:
        """Risk, coverage and who is rejected, given the true labels as indices of classes."""
        decided = self.decide(x)
        accepted, k = decided.accepted, decided.n_classes
        y = checked_labels(labels, n_classes=k, n=len(accepted)).to(accepted.device)
        wrong = (accepted & (decided.label != y)).double().sum()
        rejected = torch.bincount(y[~accepted], minlength=k).double() / torch.bincount(y, minlength=k)
        risk, coverage = float(wrong / accepted.sum()), float(accepted.double().mean())
        return SelectiveReport(len(y), coverage, risk, tuple(rejected.tolist()))


def _logits_of(estimator: Estimator) -> Callable[[Any], Tensor]:
    return lambda x: torch.from_numpy(np.asarray(estimator.predict_proba(x), dtype=np.float64)).log()
