"""Calibrators that count every row alike refuse weighted rows, rather than ignore the weights."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from assay._core.arrays import InputError

Calibrator = TypeVar("Calibrator", bound=Callable[..., Any])


def unweighted(calibrator: Calibrator) -> Calibrator:
    """The calibrator, but weighted rows are an error."""

    @wraps(calibrator)
    def fit(held_out: Any, **hyper: Any) -> Any:
        if held_out.weights is not None:
            name = calibrator.__name__
            raise InputError(f"{name} counts every row alike, and these have weights; temperature knows weights")
        return calibrator(held_out, **hyper)

    return fit  # type: ignore[return-value]
