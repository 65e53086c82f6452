"""To trust or not to trust a classifier (Jiang, Kim, Guan & Gupta, NeurIPS 2018): TrustScore."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from assay._core import arrays
from assay._core.arrays import Floats, InputError
from assay.predictions import Predictions

FEW = 15  # dimensions up to which a tree finds neighbors faster than all distances do
AT_ONCE = 2**20  # distances that are calculated together


@dataclass(frozen=True, eq=False)
class TrustScore:
    """Distance to the nearest class other than the answer, divided by that to the answer's class.

    Made by `trust_score`. It is a score of predictions that have features; `ratio` takes features and answers.
    """

    classes: list[Floats]  # for each class the features [m, d] of its samples that are used
    neighbor: int
    eps: float

    def __call__(self, p: Predictions) -> Floats:
        if p.features is None:
            raise InputError("TrustScore needs predictions with features")
        return self.ratio(p.features, p.values.argmax(1))

    def ratio(self, features: ArrayLike, answers: ArrayLike) -> Floats:
        """Scores [n] of features [n, d] and the answered labels [n]."""
        x = _features(features)
        own = arrays.labels(answers, n_classes=len(self.classes), n=len(x))[:, None]
        distance = np.stack([_distance(x, members, self.neighbor) for members in self.classes], 1)
        to_own = np.take_along_axis(distance, own, 1)[:, 0]
        np.put_along_axis(distance, own, np.inf, 1)
        return np.asarray(distance.min(1) / (to_own + self.eps))


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

    The share `alpha` of each class that lies where density is lowest, farthest from its k-th neighbor, is left out; a
    sample is its own first neighbor. The distance to a class is that to its nearest sample, as printed; the authors'
    code takes the second (`neighbor=2`), which on the training set itself skips the sample. A class without samples is
    infinitely far: answering it scores 0. `eps` keeps the ratio finite at distance 0.

    >>> score = trust_score([[0.0], [1.0], [4.0]], [0, 0, 1], n_classes=2)
    >>> score.ratio([[2.0], [3.5]], [0, 1])
    array([2., 5.])
    """
    if not 0 <= alpha < 1:
        raise ValueError(f"alpha must be in [0, 1), got {alpha}")
    x = _features(features)
    y = arrays.labels(labels, n_classes=n_classes, n=len(x))
    if y.min() == y.max():
        raise InputError(f"TrustScore compares classes, but all training samples are of class {y[0]}")
    classes = [x[y == label] for label in range(n_classes)]
    return TrustScore([_dense(members, alpha, k) for members in classes] if alpha else classes, neighbor, eps)


def _features(values: ArrayLike) -> Floats:
    return arrays.floats(values, name="features", ndim=2).astype(np.float64, copy=False)


def _dense(members: Floats, alpha: float, k: int) -> Floats:
    """All but the share `alpha` farthest from their k-th neighbor."""
    radius = _distance(members, members, k)
    return members[radius <= np.quantile(radius, 1 - alpha)] if len(members) else members


def _distance(x: Floats, members: Floats, neighbor: int) -> Floats:
    """Distance of each row of `x` to its `neighbor`-th nearest member, or to the farthest if there are fewer."""
    if len(members) == 0:
        return np.full(len(x), np.inf)
    place = min(neighbor, len(members))
    if x.shape[1] <= FEW:
        from scipy.spatial import cKDTree

        return np.asarray(cKDTree(members).query(x, k=[place])[0][:, 0])
    rows = max(AT_ONCE // len(members), 1)
    half_squares = (members * members).sum(1) / 2
    chunks = [x[start : start + rows] for start in range(0, len(x), rows)]
    return np.concatenate([_by_product(chunk, members, half_squares, place) for chunk in chunks])


def _by_product(x: Floats, members: Floats, half_squares: Floats, place: int) -> Floats:
    """|x - m|^2 = |x|^2 - 2 (x m - |m|^2 / 2) ranks the members by one product of matrices."""
    far = half_squares - x @ members.T
    nearest = far.argmin(1) if place == 1 else np.argpartition(far, place - 1, axis=1)[:, place - 1]
    return np.asarray(np.linalg.norm(x - members[nearest], axis=1))
