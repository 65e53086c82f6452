"""The command `assay plan`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from assay import examples, files
from assay._core.arrays import InputError
from assay.cli.inputs import STANDARD, ColumnNames, refuse_columns, refuse_group, refuse_many
from assay.cli.output import show
from assay.planning import plan


def plan_command(
    pilot: Path | None = None,
    other: Path | None = None,
    *,
    detect: Annotated[list[str], Parameter(consume_multiple=True)],
    columns: ColumnNames = STANDARD,
) -> None:
    """Tell how many samples it takes to show a difference; without a file, of models like an embedded example.

    Columns of weights and clusters count: the samples are those of a study that is weighted and clustered alike.

    Parameters
    ----------
    pilot
        Predictions of the model on some samples, which tell how noisy it is.
    other
        Predictions of a second model on the same samples, to tell the two apart.
    detect
        What to detect: ece=0.01, auroc=0.02 or risk=0.005, in natural units; several are separated by spaces.
    """
    goals = dict(map(_split, detect))
    refuse_group(columns)
    refuse_many(pilot, other)
    if pilot is None:
        refuse_columns(columns)
        show("No file given: the pilot is the embedded example, a small ResNet on CIFAR-10.", "dim")
    rows = examples.load() if pilot is None else files.read(pilot, columns)
    second = None if other is None else files.read(other, columns)
    for found in plan(rows, goals, second):
        show(f"{found}.")


def _split(text: str) -> tuple[str, float]:
    metric, _, size = text.partition("=")
    try:
        return metric, float(size)
    except ValueError:
        raise InputError(f"--detect {text}: say what and how much, as in ece=0.01; files come before it") from None
