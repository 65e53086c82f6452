"""Training samples one by one: the norms of their gradients, and their logits by the epoch they were learned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from assay._core.arrays import Floats, InputError, Labels
from assay.predictions import Predictions
from assay.scores import max_logit

SMALLEST = 1e-8  # of gradients in single precision, relative to the largest


@dataclass(frozen=True, eq=False)
class Histogram:
    """One of several histograms over the same edges."""

    name: str
    n: int  # samples
    edges: Floats  # [b + 1]
    share: Floats  # [b] of its samples


def gradient_norms(norms: Mapping[str, Floats], *, n_bins: int = 40) -> list[Histogram]:
    """The norms of samples' gradients in the last layer, by method, in bins of equal ratio (mukhoti2020, fig 4 b-d).

    Norms span many powers of ten. Those under a hundred millionth of the largest, including 0, are in the first bin.
    """
    largest = max(float(each.max()) for each in norms.values())
    if not 0 < largest < np.inf:
        raise InputError(f"gradient norms must be finite and some of them positive, but the largest is {largest}")
    smallest = max(min(float(each.min()) for each in norms.values()), SMALLEST * largest)
    edges = np.geomspace(smallest, largest, n_bins + 1)
    return [_histogram(name, each, edges) for name, each in norms.items()]


def max_logits(
    train: Predictions, ids: Labels, learned_epoch: Labels, epochs: int, *, n_bins: int = 30
) -> list[Histogram]:
    """The highest logit of each training sample, by the quarter of the training from which its answer stays right.

    wang2021, fig 5: the order in which samples are learned shows in the logits of cross-entropy, and less in those of
    regularized networks. `train` are the trained network's predictions, in eval mode, on its training samples, matched
    by ids. Samples whose last answer was wrong are a separate group.
    """
    known = dict(zip(ids.tolist(), learned_epoch.tolist(), strict=True))
    if train.ids is None or sorted(known) != sorted(map(int, train.ids)):
        raise InputError("the predictions are not those on the training samples: their ids differ")
    learned = np.array([known[int(name)] for name in train.ids])
    logits = max_logit(train)
    edges = np.histogram_bin_edges(logits, n_bins)
    ends = [-(-quarter * epochs // 4) for quarter in range(5)]
    groups = {f"epochs {a} to {b - 1}": (learned >= a) & (learned < b) for a, b in pairwise(ends)}
    groups["never"] = learned >= epochs
    return [_histogram(name, logits[rows], edges) for name, rows in groups.items() if rows.any()]


def _histogram(name: str, values: Floats, edges: Floats) -> Histogram:
    count, _ = np.histogram(values.clip(edges[0], edges[-1]), edges)
    return Histogram(name, len(values), edges, count / len(values))
