"""Structured matrix scaling for multi-class calibration (Berta, Holzmuller, Jordan & Bach, 2025): SVS and SMS.

Temperature scaling, then softmax(W x + b) of the scaled log-probabilities x. Ridges draw W to the identity and b to 0,
and need no cross-validation: they grow with the number of classes and fall with the number of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from assay._core.arrays import Array, Floats, Labels, row_chunks
from assay.calibrators._cross_entropy import residual_in_place
from assay.calibrators._temperature import temperature
from assay.calibrators._weights import weights_of
from assay.maps import Affine, Fit, Sequence, features
from assay.predictions import Predictions


def structured_vector(held_out: Predictions) -> Sequence:
    """Temperature, then a weight and a shift for each class (SVS), with a ridge of k / n on each."""
    n, k = held_out.values.shape
    return _fitted(held_out, np.full((2, k), k / n), lambda x, d: x * (1 + d[0]), lambda x, z: (z * x).sum(0)[None])


def structured_matrix(held_out: Predictions) -> Sequence:
    """Temperature, then a matrix and a shift (SMS), with a ridge of k / n, off the diagonal of k (k - 1) / n."""
    n, k = held_out.values.shape
    ridge = np.full((k + 1, k), k * (k - 1) / n)
    ridge[np.arange(k), np.arange(k)] = ridge[k] = k / n
    return _fitted(held_out, ridge, lambda x, d: x + x @ d[:-1], lambda x, z: x.T @ z)


def _fitted(
    held_out: Predictions,
    ridge: Floats,
    scaled: Callable[[Array, Floats], Array],
    slope_of: Callable[[Array, Array], Array],
) -> Sequence:
    """Minimize NLL + ridge deviation^2, where the last row of `deviation` is b and the others are W - 1."""
    from scipy.optimize import minimize

    cooled = temperature(held_out)
    rows = _Rows(
        features(cooled(held_out.logits), True).astype(np.float64),
        held_out.labels,
        weights_of(held_out),
        scaled,
        slope_of,
    )
    unit = np.ones((len(ridge), 1))
    unit[:-1] = 1 / max(float(rows.x.std()), 1e-30)  # W is searched in steps as large as those of b

    def objective(steps: Floats) -> tuple[float, Floats]:
        deviation = steps.reshape(ridge.shape) * unit
        nll, slope = rows.nll_and_slope(deviation)
        slope += 2 * ridge * deviation
        return nll + float((ridge * deviation**2).sum()), (slope * unit).reshape(-1)

    found = minimize(
        objective, np.zeros(ridge.size), jac=True, method="L-BFGS-B", options={"ftol": 1e-10, "maxiter": 200}
    )
    deviation = found.x.reshape(ridge.shape) * unit
    after = rows.nll_and_slope(deviation)[0]
    fit = Fit("NLL", cooled.fit.before, after, cooled.fit.iterations + int(found.nfev), len(held_out))
    weight = 1 + deviation[0] if len(ridge) == 2 else np.eye(len(ridge) - 1) + deviation[:-1].T
    return Sequence(fit, (cooled, Affine(fit, weight, deviation[-1], of_log_probabilities=True)))


@dataclass(frozen=True, eq=False)
class _Rows:
    """Scaled log-probabilities and labels, and the mean NLL of a map of them with its derivative."""

    x: Floats  # [n, k]
    labels: Labels  # [n]
    weights: Floats | None  # [n] with a mean of 1
    scaled: Callable[[Array, Floats], Array]  # W x
    slope_of: Callable[[Array, Array], Array]  # by W, from x and the slope by the logits

    def nll_and_slope(self, deviation: Floats) -> tuple[float, Floats]:
        nll, slope = 0.0, np.zeros_like(deviation)
        for rows in row_chunks(*self.x.shape):
            z = self.scaled(self.x[rows], deviation)
            z += deviation[-1]
            nll += residual_in_place(z, self.labels[rows], None if self.weights is None else self.weights[rows])
            slope[:-1] += self.slope_of(self.x[rows], z)
            slope[-1] += z.sum(0)
        return nll / len(self.x), slope / len(self.x)
