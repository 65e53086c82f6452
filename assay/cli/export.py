"""The command `assay export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from assay import maps
from assay._core.arrays import InputError
from assay._core.lookup import needs
from assay._core.writing import not_over


def export_command(
    model: Path,
    *,
    mapping: Annotated[Path, Parameter(name="--map")],
    out: Path,
    threshold: float | None = None,
    output: str | None = None,
) -> None:
    """Write a model, a map and a threshold to one ONNX file, after a check of its probabilities.

    Parameters
    ----------
    model
        An ONNX file that gives logits, or the folder of a run of `assay train` or `assay study`.
    mapping
        A map, as `assay calibrate --save` writes it.
    out
        The file to write.
    threshold
        Accept answers of at least this confidence; by default all.
    output
        The name of the logits, if the model has several outputs.
    """
    not_over(out, reading=[model, mapping])
    if threshold is not None and not 0 <= threshold <= 1:
        raise InputError(f"--threshold is a confidence, between 0 and 1; got {threshold}")
    loaded = maps.load(mapping)
    needs("onnx")
    needs("torch")
    from assay.nn import deploy

    if model.is_dir():
        from assay.nn.training import load_run

        network, samples = load_run(model)
        deploy.export_onnx(network, loaded, out, example=samples, threshold=threshold, metadata={"run": model.name})
        n = len(samples)
    else:
        example = deploy.random_inputs(model)
        deploy.calibrate_onnx(model, loaded, out, example=example, output=output, threshold=threshold)
        n = len(next(iter(example.values())))
    Console().print(f"{out}: {loaded}; probabilities agree with torch on {n} inputs")
