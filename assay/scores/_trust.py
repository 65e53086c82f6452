"""To trust or not to trust a classifier (Jiang, Kim, Guan & Gupta, NeurIPS 2018): TrustScore."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from assay._core import arrays
from assay._core.arrays import ArrayLike, InputError
from assay.predictions import Predictions


@dataclass(frozen=True, eq=False)
class TrustScore:
    """Distance to the nearest class other than the answer, over that to the answer's class; made by `trust_score`.

    A score of predictions that have features; `ratio` is the same of features and answers.
    """

    classes: list[NDArray[np.float64]]  # features [m, d] of the samples of each class that are kept
    neighbor: int
    eps: float

    def __call__(self, p: Predictions) -> Tensor:
        if p.features is None:
            raise InputError("TrustScore needs predictions with features")
        return self.ratio(p.features, p.values.argmax(1))

    def ratio(self, features: ArrayLike, answers: ArrayLike) -> Tensor:
        """Scores [n] float64 of features [n, d] and the labels answered [n]."""
        x = arrays.floats(features, name="features", ndim=2).double().cpu().numpy()
        own = arrays.labels(answers, n_classes=len(self.classes), n=len(x)).cpu().numpy()[:, None]
        distance = np.stack([_distance(x, members, self.neighbor) for members in self.classes], 1)
        to_own = np.take_along_axis(distance, own, 1).squeeze(1)
        np.put_along_axis(distance, own, np.inf, 1)
        return torch.from_numpy(distance.min(1) / (to_own + self.eps))


def trust_score(
    features: ArrayLike,
    labels: ArrayLike,
    *,
    n_classes: int,
    alpha: float = 0.0,
    k: int = 10,
    neighbor: int = 1,
    eps: float = 1e-12,
) -> TrustScore:
    """Learn TrustScore from training features [n, d] and labels [n].

    Of each class the share `alpha` of lowest density, whose k-th neighbor is farthest, is left out; a sample is its own
    first neighbor. The distance to a class is that to its nearest sample, as printed; the authors' code takes the
    second (`neighbor=2`), which on the training set itself skips the sample. A class without samples is infinitely
    far, so that to answer it is trusted 0. `eps` keeps the ratio finite at distance 0.
    """
    if not 0 <= alpha < 1:
        raise ValueError(f"alpha must be in [0, 1), got {alpha}")
    x = arrays.floats(features, name="features", ndim=2).double().cpu().numpy()
    y = arrays.labels(labels, n_classes=n_classes, n=len(x)).cpu().numpy()
    if y.min() == y.max():
        raise InputError(f"TrustScore compares classes, but all training samples are of class {y[0]}")
    classes = [x[y == label] for label in range(n_classes)]
    return TrustScore([_dense(members, alpha, k) for members in classes] if alpha else classes, neighbor, eps)


def _dense(members: NDArray[np.float64], alpha: float, k: int) -> NDArray[np.float64]:
    """All but the share `alpha` farthest from their k-th neighbor."""
    radius = _distance(members, members, k)
    return members[radius <= np.quantile(radius, 1 - alpha)] if len(members) else members


def _distance(x: NDArray[np.float64], members: NDArray[np.float64], neighbor: int) -> NDArray[np.float64]:
    """Distance of each row of `x` to its `neighbor`-th nearest member, or to the farthest if there are fewer."""
    from sklearn.neighbors import NearestNeighbors

    if len(members) == 0:
        return np.full(len(x), np.inf)
    nearest = NearestNeighbors(n_neighbors=min(neighbor, len(members))).fit(members)
    return np.asarray(nearest.kneighbors(x)[0][:, -1])
