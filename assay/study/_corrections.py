"""Calibrators of a study, by name: those fitted on held-out predictions, and bounds fitted on the test set."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any
from warnings import catch_warnings

import numpy as np

from assay._core.arrays import InputError
from assay._core.lookup import check_values, hyper_parameters, lookup
from assay._core.own_code import entry_point, is_own
from assay._core.variants import Variant
from assay.calibrators import CALIBRATORS, calibrator, fixed_temperature, temperature_optimal_on_test
from assay.maps import Map
from assay.metrics import METRICS, evaluate
from assay.predictions import Outcomes, Predictions

UNCHANGED = "none"


def optimal_temperature(test: Predictions, *, metric: str = "ece", step: float = 0.01, highest: float = 10.0) -> Map:
    """The best temperature for the very samples it is judged on, by any metric: a bound, not a method."""
    sign = {"higher": -1.0, "lower": 1.0}[lookup("metric", metric, METRICS).better]

    def loss(outcomes: Outcomes) -> float:
        return sign * evaluate(outcomes, [metric])[metric]

    return temperature_optimal_on_test(test, loss, step=step, highest=highest)


FITTED: Mapping[str, Callable[..., Map]] = CALIBRATORS
"""Fitted on held-out predictions."""
FIXED: dict[str, Callable[..., Map]] = {"fixed_temperature": fixed_temperature}
"""Not fitted, so they need no held-out predictions."""
ON_TEST: dict[str, Callable[..., Map]] = {"temperature_optimal_on_test": optimal_temperature}
"""Fitted on the predictions they are judged on, as papers do to show what is possible."""


def is_fitted(name: str) -> bool:
    """Whether a calibrator is fitted on held-out predictions; a user's own is."""
    return name in FITTED or _is_foreign(name)


def _is_foreign(name: str) -> bool:
    """Whether the calibrator is code of a user or of an installed package, which reading a study does not import."""
    known = (UNCHANGED, *FITTED, *FIXED, *ON_TEST)
    return name not in known and (is_own(name) or entry_point("calibrator", name) is not None)


@cache  # a grid of temperatures takes up to a second
def check_correction(chosen: Variant) -> None:
    """Refuse an unknown calibrator, or values that it does not have; `import_foreign` looks at those of users."""
    if chosen != Variant(UNCHANGED) and not _is_foreign(chosen.name):
        function = lookup("calibrator", chosen.name, {UNCHANGED: fixed_temperature, **FITTED, **FIXED, **ON_TEST})
        check_values("calibrator", hyper_parameters(function), chosen.values)
        if chosen.values:
            _try(chosen, function)


def import_foreign(chosen: Variant) -> None:
    """Import a calibrator of a user or of an installed package, and check the names of its values."""
    if _is_foreign(chosen.name):
        calibrator(str(chosen))


def _try(chosen: Variant, function: Callable[..., Map]) -> None:
    """Fit the calibrator to a few random predictions, to see whether its values are valid."""
    values: dict[str, Any] = dict(chosen.values)
    logits = np.random.default_rng(0).normal(size=(200, 3))
    try:
        with catch_warnings(action="ignore"):
            function(Predictions.from_logits(logits, (logits + logits[::-1]).argmax(1)), **values)
    except (ValueError, TypeError, ArithmeticError) as problem:
        raise InputError(f"{chosen}: {problem}") from problem


def correction(chosen: Variant, held_out: Predictions | None) -> Callable[[Predictions], Map | None]:
    """The map of a calibrator for some predictions; a map that depends on held-out predictions is fitted once."""
    values: dict[str, Any] = dict(chosen.values)
    if chosen.name == UNCHANGED:
        return lambda test: None
    if not is_fitted(chosen.name):
        on_test = {**FIXED, **ON_TEST}[chosen.name]
        return lambda test: on_test(test, **values)
    if held_out is None:
        raise InputError(f"{chosen} is fitted on held-out samples, of which there are none")
    mapping: object = calibrator(str(chosen))(held_out)
    if not isinstance(mapping, Map):
        raise InputError(f"{chosen} must give a map of assay.maps, and gave a {type(mapping).__name__}")
    return lambda test: mapping
