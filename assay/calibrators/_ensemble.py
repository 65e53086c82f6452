"""Mix-n-Match: ensemble and compositional methods for uncertainty calibration (Zhang, Kailkhura & Han, ICML 2020)."""

from __future__ import annotations

import numpy as np

from assay.calibrators._temperature import temperature
from assay.maps import Ensemble, Fit, apply
from assay.metrics import Floats
from assay.predictions import Predictions


def ensemble_temperature(held_out: Predictions) -> Ensemble:
    """a softmax(z / t) + b softmax(z) + c / k, with the temperature of least NLL and then the weights of least NLL.

    The paper's code has the squared error in place of NLL for both.
    """
    cooled = temperature(held_out)
    nll = [p.outcomes().nll for p in (apply(cooled, held_out), held_out)]
    label = [np.exp(-column.cpu().numpy()) for column in nll if column is not None]
    chance = np.stack([*label, np.full(len(held_out), 1 / held_out.n_classes)], 1)
    weights, iterations = _mixture(chance)
    a, b, c = weights.tolist()
    after = -float(np.log(chance @ weights).mean())
    fit = Fit("NLL", cooled.fit.before, after, cooled.fit.iterations + iterations, len(held_out), cooled.fit.at_bound)
    return Ensemble(fit, cooled.t, (a, b, c), held_out.n_classes)


def _mixture(chance: Floats) -> tuple[Floats, int]:
    """Weights of the components [n, 3] of greatest likelihood, a convex problem."""
    from scipy.optimize import LinearConstraint, minimize

    def objective(weights: Floats) -> tuple[float, Floats]:
        mixed = np.maximum(chance @ weights, 1e-300)
        return -float(np.log(mixed).mean()), -(chance / mixed[:, None]).mean(0)

    sum_to_one = LinearConstraint(np.ones((1, 3)), 1, 1)
    start = np.array([0.98, 0.01, 0.01])
    found = minimize(
        objective, start, jac=True, method="SLSQP", bounds=[(0, 1)] * 3, constraints=sum_to_one, options={"ftol": 1e-12}
    )
    weights = np.clip(found.x, 0, 1)
    return weights / weights.sum(), int(found.nfev)
