"""Maps of the logits of all classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from assay._core.arrays import Array, Floats, log, log_softmax, single, softmax
from assay.maps._kinds import ConfidenceMap, LogitMap, calculable, divides, probabilities, require

FLOOR = -87.0  # about the logarithm of the smallest normal float32


@dataclass(frozen=True, eq=False)
class Temperature(LogitMap):
    """Divide the logits by `t`. Labels stay; so does the ranking if there are two classes."""

    t: float
    n_classes: int
    gives = "as given"

    def __post_init__(self) -> None:
        require(divides(self.t) and self.n_classes > 1, self, "a temperature of 1e-30 to 1e30 and two classes or more")

    @property
    def keeps_label(self) -> bool:
        return True

    @property
    def keeps_ranking(self) -> bool:
        return self.n_classes == 2 or self.t == 1

    def __call__(self, logits: Array) -> Array:
        z = single(logits)
        with np.errstate(over="ignore"):
            divided = np.asarray(z / self.t)
        if self.t < 1 and np.isinf(divided).any():  # finite logits stay finite, or their softmax would be nan
            most = np.finfo(divided.dtype).max
            divided = np.where(np.isinf(z), z, divided.clip(-most, most))
        return divided

    def __str__(self) -> str:
        return f"logits / {self.t:.4g}"


def features(logits: Array, of_log_probabilities: bool) -> Array:
    """The input of an affine map: logits, or log-probabilities of at least FLOOR; a logit of -inf becomes FLOOR."""
    if of_log_probabilities:
        z = log_softmax(logits)
        return np.maximum(z, FLOOR, out=z)
    z = single(logits)
    lowest = z == -np.inf
    return np.where(lowest, z.dtype.type(FLOOR), z) if lowest.any() else z


@dataclass(frozen=True, eq=False)
class Affine(LogitMap):
    """W z + b of the logits, or of the log-probabilities; a one-dimensional weight is the diagonal of W."""

    weight: Floats  # [k] or [k, k], one row for each new logit
    bias: Floats  # [k]
    of_log_probabilities: bool
    gives = "logits"

    def __post_init__(self) -> None:
        shape = self.bias.shape
        require(len(shape) == 1 and shape[0] > 1, self, "a bias for each of two classes or more")
        require(self.weight.shape in (shape, 2 * shape), self, "weights for each bias, or a square of them")
        require(calculable(self.weight, self.bias), self, "numbers to calculate with")

    @property
    def n_classes(self) -> int:
        return len(self.bias)

    @property
    def keeps_label(self) -> bool:
        return False

    @property
    def keeps_ranking(self) -> bool:
        return False

    def __call__(self, logits: Array) -> Array:
        z = features(logits, self.of_log_probabilities)
        weight, bias = self.weight.astype(z.dtype), self.bias.astype(z.dtype)
        out = z * weight if weight.ndim == 1 else z @ weight.T
        out += bias
        return np.asarray(out)

    def __str__(self) -> str:
        diagonal = self.weight if self.weight.ndim == 1 else self.weight.diagonal()
        what = "log-probabilities" if self.of_log_probabilities else "logits"
        shift = np.abs(self.bias).max()
        return f"{what} x {diagonal.min():.3g} to {diagonal.max():.3g}, shifted by up to {shift:.3g}"


@dataclass(frozen=True, eq=False)
class Ensemble(LogitMap):
    """log(a softmax(z / t) + b softmax(z) + c / k): classes keep their order."""

    t: float
    weights: Floats  # [3] a, b, c
    n_classes: int
    gives = "log-probabilities"

    def __post_init__(self) -> None:
        require(divides(self.t) and self.n_classes > 1, self, "a temperature of 1e-30 to 1e30 and two classes or more")
        require(self.weights.shape == (3,) and probabilities(self.weights), self, "three weights in [0, 1]")

    @property
    def keeps_label(self) -> bool:
        return bool(self.weights[2] < 1)

    @property
    def keeps_ranking(self) -> bool:
        return self.n_classes == 2 and self.keeps_label

    def __call__(self, logits: Array) -> Array:
        a, b, c = self.weights.tolist()
        return log(a * softmax(single(logits) / self.t) + b * softmax(logits) + c / logits.shape[1])

    def __str__(self) -> str:
        a, b, c = self.weights
        return f"{a:.3g} softmax(z / {self.t:.4g}) + {b:.3g} softmax(z) + {c:.3g} / {self.n_classes}"


@dataclass(frozen=True, eq=False)
class OneVsRest(LogitMap):
    """One map for the probability of each class; rows are then divided by their sum, or stay unmapped if that is 0."""

    maps: tuple[ConfidenceMap, ...]  # [k], all of one kind
    gives = "log-probabilities"

    def __post_init__(self) -> None:
        require(len(self.maps) > 1 and len(set(map(type, self.maps))) == 1, self, "maps of one kind, one a class")

    @property
    def n_classes(self) -> int:
        return len(self.maps)

    @property
    def keeps_label(self) -> bool:
        return False

    @property
    def keeps_ranking(self) -> bool:
        return False

    def __call__(self, logits: Array) -> Array:
        # In float64, so that the side of a step on which a probability falls does not depend on rounding.
        before = np.ascontiguousarray(softmax(logits.astype(np.float64)).T)
        after = np.stack([mapping(column) for mapping, column in zip(self.maps, before, strict=True)])
        total = after.sum(0)
        np.divide(after, total, out=after, where=total > 0)
        np.copyto(after, before, where=total <= 0)
        return log(after).T.astype(single(logits[:0]).dtype, order="C")

    def __str__(self) -> str:
        return f"{len(self.maps)} classes, the first by {self.maps[0]}"
