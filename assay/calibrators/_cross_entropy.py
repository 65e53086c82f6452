"""NLL of rows of logits and its slope, in place: the inner loop of fits of affine maps."""

from __future__ import annotations

import numpy as np

from assay._core.arrays import Array, Floats, Labels


def nll_in_place(z: Array, labels: Labels) -> tuple[Floats, Array]:
    """NLL of each row of logits [n, k], and the sum of each row of `z`, which becomes exp(z - its highest)."""
    z -= z.max(1, keepdims=True)
    label = np.take_along_axis(z, labels[:, None], 1)[:, 0]
    np.exp(z, out=z)
    total = z @ np.ones(z.shape[1], dtype=z.dtype)
    return np.log(total, dtype=np.float64) - label, total


def residual_in_place(z: Array, labels: Labels, weights: Floats | None = None) -> float:
    """The sum of NLL over rows of logits [n, k]; `z` becomes its slope, probabilities minus one-hot labels.

    Rows count by their weights [n].
    """
    nll, total = nll_in_place(z, labels)
    z /= total[:, None]
    z[np.arange(len(z)), labels] -= 1
    if weights is None:
        return float(nll.sum())
    z *= weights.astype(z.dtype)[:, None]
    return float(weights @ nll)
