"""Post-hoc calibrators: each takes held-out predictions and returns a fitted map."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from assay._core.lookup import check_values, hyper_parameters, lookup_or_import
from assay._core.variants import parse_variant
from assay.calibrators._auto import auto
from assay.calibrators._cross import cross_applied, cross_validated
from assay.calibrators._ensemble import ensemble_temperature
from assay.calibrators._in_sequence import in_sequence
from assay.calibrators._matrix import dirichlet, matrix
from assay.calibrators._one_vs_rest import histogram_mass_one_vs_rest, histogram_one_vs_rest, isotonic_one_vs_rest
from assay.calibrators._shared_rows import rows_digest, shared_rows
from assay.calibrators._streamed import (
    apply_to_files,
    calibrated_chunks,
    streamed_temperature,
    summary_histogram,
    summary_isotonic,
)
from assay.calibrators._structured import structured_matrix, structured_vector
from assay.calibrators._temperature import (
    fixed_temperature,
    temperature,
    temperature_by_ada_ece,
    temperature_by_ece,
    temperature_optimal_on_test,
)
from assay.calibrators._temperature_sb_ece import temperature_by_sb_ece_bin, temperature_by_sb_ece_lb
from assay.calibrators._top_label import beta, histogram, histogram_mass, isotonic, platt, scaling_binning, spline
from assay.calibrators._vector import vector
from assay.maps import Map
from assay.predictions import Outcomes, Predictions

TOP_LABEL: dict[str, Callable[[Predictions | Outcomes], Map]] = {
    "histogram": histogram,
    "histogram_mass": histogram_mass,
    "isotonic": isotonic,
    "platt": platt,
    "beta": beta,
    "spline": spline,
    "scaling_binning": scaling_binning,
    "auto": auto,
}
CALIBRATORS: Mapping[str, Callable[[Predictions], Map]] = MappingProxyType(
    {
        "temperature": temperature,
        "temperature_ece": temperature_by_ece,
        "temperature_ada_ece": temperature_by_ada_ece,
        "temperature_sb_ece_bin": temperature_by_sb_ece_bin,
        "temperature_sb_ece_lb": temperature_by_sb_ece_lb,
        "ensemble_temperature": ensemble_temperature,
        "structured_vector": structured_vector,
        "structured_matrix": structured_matrix,
        "vector": vector,
        "dirichlet": dirichlet,
        "matrix": matrix,
        "histogram_one_vs_rest": histogram_one_vs_rest,
        "histogram_mass_one_vs_rest": histogram_mass_one_vs_rest,
        "isotonic_one_vs_rest": isotonic_one_vs_rest,
        **TOP_LABEL,
        "temperature_histogram": in_sequence(temperature, histogram),
    }
)
"""By name, read-only: processes of a study import it anew. Your own calibrator is `package.module:function`."""


def calibrator(method: str | Callable[..., Map]) -> Callable[..., Map]:
    """A calibrator by name, with values if any, or your own at `package.module:function`; a function is itself.

    >>> calibrator("matrix,free_diagonal=True").keywords
    {'free_diagonal': True}
    """
    if callable(method):
        return method
    variant = parse_variant(method)
    found = lookup_or_import("calibrator", variant.full_name, CALIBRATORS)
    check_values("calibrator", hyper_parameters(found), variant.values)
    values: dict[str, Any] = dict(variant.values)
    return partial(found, **values) if values else found


__all__ = [
    "CALIBRATORS",
    "TOP_LABEL",
    "apply_to_files",
    "auto",
    "beta",
    "calibrated_chunks",
    "calibrator",
    "cross_applied",
    "cross_validated",
    "dirichlet",
    "ensemble_temperature",
    "fixed_temperature",
    "histogram",
    "histogram_mass",
    "histogram_mass_one_vs_rest",
    "histogram_one_vs_rest",
    "in_sequence",
    "isotonic",
    "isotonic_one_vs_rest",
    "matrix",
    "platt",
    "rows_digest",
    "scaling_binning",
    "shared_rows",
    "spline",
    "streamed_temperature",
    "structured_matrix",
    "structured_vector",
    "summary_histogram",
    "summary_isotonic",
    "temperature",
    "temperature_by_ada_ece",
    "temperature_by_ece",
    "temperature_by_sb_ece_bin",
    "temperature_by_sb_ece_lb",
    "temperature_optimal_on_test",
    "vector",
]
