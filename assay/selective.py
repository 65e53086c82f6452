"""A classifier that abstains where it is not sure enough."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from assay._core import arrays
from assay._core.arrays import Array, Floats, InputError, Labels, Mask
from assay._core.outputs import logits_of
from assay._core.writing import replacing
from assay.maps import Map, answer, from_json, refuse_probabilities, to_json
from assay.thresholds import PositiveThreshold, Threshold, threshold_under

ABSTAIN = -1


class Estimator(Protocol):
    """A fitted scikit-learn classifier."""

    classes_: Array

    def predict_proba(self, x: Any) -> Floats: ...


Model = Callable[[Any], ArrayLike] | Estimator


@dataclass(frozen=True, eq=False)
class Decisions:
    """For each input the index of its class or ABSTAIN, and the confidence that decided."""

    label: Labels  # [n]
    confidence: Floats  # [n]
    n_classes: int

    @property
    def accepted(self) -> Mask:
        return np.asarray(self.label != ABSTAIN)


@dataclass(frozen=True)
class SelectiveReport:
    """How a selective classifier did on labeled inputs."""

    n: int
    coverage: float
    risk: float  # share of errors among accepted inputs; nan if none is accepted
    rejected_by_class: tuple[float, ...]  # share of each true class that was rejected; nan for a class without inputs

    def __str__(self) -> str:
        most = int(np.nanargmax(self.rejected_by_class))
        return (
            f"{self.risk:.2%} errors on {self.coverage:.1%} of {self.n:,} inputs; "
            f"class {most} is rejected most, {self.rejected_by_class[most]:.1%} of it"
        )


class SelectiveClassifier:
    """A model, the map of its confidence, and the threshold below which it abstains.

    `model` is a fitted scikit-learn classifier, or a function from inputs to logits [n, k], such as a torch module in
    `eval()` mode, which also takes numpy arrays and a DataLoader of inputs, alone or with labels. Labels are indices of
    classes; those of a classifier index its `classes_`. A `Threshold` that was chosen under another map is refused.

    >>> model = SelectiveClassifier(np.asarray, None, threshold=0.8)  # here the inputs are logits already
    >>> model.decide([[2.0, 0.0], [0.5, 0.0]]).label
    array([ 0, -1])
    """

    def __init__(
        self, model: Callable[[Any], ArrayLike] | Estimator, mapping: Map | None, threshold: Threshold | float
    ):
        if isinstance(threshold, PositiveThreshold):
            raise InputError("this threshold says from where on to answer class 1; to abstain, choose one by its risk")
        self.model, self.mapping = model, mapping
        self.threshold = threshold_under(mapping, threshold)
        self._logits = _logits_of(model, mapping)

    def decide(self, x: Any) -> Decisions:
        """Answer each input, or abstain."""
        with _without_gradients():
            given = answer(self.mapping, self._logits(x))
        label = np.where(given.confidence >= self.threshold, given.label, ABSTAIN)
        return Decisions(label, given.confidence, given.logits.shape[1])

    def __call__(self, x: Any) -> Decisions:
        """The same as `decide`."""
        return self.decide(x)

    def save(self, file: str | Path) -> None:
        """Write map and threshold as JSON; the model has its own file."""
        mapping = None if self.mapping is None else json.loads(to_json(self.mapping))
        with replacing(Path(file)) as stream:
            stream.write(json.dumps({"map": mapping, "threshold": str(self.threshold)}, indent=1).encode())

    @staticmethod
    def load(file: str | Path, model: Model) -> SelectiveClassifier:
        """The model with the map and the threshold that were saved."""
        try:
            content = json.loads(Path(file).read_text())
            mapping = None if content["map"] is None else from_json(json.dumps(content["map"]))
            return SelectiveClassifier(model, mapping, float(content["threshold"]))
        except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError) as problem:
            raise InputError(f"{file}: holds no map and threshold of a SelectiveClassifier: {problem}") from problem

    def report(self, x: Any, labels: ArrayLike) -> SelectiveReport:
        """Risk, coverage and share of each class that is rejected, given the true labels as indices of classes."""
        decided = self.decide(x)
        accepted, k = decided.accepted, decided.n_classes
        y = arrays.labels(labels, n_classes=k, n=len(accepted))
        wrong = int((accepted & (decided.label != y)).sum())
        with np.errstate(invalid="ignore"):  # 0 / 0 is nan
            risk = float(np.float64(wrong) / accepted.sum())
            rejected = np.bincount(y[~accepted], minlength=k) / np.bincount(y, minlength=k)
        return SelectiveReport(len(y), float(accepted.mean()), risk, tuple(rejected.tolist()))


def _logits_of(model: Any, mapping: Map | None) -> Callable[[Any], ArrayLike]:
    if not hasattr(model, "predict_proba"):
        torch = sys.modules.get("torch")
        of_torch = torch is not None and isinstance(model, torch.nn.Module)
        return lambda x: _of_module(torch, model, x) if of_torch else logits_of(model(x))
    refuse_probabilities(mapping)
    return lambda x: arrays.log(arrays.array(model.predict_proba(x), name="probabilities"))


def _of_module(torch: Any, model: Any, x: Any) -> ArrayLike:
    """The logits of a torch module for a tensor, a numpy array or a loader."""
    if isinstance(x, torch.utils.data.DataLoader):
        batches = (batch[0] if isinstance(batch, list | tuple) else batch for batch in x)
        return np.concatenate([arrays.array(_of_module(torch, model, batch), name="logits") for batch in batches])
    like = next(model.parameters(), None)
    if isinstance(x, np.ndarray):
        x = torch.as_tensor(x, dtype=like.dtype if like is not None and x.dtype.kind == "f" else None)
    logits: ArrayLike = logits_of(model(x if like is None else x.to(like.device)))
    return logits


def _without_gradients() -> AbstractContextManager[None]:
    """torch's `no_grad`, if torch is in use: a module then keeps nothing for a backward pass."""
    torch = sys.modules.get("torch")
    return nullcontext() if torch is None else torch.no_grad()
