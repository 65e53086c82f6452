"""From the scores of k classes to five numbers a sample, chunk by chunk while a chunk is in cache.

What has k columns is torch's, on the device of the scores; what has one is numpy's, whose calls cost a fraction.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isnan

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from assay._core import arrays, loops

Watch = Callable[[Tensor, Tensor], None]  # (probabilities [m, k], labels [m]) of one chunk of rows
Columns = NDArray[np.float64]  # [4, m] confidence, NLL, Brier, entropy
Correct = NDArray[np.bool_]  # [m]


def reduce_logits(scores: Tensor, labels: Tensor, columns: Columns, correct: Correct, watch: Watch | None) -> None:
    """Write confidence, NLL, Brier, entropy and correctness of one chunk of logits."""
    reduce = loops.reduce_logits if loops.takes(scores) else _reduce_logits
    probabilities = reduce(scores, labels, columns, correct, keep=watch is not None)
    if watch is not None and probabilities is not None:
        watch(probabilities, labels)


def _reduce_logits(scores: Tensor, labels: Tensor, columns: Columns, correct: Correct, *, keep: bool) -> Tensor | None:
    """The same, and the probabilities where they are to be kept."""
    z, axis = arrays.laid_out(scores)
    top = z.amax(axis, keepdim=True)
    label_below = (scores.gather(1, labels.unsqueeze(1)).squeeze(1).double() - top.squeeze(axis)).cpu().numpy()
    below = torch.sub(z, top, out=z if axis == 0 else None)
    weight = below.exp()
    # In float64, so that a confidence near 1 keeps its distance from 1, and saturated rows their order.
    total = weight.sum(axis, dtype=torch.float64).cpu().numpy()
    product = below.mul_(weight)
    moment = product.sum(axis).cpu().numpy()
    if isnan(moment.sum()):  # logits so far apart that their difference is infinite: weight 0, and 0 times it is 0
        moment = product.nan_to_num_(0).sum(axis).cpu().numpy()
    squares = torch.mul(weight, weight, out=product).sum(axis).cpu().numpy()

    confidence, nll, brier, entropy = columns
    np.divide(1, total, out=confidence)
    log_total = arrays.log(total)
    np.subtract(log_total, label_below, out=nll)
    np.multiply(squares, confidence, out=brier)
    brier -= 2 * np.exp(label_below)
    brier *= confidence
    brier += 1
    np.maximum(brier, 0, out=brier)
    np.multiply(moment, confidence, out=entropy)
    np.subtract(log_total, entropy, out=entropy)
    np.equal(label_below, 0, out=correct)
    _settle_ties(scores, labels, correct, squares >= 2)
    if not keep:
        return None
    weight *= torch.from_numpy(confidence).to(weight).unsqueeze(axis)
    return weight if axis == 1 else weight.t()


def reduce_probabilities(
    scores: Tensor, labels: Tensor, columns: Columns, correct: Correct, watch: Watch | None
) -> None:
    """The same for one chunk of probabilities; 0 log 0 = 0, and the NLL of a true class of probability 0 is inf."""
    p, axis = arrays.laid_out(scores)
    top = p.amax(axis).cpu().numpy()
    label_p = scores.gather(1, labels.unsqueeze(1)).squeeze(1).double().cpu().numpy()
    squares = (p * p).sum(axis).cpu().numpy()
    confidence, nll, brier, entropy = columns
    np.minimum(top, 1, out=confidence)
    np.negative(arrays.log(label_p), out=nll)
    np.maximum(squares - 2 * label_p + 1, 0, out=brier)
    entropy[:] = torch.special.entr(p).sum(axis).cpu().numpy()
    np.equal(label_p, top, out=correct)
    _settle_ties(scores, labels, correct, top <= 0.51)
    if watch is not None:
        watch(p if axis == 1 else p.t(), labels)


def _settle_ties(scores: Tensor, labels: Tensor, correct: Correct, may_tie: Correct) -> None:
    """Of classes tied at the top the first is the answer; a tie takes half of the probability or more."""
    rows = np.flatnonzero(correct & may_tie)
    if len(rows):
        some = torch.from_numpy(rows).to(labels.device)
        correct[rows] = (scores[some].argmax(1) == labels[some]).cpu().numpy()
