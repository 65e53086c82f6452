"""Maps of the logits of all classes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from assay.maps._kinds import ConfidenceMap, LogitMap

FLOOR = -87.0  # about the logarithm of the smallest normal float32
AT_ONCE = 2**22  # probabilities that are looked up together, each for some thirty bytes


@dataclass(frozen=True, eq=False)
class Temperature(LogitMap):
    """Divide the logits by `t`: no label changes, and of two classes no ranking."""

    t: float
    n_classes: int
    gives = "as given"

    @property
    def keeps_label(self) -> bool:
        return True

    @property
    def keeps_ranking(self) -> bool:
        return self.n_classes == 2 or self.t == 1

    def __call__(self, logits: Tensor) -> Tensor:
        return logits / self.t

    def __str__(self) -> str:
        return f"logits / {self.t:.4g}"


def features(logits: Tensor, of_log_probabilities: bool) -> Tensor:
    """What an affine map multiplies: logits, or log-probabilities no lower than FLOOR; a probability of 0 is there."""
    if of_log_probabilities:
        return logits.log_softmax(1).clamp(min=FLOOR)
    return logits.masked_fill(logits.isneginf(), FLOOR)


@dataclass(frozen=True, eq=False)
class Affine(LogitMap):
    """W z + b of the logits, or of the log-probabilities; a weight of one number a class stands for a diagonal W."""

    weight: Tensor  # [k] or [k, k] float64, a row for each new logit
    bias: Tensor  # [k] float64
    of_log_probabilities: bool
    gives = "logits"

    @property
    def n_classes(self) -> int:
        return len(self.bias)

    @property
    def keeps_label(self) -> bool:
        return False

    @property
    def keeps_ranking(self) -> bool:
        return False

    def __call__(self, logits: Tensor) -> Tensor:
        z = features(logits, self.of_log_probabilities)
        weight, bias = self.weight.to(z), self.bias.to(z)
        return z * weight + bias if weight.dim() == 1 else torch.addmm(bias, z, weight.T)

    def __str__(self) -> str:
        diagonal = self.weight if self.weight.dim() == 1 else self.weight.diagonal()
        what = "log-probabilities" if self.of_log_probabilities else "logits"
        return f"{what} x {diagonal.min():.3g} to {diagonal.max():.3g}, shifted by up to {self.bias.abs().max():.3g}"


@dataclass(frozen=True, eq=False)
class Ensemble(LogitMap):
    """log(a softmax(z / t) + b softmax(z) + c / k): order among classes stays."""

    t: float
    weights: tuple[float, float, float]
    n_classes: int
    gives = "log-probabilities"

    @property
    def keeps_label(self) -> bool:
        return self.weights[2] < 1

    @property
    def keeps_ranking(self) -> bool:
        return self.n_classes == 2 and self.keeps_label

    def __call__(self, logits: Tensor) -> Tensor:
        a, b, c = self.weights
        return (a * (logits / self.t).softmax(1) + b * logits.softmax(1) + c / logits.shape[1]).log()

    def __str__(self) -> str:
        a, b, c = self.weights
        return f"{a:.3g} softmax(z / {self.t:.4g}) + {b:.3g} softmax(z) + {c:.3g} / {self.n_classes}"


@dataclass(frozen=True, eq=False)
class OneVsRest(LogitMap):
    """Each class's probability by a map of its own, and rows made to sum to 1; a row of zeros stays as it was."""

    maps: tuple[ConfidenceMap, ...]  # [k], all of one kind
    gives = "log-probabilities"

    @property
    def n_classes(self) -> int:
        return len(self.maps)

    @property
    def keeps_label(self) -> bool:
        return False

    @property
    def keeps_ranking(self) -> bool:
        return False

    def __call__(self, logits: Tensor) -> Tensor:
        if torch.compiler.is_exporting():
            return self._of(logits)
        out, rows = torch.empty_like(logits), max(AT_ONCE // len(self.maps), 1)
        for given, found in zip(torch.split(logits, rows), torch.split(out, rows), strict=True):
            found.copy_(self._of(given))
        return out

    def _of(self, logits: Tensor) -> Tensor:
        before = logits.softmax(1)
        after = type(self.maps[0]).by_row(self.maps, before.T.contiguous()).T
        total = after.sum(1, keepdim=True)
        return torch.where(total > 0, after / total, before).log()

    def __str__(self) -> str:
        return f"{len(self.maps)} classes, the first by {self.maps[0]}"
