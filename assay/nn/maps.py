"""Calibration maps in torch: the same records as in `assay.maps`, applied to tensors and ready for export."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any

import numpy as np
import torch
from torch import Tensor

from assay._core.arrays import Floats
from assay.maps import (
    CLIP,
    FLOOR,
    Affine,
    Answer,
    ConfidenceMap,
    Curve,
    Ensemble,
    Logistic,
    LogitMap,
    Map,
    OneVsRest,
    ScoreLogistic,
    Steps,
    Temperature,
    parts,
    refuse_other_classes,
    refuse_other_scores,
)


def torch_map(mapping: LogitMap | ConfidenceMap) -> Callable[[Tensor], Tensor]:
    """The map as a function of a tensor: logits [n, k] -> logits [n, k], or confidence [n] -> confidence [n].

    >>> from assay.maps import Fit
    >>> torch_map(Temperature(Fit("NLL", 1.0, 0.9, 1, 100), t=2.0, n_classes=2))(torch.tensor([[3.0, 1.0]]))
    tensor([[1.5000, 0.5000]])
    """
    call = CALLS[type(mapping)]
    if isinstance(mapping, ConfidenceMap):
        return lambda confidence: call([mapping], confidence[None])[0]
    return lambda logits: call(mapping, logits)


def answer(mapping: Map | None, logits: Tensor) -> Answer[Tensor]:
    """`assay.maps.answer` of a tensor, on its device."""
    z, of_confidence = logits, []
    for part in parts(mapping):
        if isinstance(part, LogitMap):
            refuse_other_classes(part, z.shape[1])
            z = torch_map(part)(z)
        else:
            refuse_other_scores(part, True)
            of_confidence.append(part)
    probabilities, label = z.double().softmax(1), z.argmax(1)
    top = probabilities.gather(1, label[:, None])
    confidence = top.squeeze(1)
    for part in of_confidence:
        confidence = torch_map(part)(confidence)
    if of_confidence:
        rest, k = 1 - top, z.shape[1]
        others = torch.where(rest > 0, probabilities / rest.clamp(min=1e-300), 1 / (k - 1)) * (1 - confidence)[:, None]
        chosen = torch.arange(k, device=label.device) == label[:, None]
        probabilities = torch.where(chosen, confidence[:, None], others)
    return Answer(z, probabilities.to(_precision(logits)), confidence, label)


def _temperature(mapping: Temperature, logits: Tensor) -> Tensor:
    return logits.to(_precision(logits)) / mapping.t


def _affine(mapping: Affine, logits: Tensor) -> Tensor:
    z = logits.to(_precision(logits))
    z = z.log_softmax(1).clamp(min=FLOOR) if mapping.of_log_probabilities else z.masked_fill(z == -inf, FLOOR)
    weight, bias = (torch.tensor(x, dtype=z.dtype, device=z.device) for x in (mapping.weight, mapping.bias))
    return z * weight + bias if weight.dim() == 1 else torch.addmm(bias, z, weight.T)


def _ensemble(mapping: Ensemble, logits: Tensor) -> Tensor:
    z = logits.to(_precision(logits))
    a, b, c = map(float, mapping.weights)
    return (a * (z / mapping.t).softmax(1) + b * z.softmax(1) + c / z.shape[1]).log()


def _one_vs_rest(mapping: OneVsRest, logits: Tensor) -> Tensor:
    before = logits.double().softmax(1)
    after = CALLS[type(mapping.maps[0])](mapping.maps, before.T.contiguous()).T
    total = after.sum(1, keepdim=True)
    return torch.where(total > 0, after / total, before).log().to(_precision(logits))


def _steps(maps: Sequence[Steps], rows: Tensor) -> Tensor:
    """Each of the rows [k, n] by steps of its own."""
    upper = _table(rows, [mapping.upper[:-1] for mapping in maps], end=inf)
    value = _table(rows, [mapping.value for mapping in maps])
    return value.gather(1, _place(rows.double(), upper)).to(_precision(rows))


def _curves(maps: Sequence[Curve], rows: Tensor) -> Tensor:
    """Each of the rows [k, n] by a curve of its own."""
    # A point at infinity is never reached, and gives a single point a second one to interpolate to.
    x = _table(rows, [np.append(mapping.x, inf) for mapping in maps], end=inf)
    y = _table(rows, [np.append(mapping.y, mapping.y[-1]) for mapping in maps])
    ends = _table(rows, [mapping.x[[0, -1]] for mapping in maps])
    c = rows.double().clamp(ends[:, :1], ends[:, 1:])
    right = _place(c, x).clamp(min=1)
    (x0, x1), (y0, y1) = ((table.gather(1, right - 1), table.gather(1, right)) for table in (x, y))
    return torch.lerp(y0, y1, (c - x0) / (x1 - x0)).to(_precision(rows))


def _logistics(maps: Sequence[Logistic], rows: Tensor) -> Tensor:
    a, b, m = _table(rows, [np.array([mapping.a, mapping.b, mapping.m]) for mapping in maps]).T[:, :, None]
    c = rows.double().clamp(CLIP, 1 - CLIP)
    return torch.sigmoid(a * c.log() - b * torch.log1p(-c) + m).to(_precision(rows))


def _score_logistics(maps: Sequence[ScoreLogistic], rows: Tensor) -> Tensor:
    a, m = _table(rows, [np.array([mapping.a, mapping.m]) for mapping in maps]).T[:, :, None]
    return torch.sigmoid(rows.double() * a + m).to(_precision(rows))


# Maps of logits take the map and logits [n, k]; maps of confidence take k maps and as many rows [k, n].
CALLS: dict[type[LogitMap | ConfidenceMap], Callable[[Any, Tensor], Tensor]] = {
    Temperature: _temperature,
    Affine: _affine,
    Ensemble: _ensemble,
    OneVsRest: _one_vs_rest,
    Steps: _steps,
    Curve: _curves,
    Logistic: _logistics,
    ScoreLogistic: _score_logistics,
}


def _precision(x: Tensor) -> torch.dtype:
    """The precision of a result: that of the input, at least float32."""
    return torch.promote_types(x.dtype, torch.float32)


def _table(like: Tensor, rows: list[Floats], *, end: float | None = None) -> Tensor:
    """One row for each array; shorter ones are filled up with `end`, or with their last number."""
    width = max(map(len, rows))
    full = [np.append(row, np.full(width - len(row), row[-1] if end is None else end)) for row in rows]
    return torch.tensor(np.stack(full), dtype=torch.float64, device=like.device)


def _place(x: Tensor, edges: Tensor) -> Tensor:
    """How many of the edges of its row [k, m] lie below each x [k, n]."""
    if torch.compiler.is_exporting():  # ONNX has no search
        return (x.unsqueeze(2) > edges.unsqueeze(1)).sum(2)
    return torch.searchsorted(edges, x)
