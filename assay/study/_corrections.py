"""What a study may do to predictions before it measures them, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from warnings import catch_warnings

import torch

from assay._core.arrays import InputError
from assay._core.lookup import check_values, found
from assay.calibrators import CALIBRATORS, fixed_temperature, temperature_optimal_on_test
from assay.maps import Map
from assay.metrics import METRICS, evaluate
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
"""Fitted on the predictions that they are judged on, as the papers do to show what is possible."""


def check_correction(calibrator: Named) -> None:
    """Refuse a calibrator that there is not, or values that it does not have."""
    if calibrator != Named(UNCHANGED):
        function = found("calibrator", calibrator.name, {UNCHANGED: fixed_temperature, **FITTED, **ON_TEST})
        check_values("calibrator", function, dict(calibrator.values))
        if calibrator.values:
            _try(calibrator, function)


def _try(calibrator: Named, function: Callable[..., Map]) -> None:
    """Fit it to a few constructed predictions, to see whether it takes its values."""
    values: dict[str, Any] = dict(calibrator.values)
    logits = torch.randn(200, 3, generator=torch.Generator().manual_seed(0))
    try:
        with catch_warnings(action="ignore"):
            function(Predictions.from_logits(logits, (logits + logits.flip(0)).argmax(1)), **values)
    except (ValueError, TypeError, ArithmeticError) as problem:
        raise InputError(f"{calibrator}: {problem}") from problem


def correction(calibrator: Named, held_out: Predictions) -> Callable[[Predictions], Map | None]:
    """The map for predictions; what is fitted on held-out ones is fitted once."""
    values: dict[str, Any] = dict(calibrator.values)
    if calibrator.name in ON_TEST:
        return lambda test: ON_TEST[calibrator.name](test, **values)
    mapping = None if calibrator.name == UNCHANGED else FITTED[calibrator.name](held_out, **values)
    return lambda test: mapping
