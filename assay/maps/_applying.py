"""Maps one after the other, and how any map is applied."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import reduce
from hashlib import blake2b
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from assay._core.arrays import Array, InputError, floats, single, softmax
from assay.maps._kinds import ConfidenceMap, Fitted, LogitMap
from assay.maps._logits import Affine
from assay.predictions import Outcomes, Predictions

AT_ONCE = 2**20  # elements of a chunk: enough rows for a product of matrices, few enough for the cache

Numbers = TypeVar("Numbers")


@dataclass(frozen=True, eq=False)
class Sequence(Fitted):
    """Maps in the order in which they are applied; an empty sequence changes nothing.

    Maps of logits come first: after a map of the confidence there are no logits any more.
    """

    maps: tuple[LogitMap | ConfidenceMap, ...]

    def __post_init__(self) -> None:
        kinds = [isinstance(mapping, ConfidenceMap) for mapping in self.maps]
        if kinds != sorted(kinds):
            raise InputError("a map of logits cannot follow one of the confidence")

    @property
    def keeps_label(self) -> bool:
        return all(mapping.keeps_label for mapping in self.maps)

    @property
    def keeps_ranking(self) -> bool:
        return all(mapping.keeps_ranking for mapping in self.maps)

    def __str__(self) -> str:
        return ", then ".join(map(str, self.maps)) or "unchanged"


Map = LogitMap | ConfidenceMap | Sequence


def parts(mapping: Map | None) -> tuple[LogitMap | ConfidenceMap, ...]:
    """The maps that a map consists of."""
    if mapping is None:
        return ()
    return mapping.maps if isinstance(mapping, Sequence) else (mapping,)


def digest(mapping: Map | None) -> str:
    """A digest of what the map computes, whatever it was fitted on; "" for none and for an empty sequence.

    `apply` stamps it on predictions and `choose_threshold` copies it, so that a threshold is never used under another
    map.
    """
    return reduce(_chained, parts(mapping), "")


def _chained(before: str, part: LogitMap | ConfidenceMap) -> str:
    """The digest of maps and then this one."""
    return blake2b(before.encode() + _content(part), digest_size=8).hexdigest()


def _content(value: object) -> bytes:
    """The numbers of a record as bytes, without the report of its fit."""
    if isinstance(value, Fitted):
        columns = tuple(getattr(value, f.name) for f in fields(value) if f.name != "fit")
        return type(value).__name__.encode() + _content(columns)
    if isinstance(value, tuple):
        return b"".join(map(_content, value))
    numbers = np.array(value, dtype=np.float64)
    return repr(numbers.shape).encode() + numbers.tobytes()


def apply(mapping: Map, predictions: Predictions | Outcomes) -> Predictions | Outcomes:
    """Predictions or outcomes with the map's confidence, stamped with its `digest`.

    A `ConfidenceMap` says nothing about the other classes, so it turns predictions into outcomes without NLL.

    >>> import assay.examples
    >>> from assay.calibrators import temperature
    >>> test = assay.examples.load()
    >>> apply(temperature(assay.examples.load(split="held_out")), test)
    Predictions(n=10000, k=10, logits)
    """
    if not hasattr(predictions, "map_digest"):
        kind = type(predictions).__name__
        raise InputError(f"apply takes Predictions or Outcomes, got {kind}; for logits without labels use maps.answer")
    refuse_twice(mapping, predictions)
    before = predictions.map_digest
    for part in parts(mapping):
        predictions = _one(part, predictions)
    return replace(predictions, map_digest=None if before is None else reduce(_chained, parts(mapping), before))


def refuse_twice(mapping: Map, predictions: Predictions | Outcomes) -> None:
    """Raise if these predictions have this map already."""
    if predictions.map_digest and predictions.map_digest == digest(mapping):
        raise InputError("this map was applied to these predictions before; apply it once")


def _one(mapping: LogitMap | ConfidenceMap, predictions: Predictions | Outcomes) -> Predictions | Outcomes:
    if isinstance(mapping, ConfidenceMap):
        outcomes = predictions.outcomes()
        refuse_other_scores(mapping, outcomes.is_probability)
        new = mapping(outcomes.confidence)
        return replace(outcomes, confidence=new, nll=None, brier=None, entropy=None, is_probability=True)
    if isinstance(predictions, Outcomes):
        raise InputError(f"{type(mapping).__name__} needs the logits of all classes; these are only confidences")
    refuse_other_classes(mapping, predictions.n_classes)
    if predictions.normalized:
        refuse_probabilities(mapping)
    normalized = predictions.normalized if mapping.gives == "as given" else mapping.gives == "log-probabilities"
    n, k = predictions.values.shape
    values = np.empty((n, k), dtype=single(predictions.values[:0]).dtype)
    size = max(AT_ONCE // k, 1)
    for rows in (slice(start, start + size) for start in range(0, n, size)):
        z = mapping(predictions[rows].logits)
        values[rows] = softmax(z) if normalized else z
    return replace(predictions, values=values, normalized=normalized)


def refuse_other_classes(mapping: LogitMap, n_classes: int) -> None:
    """Raise if the map was fitted on another number of classes."""
    if mapping.n_classes != n_classes:
        raise InputError(f"the map was fitted on {mapping.n_classes} classes and these predictions have {n_classes}")


def refuse_probabilities(mapping: Map | None) -> None:
    """Raise if the map needs logits: logarithms of probabilities differ from them by a shift of each row."""
    if any(isinstance(part, Affine) and not part.of_log_probabilities for part in parts(mapping)):
        raise InputError("the map was fitted on logits and these are probabilities; fit and use it on the same")


def refuse_other_scores(mapping: ConfidenceMap, is_probability: bool) -> None:
    """Raise if the map was fitted on probabilities and these are none, or the other way round."""
    of_probability = mapping.fit.before is not None
    if of_probability != is_probability:
        kinds = ("scores that are no probabilities", "probabilities")
        raise InputError(f"the map was fitted on {kinds[of_probability]} and these are {kinds[is_probability]}")


@dataclass(frozen=True, eq=False)
class Answer(Generic[Numbers]):
    """What a calibrated model says about each input."""

    logits: Numbers  # [n, k] after the maps of logits; the highest is the label
    probabilities: Numbers  # [n, k]
    confidence: Numbers  # [n] float64
    label: Numbers  # [n]


def answer(mapping: Map | None, logits: ArrayLike) -> Answer[Array]:
    """Apply a map to logits [n, k] without labels.

    A map of the confidence says nothing about the other classes: they share the rest in their old proportion, or
    evenly if there is none.

    >>> from assay.calibrators import fixed_temperature
    >>> held_out = Predictions.from_logits([[2.0, 0.0, -1.0]], [0])
    >>> answer(fixed_temperature(held_out, t=2.0), [[2.0, 0.0, -1.0]]).confidence
    array([0.62853172])
    """
    z = given = floats(logits, name="logits", ndim=2)
    of_confidence = []
    for part in parts(mapping):
        if isinstance(part, LogitMap):
            refuse_other_classes(part, z.shape[1])
            z = part(z)
        else:
            refuse_other_scores(part, True)
            of_confidence.append(part)
    probabilities = softmax(z.astype(np.float64))
    label = z.argmax(1)
    top = np.take_along_axis(probabilities, label[:, None], 1)
    confidence = top[:, 0]
    for part in of_confidence:
        confidence = part(confidence)
    if of_confidence:
        rest, k = 1 - top, z.shape[1]
        share = np.where(rest > 0, probabilities / np.maximum(rest, 1e-300), 1 / (k - 1))
        probabilities = share * (1 - confidence)[:, None]
        np.put_along_axis(probabilities, label[:, None], confidence[:, None], 1)
    return Answer(z, probabilities.astype(single(given[:0]).dtype, copy=False), confidence, label)
