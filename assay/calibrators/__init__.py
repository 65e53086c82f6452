"""Post-hoc calibrators, one paper a file: each takes held-out predictions and returns a fitted map."""

from collections.abc import Callable

from assay.calibrators._cross import cross_validated, shared_rows
from assay.calibrators._histogram import histogram, histogram_mass
from assay.calibrators._isotonic import isotonic
from assay.calibrators._logistic import beta, platt
from assay.calibrators._temperature import (
    fixed_temperature,
    temperature,
    temperature_by_ada_ece,
    temperature_by_ece,
    temperature_optimal_on_test,
)
from assay.maps import Map
from assay.predictions import Outcomes, Predictions

TOP_LABEL: dict[str, Callable[[Predictions | Outcomes], Map]] = {
    "histogram": histogram,
    "histogram_mass": histogram_mass,
    "isotonic": isotonic,
    "platt": platt,
    "beta": beta,
}
CALIBRATORS: dict[str, Callable[[Predictions], Map]] = {
    "temperature": temperature,
    "temperature_ece": temperature_by_ece,
    "temperature_ada_ece": temperature_by_ada_ece,
    **TOP_LABEL,
}

__all__ = [
    "CALIBRATORS",
    "TOP_LABEL",
    "beta",
    "cross_validated",
    "fixed_temperature",
    "histogram",
    "histogram_mass",
    "isotonic",
    "platt",
    "shared_rows",
    "temperature",
    "temperature_by_ada_ece",
    "temperature_by_ece",
    "temperature_optimal_on_test",
]
