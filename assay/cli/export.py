"""The command `assay export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from cyclopts import Parameter
from numpy.typing import NDArray

from assay import maps
from assay._core.arrays import InputError
from assay._core.lookup import needs
from assay._core.reading import require_file
from assay._core.writing import not_over
from assay.cli.output import show
from assay.thresholds import load_threshold


def export_command(
    model: Path,
    *,
    mapping: Annotated[Path, Parameter(name="--map")],
    out: Path,
    threshold: float | Path | None = None,
    output: str | None = None,
    gives: Literal["logits", "probabilities"] = "logits",
    example: Path | None = None,
) -> None:
    """Write a model, a map and a threshold to one ONNX file, after a check of its probabilities.

    Parameters
    ----------
    model
        An ONNX file, or the folder of a run of `assay train` or `assay study`.
    mapping
        A map, as `assay calibrate --save` writes it.
    out
        The file to write.
    threshold
        Accept answers of at least this confidence; by default all. Or the file that `assay threshold --json` wrote: it
        is refused if it was chosen under another map.
    output
        The name of the logits or probabilities, if an ONNX model has several outputs.
    gives
        What that output holds.
    example
        A batch to check the file on, as .npz with an array for each input of the ONNX model; by default noise.
    """
    not_over(out, reading=[model, mapping, example, threshold if isinstance(threshold, Path) else None])
    loaded = maps.load(mapping)
    chosen = load_threshold(threshold) if isinstance(threshold, Path) else threshold
    if isinstance(chosen, float) and not 0 <= chosen <= 1:
        raise InputError(f"--threshold is a confidence, between 0 and 1; got {chosen}")
    needs("onnx")
    needs("torch")
    from assay.nn import deploy

    if model.is_dir():
        from assay.nn.training import load_run

        network, samples = load_run(model)
        deploy.export_onnx(network, loaded, out, example=samples, threshold=chosen, metadata={"run": model.name})
        n = len(samples)
    else:
        inputs = deploy.random_inputs(model) if example is None else _arrays(example)
        deploy.calibrate_onnx(model, loaded, out, example=inputs, output=output, gives=gives, threshold=chosen)
        n = len(next(iter(inputs.values())))
    show(f"{out}: {loaded}; the probabilities of {n} inputs agree with the map")


def _arrays(file: Path) -> dict[str, NDArray[Any]]:
    require_file(file)
    try:
        with np.load(file, allow_pickle=False) as found:
            return {name: found[name] for name in found.files}
    except Exception as problem:  # whatever zip, its compressions and numpy raise of a damaged file
        raise InputError(f"{file}: cannot be read as npz: {problem}") from problem
