"""Shipping a calibrated network: as a torch module, or as one ONNX file."""

from assay.nn.deploy._export import export_onnx
from assay.nn.deploy._module import Calibrated, Output, calibrated
from assay.nn.deploy._tail import calibrate_onnx, random_inputs

__all__ = [
    "Calibrated",
    "Output",
    "calibrate_onnx",
    "calibrated",
    "export_onnx",
    "random_inputs",
]
