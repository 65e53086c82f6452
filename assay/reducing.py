"""From the scores of k classes to five numbers a sample, chunk by chunk while a chunk is in cache."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Watch = Callable[[Tensor, Tensor], None]  # (probabilities [m, k], labels [m]) of one chunk of rows


def reduce_logits(z: Tensor, axis: int, labels: Tensor, columns: Tensor, correct: Tensor, watch: Watch | None) -> None:
    """Write confidence, NLL, Brier, entropy and correctness of one chunk of logits."""
    below = z - z.amax(axis, keepdim=True)
    weight = below.exp()
    # In float64, so that a confidence near 1 keeps its distance from 1, and saturated rows their order.
    total = weight.sum(axis, dtype=torch.float64)
    product = weight * weight
    squares = product.sum(axis).double()
    moment = torch.mul(weight, below, out=product).sum(axis).double()
    if moment.isnan().any():  # logits so far apart that their difference is infinite: weight 0, and 0 times it is 0
        moment = product.nan_to_num_(0).sum(axis).double()
    label_below = below.gather(axis, labels.unsqueeze(axis)).squeeze(axis).double()

    confidence = torch.reciprocal(total, out=columns[0])
    log_total = total.log()
    torch.sub(log_total, label_below, out=columns[1])
    torch.mul(squares, confidence, out=columns[2]).mul_(confidence)
    columns[2].sub_(label_below.exp() * confidence, alpha=2).add_(1).clamp_(min=0)
    torch.sub(log_total, moment.mul_(confidence), out=columns[3])
    torch.eq(label_below, 0, out=correct)
    _settle_ties(below, labels, axis, correct, squares >= 2)
    if watch is not None:
        weight *= confidence.unsqueeze(axis).to(weight.dtype)
        watch(weight if axis == 1 else weight.t(), labels)


def reduce_probabilities(
    p: Tensor, axis: int, labels: Tensor, columns: Tensor, correct: Tensor, watch: Watch | None
) -> None:
    """The same for one chunk of probabilities; 0 log 0 = 0, and the NLL of a true class of probability 0 is inf."""
    top = p.amax(axis)
    label_p = p.gather(axis, labels.unsqueeze(axis)).squeeze(axis)
    columns[0] = top.clamp(max=1)
    columns[1] = -label_p.double().log()
    columns[2] = ((p * p).sum(axis) - 2 * label_p.double() + 1).clamp_(min=0)
    columns[3] = torch.special.entr(p).sum(axis)
    torch.eq(label_p, top, out=correct)
    _settle_ties(p, labels, axis, correct, top <= 0.51)
    if watch is not None:
        watch(p if axis == 1 else p.t(), labels)


def _settle_ties(scores: Tensor, labels: Tensor, axis: int, correct: Tensor, may_tie: Tensor) -> None:
    """Of classes tied at the top the first is the answer; a tie takes half of the probability or more."""
    rows = (correct & may_tie).nonzero().squeeze(1)
    if len(rows):
        some = scores.index_select(1 - axis, rows)
        first = (some == some.amax(axis, keepdim=True)).int().argmax(axis)
        correct[rows] = first == labels[rows]
