"""What a study may do to predictions before it measures them, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from assay.calibrators import CALIBRATORS, fixed_temperature, temperature_optimal_on_test
from assay.maps import Map
from assay.metrics import METRICS, evaluate
from assay.names import check_values, found
from assay.predictions import Outcomes, Predictions
from assay.study._named import Named

UNCHANGED = "none"


def optimal_temperature(test: Predictions, *, metric: str = "ece", step: float = 0.1, highest: float = 10.0) -> Map:
    """The temperature that is best on the very samples it is judged on, by any metric: a bound, no method."""
    sign = {"higher": -1.0, "lower": 1.0}[found("metric", metric, METRICS).better]

    def loss(outcomes: Outcomes) -> float:
        return sign * float(evaluate(outcomes)[metric])

    return temperature_optimal_on_test(test, loss, step=step, highest=highest)


FITTED: dict[str, Callable[..., Map]] = {**CALIBRATORS, "fixed_temperature": fixed_temperature}
"""Fitted on held-out predictions."""
ON_TEST: dict[str, Callable[..., Map]] = {"temperature_optimal_on_test": optimal_temperature}
"""Fitted on the predictions that they are judged on, as the seeds do to show what is possible."""


def check_correction(calibrator: Named) -> None:
    """Refuse a calibrator that there is not, or values that it does not have."""
    if calibrator != Named(UNCHANGED):
        function = found("calibrator", calibrator.name, {UNCHANGED: fixed_temperature, **FITTED, **ON_TEST})
        check_values("calibrator", function, dict(calibrator.values))


def correction(calibrator: Named, held_out: Predictions) -> Callable[[Predictions], Map | None]:
    """The map for predictions; what is fitted on held-out ones is fitted once."""
    values: dict[str, Any] = dict(calibrator.values)
    if calibrator.name in ON_TEST:
        return lambda test: ON_TEST[calibrator.name](test, **values)
    mapping = None if calibrator.name == UNCHANGED else FITTED[calibrator.name](held_out, **values)
    return lambda test: mapping
