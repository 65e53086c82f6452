"""Calibration maps: what a calibrator returns. They are fitted, frozen, and say what they keep.

A `LogitMap` takes logits to logits. A `ConfidenceMap` takes the confidence of the predicted class to another confidence
and leaves the label alone.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from assay.arrays import InputError
from assay.files import replacing
from assay.predictions import Outcomes, Predictions


@dataclass(frozen=True)
class Fit:
    """How a fit went."""

    objective: str  # what was minimized
    before: float  # its value without the map
    after: float
    iterations: int
    n: int
    at_bound: bool = False  # the optimum lies beyond what was searched: not to be relied on

    def __str__(self) -> str:
        bound = ", at a bound" if self.at_bound else ""
        return f"{self.objective} {self.before:.4f} -> {self.after:.4f} on {self.n:,} samples{bound}"


@dataclass(frozen=True)
class LogitMap(ABC):
    """Logits [n, k] -> logits [n, k]."""

    fit: Fit
    keeps_label: ClassVar[bool]

    @property
    @abstractmethod
    def keeps_ranking(self) -> bool:
        """Whether samples keep their order by confidence, whatever their logits."""

    @abstractmethod
    def __call__(self, logits: Tensor) -> Tensor: ...


@dataclass(frozen=True)
class ConfidenceMap(ABC):
    """Confidence, or any score, [n] -> confidence [n]; the label stays."""

    fit: Fit
    keeps_label: ClassVar[bool] = True

    @property
    @abstractmethod
    def keeps_ranking(self) -> bool:
        """Whether samples keep their order by confidence, none being tied that were not."""

    @abstractmethod
    def __call__(self, confidence: Tensor) -> Tensor: ...


Map = LogitMap | ConfidenceMap


@dataclass(frozen=True)
class Temperature(LogitMap):
    """Divide the logits by `t`: no label changes, and of two classes no ranking."""

    t: float
    n_classes: int
    keeps_label: ClassVar[bool] = True

    @property
    def keeps_ranking(self) -> bool:
        return self.n_classes == 2 or self.t == 1

    def __call__(self, logits: Tensor) -> Tensor:
        return logits / self.t

    def __str__(self) -> str:
        return f"logits / {self.t:.4g}"


@dataclass(frozen=True)
class Steps(ConfidenceMap):
    """One value for each bin (lo, hi]; below the first and above the last edge theirs hold."""

    upper: tuple[float, ...]  # right edges
    value: tuple[float, ...]

    @property
    def keeps_ranking(self) -> bool:
        return False

    def __call__(self, confidence: Tensor) -> Tensor:
        upper, value = (
            torch.tensor(x, dtype=torch.float64, device=confidence.device) for x in (self.upper, self.value)
        )
        return value[torch.bucketize(confidence.double(), upper[:-1])].to(confidence.dtype)

    def __str__(self) -> str:
        return f"{len(self.value)} steps from {min(self.value):.3f} to {max(self.value):.3f}"


@dataclass(frozen=True)
class Curve(ConfidenceMap):
    """Straight lines between points (x, y), flat beyond the ends."""

    x: tuple[float, ...]  # rising
    y: tuple[float, ...]

    @property
    def keeps_ranking(self) -> bool:
        return False

    def __call__(self, confidence: Tensor) -> Tensor:
        x, y = _columns(confidence, self.x, self.y)
        c = confidence.double().clamp(self.x[0], self.x[-1])
        right = torch.bucketize(c, x).clamp(1, len(x) - 1) if len(x) > 1 else torch.zeros_like(c, dtype=torch.long)
        left = (right - 1).clamp(min=0)
        share = ((c - x[left]) / (x[right] - x[left])).nan_to_num(0)
        return torch.lerp(y[left], y[right], share).to(confidence.dtype)

    def __str__(self) -> str:
        return f"a curve through {len(self.x)} points from {self.y[0]:.3f} to {self.y[-1]:.3f}"


def _columns(like: Tensor, *columns: tuple[float, ...]) -> list[Tensor]:
    return [torch.tensor(column, dtype=torch.float64, device=like.device) for column in columns]


@dataclass(frozen=True)
class Logistic(ConfidenceMap):
    """sigmoid(a ln c - b ln(1 - c) + m); with a = b Platt scaling of the log-odds, else beta calibration."""

    a: float
    b: float
    m: float

    @property
    def keeps_ranking(self) -> bool:
        return self.a > 0 and self.b > 0

    def __call__(self, confidence: Tensor) -> Tensor:
        c = confidence.double()
        # 0 log 0 = 0: a side whose coefficient is 0 plays no part, also where its logarithm is infinite.
        up, down = (c.log() * self.a if self.a else 0 * c), (torch.log1p(-c) * self.b if self.b else 0 * c)
        return torch.sigmoid(up - down + self.m).to(confidence.dtype)

    def __str__(self) -> str:
        return f"sigmoid({self.a:.3g} ln c - {self.b:.3g} ln(1 - c) {self.m:+.3g})"


@dataclass(frozen=True)
class ScoreLogistic(ConfidenceMap):
    """sigmoid(a s + m): Platt scaling of a score that is no probability."""

    a: float
    m: float

    @property
    def keeps_ranking(self) -> bool:
        return self.a > 0

    def __call__(self, confidence: Tensor) -> Tensor:
        return torch.sigmoid(confidence.double() * self.a + self.m).to(confidence.dtype)

    def __str__(self) -> str:
        return f"sigmoid({self.a:.3g} s {self.m:+.3g})"


MAPS: dict[str, type[Map]] = {kind.__name__: kind for kind in (Temperature, Steps, Curve, Logistic, ScoreLogistic)}


def apply(mapping: Map, predictions: Predictions | Outcomes) -> Predictions | Outcomes:
    """Predictions or outcomes with the map's confidence.

    A `ConfidenceMap` says nothing of the other classes, so what is left of predictions are outcomes without NLL.
    """
    if isinstance(mapping, ConfidenceMap):
        outcomes = predictions.outcomes()
        new = mapping(outcomes.confidence)
        return replace(outcomes, confidence=new, nll=None, brier=None, entropy=None, is_probability=True)
    if isinstance(predictions, Outcomes):
        raise InputError(f"{type(mapping).__name__} needs the logits of all classes; these are only confidences")
    return replace(predictions, values=mapping(predictions.logits), normalized=False)


@dataclass(frozen=True, eq=False)
class Answer:
    """What a calibrated model says of each input."""

    logits: Tensor  # [n, k] calibrated where the map is one of logits; their highest is the label
    probabilities: Tensor  # [n, k]
    confidence: Tensor  # [n] float64
    label: Tensor  # [n]


def answer(mapping: Map | None, logits: Tensor) -> Answer:
    """Apply a map to logits [n, k] without labels.

    A map of the confidence says nothing of the other classes: they share what is left in the proportion they had.
    """
    z = mapping(logits) if isinstance(mapping, LogitMap) else logits
    probabilities = z.double().softmax(1)
    top, label = probabilities.max(1)
    if not isinstance(mapping, ConfidenceMap):
        return Answer(z, probabilities.to(logits.dtype), top, label)
    confidence = mapping(top)
    # Where nothing is left to the others there is no proportion to keep: they share evenly.
    rest, k = (1 - top)[:, None], logits.shape[1]
    others = torch.where(rest > 0, probabilities / rest.clamp(min=1e-300), 1 / (k - 1)) * (1 - confidence)[:, None]
    chosen = torch.arange(k, device=label.device) == label[:, None]
    return Answer(z, torch.where(chosen, confidence[:, None], others).to(logits.dtype), confidence, label)


def save(mapping: Map, file: str | Path) -> None:
    """Write a map as JSON; the file appears whole or not at all."""
    content = {"kind": type(mapping).__name__} | asdict(mapping)
    with replacing(Path(file)) as stream:
        stream.write(json.dumps(content, indent=1).encode())


def load(file: str | Path) -> Map:
    """Read a map back, equal to the one that was saved."""
    path = Path(file)
    try:
        content: dict[str, Any] = json.loads(path.read_text())
        kind = MAPS[content.pop("kind")]
        if set(content) != {field.name for field in fields(kind)}:
            raise KeyError("fields")
        columns: dict[str, Any] = {name: tuple(x) if isinstance(x, list) else x for name, x in content.items()}
        return kind(**columns | {"fit": Fit(**content["fit"])})
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise InputError(f"{path}: is no calibration map: {problem}") from problem
