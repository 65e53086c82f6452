"""Maps one after the other, and how any map is applied."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from assay._core.arrays import InputError
from assay.maps._kinds import ConfidenceMap, Fitted, LogitMap
from assay.predictions import Outcomes, Predictions


@dataclass(frozen=True, eq=False)
class Sequence(Fitted):
    """Maps in the order in which they are applied; none of them is the identity.

    Maps of logits come first: after a map of the confidence there are no logits any more.
    """

    maps: tuple[LogitMap | ConfidenceMap, ...]

    def __post_init__(self) -> None:
        kinds = [isinstance(mapping, ConfidenceMap) for mapping in self.maps]
        if kinds != sorted(kinds):
            raise ValueError("a map of logits cannot follow one of the confidence")

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


def apply(mapping: Map, predictions: Predictions | Outcomes) -> Predictions | Outcomes:
    """Predictions or outcomes with the map's confidence.

    A `ConfidenceMap` says nothing of the other classes, so what is left of predictions are outcomes without NLL.
    """
    for part in parts(mapping):
        predictions = _one(part, predictions)
    return predictions


def _one(mapping: LogitMap | ConfidenceMap, predictions: Predictions | Outcomes) -> Predictions | Outcomes:
    if isinstance(mapping, ConfidenceMap):
        outcomes = predictions.outcomes()
        _refuse_other_scores(mapping, outcomes.is_probability)
        new = mapping(outcomes.confidence)
        return replace(outcomes, confidence=new, nll=None, brier=None, entropy=None, is_probability=True)
    if isinstance(predictions, Outcomes):
        raise InputError(f"{type(mapping).__name__} needs the logits of all classes; these are only confidences")
    _refuse_other_classes(mapping, predictions.n_classes)
    normalized = predictions.normalized if mapping.gives == "as given" else mapping.gives == "log-probabilities"
    values = mapping(predictions.logits)
    return replace(predictions, values=values.softmax(1) if normalized else values, normalized=normalized)


def _refuse_other_classes(mapping: LogitMap, n_classes: int) -> None:
    if mapping.n_classes != n_classes:
        raise InputError(f"the map was fitted on {mapping.n_classes} classes and these predictions have {n_classes}")


def _refuse_other_scores(mapping: ConfidenceMap, is_probability: bool) -> None:
    of_probability = mapping.fit.before is not None
    if of_probability != is_probability:
        kinds = ("scores that are no probabilities", "probabilities")
        raise InputError(f"the map was fitted on {kinds[of_probability]} and these are {kinds[is_probability]}")


@dataclass(frozen=True, eq=False)
class Answer:
    """What a calibrated model says of each input."""

    logits: Tensor  # [n, k] calibrated as far as the map is one of logits; their highest is the label
    probabilities: Tensor  # [n, k]
    confidence: Tensor  # [n] float64
    label: Tensor  # [n]


def answer(mapping: Map | None, logits: Tensor) -> Answer:
    """Apply a map to logits [n, k] without labels.

    A map of the confidence says nothing of the other classes: they share what is left in the proportion they had.
    """
    z, of_confidence = logits, []
    for part in parts(mapping):
        if isinstance(part, LogitMap):
            _refuse_other_classes(part, z.shape[1])
            z = part(z)
        else:
            _refuse_other_scores(part, True)
            of_confidence.append(part)
    probabilities = z.double().softmax(1)
    top, label = probabilities.max(1)
    if not of_confidence:
        return Answer(z, probabilities.to(logits.dtype), top, label)
    confidence = top
    for part in of_confidence:
        confidence = part(confidence)
    # Where nothing is left to the others there is no proportion to keep: they share evenly.
    rest, k = (1 - top)[:, None], logits.shape[1]
    others = torch.where(rest > 0, probabilities / rest.clamp(min=1e-300), 1 / (k - 1)) * (1 - confidence)[:, None]
    chosen = torch.arange(k, device=label.device) == label[:, None]
    return Answer(z, torch.where(chosen, confidence[:, None], others).to(logits.dtype), confidence, label)
