"""Structured matrix scaling for multi-class calibration (Berta, Holzmuller, Jordan & Bach, 2025): SVS and SMS.

Temperature scaling, then softmax(W x + b) of the scaled log-probabilities x. Ridges draw W to the identity and b to 0,
and need no cross-validation: they grow with the number of classes and fall with the number of rows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from assay._core.arrays import Array, Floats, Labels, row_chunks
from assay.calibrators._cross_entropy import residual_in_place
from assay.calibrators._temperature import temperature
from assay.calibrators._weights import unweighted
from assay.maps import Affine, Fit, Sequence, features
from assay.predictions import Predictions


@unweighted
def structured_vector(held_out: Predictions) -> Sequence:
    """Temperature, then a weight and a shift for each class (SVS), with a ridge of k / n on each."""
    n, k = held_out.values.shape
    return _fitted(held_out, np.full((2, k), k / n), lambda x, d: x * (1 + d[0]), lambda x, z: (z * x).sum(0)[None])


@unweighted
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
    x, labels = features(cooled(held_out.logits), True).astype(np.float64), held_out.labels
    unit = np.ones((len(ridge), 1))
    unit[:-1] = 1 / max(float(x.std()), 1e-30)  # W is searched in steps as large as those of b

    def objective(steps: Floats) -> tuple[float, Floats]:
        deviation = steps.reshape(ridge.shape) * unit
        nll, slope = _nll_and_slope(x, labels, deviation, scaled, slope_of)
        slope += 2 * ridge * deviation
        return nll + float((ridge * deviation**2).sum()), (slope * unit).reshape(-1)

    found = minimize(
        objective, np.zeros(ridge.size), jac=True, method="L-BFGS-B", options={"ftol": 1e-10, "maxiter": 200}
    )
    deviation = found.x.reshape(ridge.shape) * unit
    after = _nll_and_slope(x, labels, deviation, scaled, slope_of)[0]
    fit = Fit("NLL", cooled.fit.before, after, cooled.fit.iterations + int(found.nfev), len(held_out))
    weight = 1 + deviation[0] if len(ridge) == 2 else np.eye(len(ridge) - 1) + deviation[:-1].T
    return Sequence(fit, (cooled, Affine(fit, weight, deviation[-1], of_log_probabilities=True)))


def _nll_and_slope(
    x: Floats,
    labels: Labels,
    deviation: Floats,
    scaled: Callable[[Array, Floats], Array],
    slope_of: Callable[[Array, Array], Array],
) -> tuple[float, Floats]:
    nll, slope = 0.0, np.zeros_like(deviation)
    for rows in row_chunks(*x.shape):
        z = scaled(x[rows], deviation)
        z += deviation[-1]
        nll += residual_in_place(z, labels[rows])
        slope[:-1] += slope_of(x[rows], z)
        slope[-1] += z.sum(0)
    return nll / len(x), slope / len(x)
