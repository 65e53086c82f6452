"""Shipping a calibrated model: as a torch module, as one ONNX file, as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any

from assay.nn.deploy._module import Calibrated, Output, calibrated
from assay.nn.deploy._onnx import calibrate_onnx, export_onnx, random_inputs

__all__ = [
    "Calibrated",
    "CalibratedClassifier",
    "Output",
    "calibrate_onnx",
    "calibrated",
    "export_onnx",
    "random_inputs",
]


def __getattr__(name: str) -> Any:
    """`CalibratedClassifier` is loaded when it is asked for, as it brings all of scikit-learn."""
    if name == "CalibratedClassifier":
        from assay.nn.deploy._estimator import CalibratedClassifier

        return CalibratedClassifier
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
