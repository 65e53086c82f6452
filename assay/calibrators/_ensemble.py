"""Mix-n-Match: ensemble and compositional methods for uncertainty calibration (Zhang, Kailkhura & Han, ICML 2020)."""

from __future__ import annotations

import numpy as np

from assay._core import loops
from assay._core.arrays import Array, Floats, Labels
from assay.calibrators._temperature import logits_of, temperature
from assay.calibrators._weights import mean
from assay.maps import Ensemble, Fit
from assay.predictions import Predictions


def ensemble_temperature(held_out: Predictions) -> Ensemble:
    """a softmax(z / t) + b softmax(z) + c / k, with the temperature of least NLL and then the weights of least NLL.

    The paper's code minimizes the squared error instead, for both.
    """
    cooled = temperature(held_out)
    z, k = logits_of(held_out), held_out.n_classes
    label = [_label_probability(z, held_out.labels, b) for b in (1 / cooled.t, 1.0)]
    chance = np.stack([*label, np.full(len(z), 1 / k)], 1)
    weights, iterations = _mixture(chance, held_out.weights)
    after = -mean(np.log(chance @ weights), held_out.weights)
    fit = Fit("NLL", cooled.fit.before, after, cooled.fit.iterations + iterations, len(held_out), cooled.fit.at_bound)
    return Ensemble(fit, cooled.t, weights, k)


def _label_probability(z: Array, labels: Labels, b: float) -> Floats:
    """Of softmax(b z), [n]: the highest probability, times how far the label's is below it."""
    confidence = np.empty(len(z))
    loops.confidence_at(z, b, confidence)
    at_label = np.take_along_axis(z, labels[:, None], 1)[:, 0].astype(np.float64)
    return np.asarray(confidence * np.exp(b * (at_label - z.max(1))))


def _mixture(chance: Floats, of_rows: Floats | None) -> tuple[Floats, int]:
    """Weights of the components [n, 3] of greatest likelihood, a convex problem."""
    from scipy.optimize import LinearConstraint, minimize

    share = np.full(len(chance), 1 / len(chance)) if of_rows is None else of_rows / of_rows.sum()

    def objective(weights: Floats) -> tuple[float, Floats]:
        mixed = np.maximum(chance @ weights, 1e-300)
        return -float(share @ np.log(mixed)), -(share / mixed @ chance)

    sum_to_one = LinearConstraint(np.ones((1, 3)), 1, 1)
    start = np.array([0.98, 0.01, 0.01])
    found = minimize(
        objective, start, jac=True, method="SLSQP", bounds=[(0, 1)] * 3, constraints=sum_to_one, options={"ftol": 1e-12}
    )
    weights = np.clip(found.x, 0, 1)
    return weights / weights.sum(), int(found.nfev)
