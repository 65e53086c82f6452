"""Every figure that a study's results allow."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

import pyarrow as pa

from assay._core.lookup import needs
from assay._core.writing import replacing
from assay.report.drawing import _from_folders, _from_rows
from assay.report.drawing._results import Results
from assay.study import Run, Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DRAWINGS = (
    _from_rows.maps,
    _from_rows.bars,
    _from_rows.uncertainties,
    _from_rows.right_and_wrong,
    _from_rows.effects,
    _from_rows.pooled_effects,
    _from_rows.coefficients,
    _from_rows.best_coefficients,
    _from_rows.axes_that_vary,
    _from_rows.held_out_sizes,
    _from_rows.severities,
    _from_rows.calibrators_under_shift,
    _from_folders.epochs,
    _from_folders.gradient_norms,
    _from_folders.train_reliability,
    _from_folders.max_logits,
    _from_folders.predictions,
    _from_folders.calibrated_reliability,
    _from_folders.wrong_answers,
)

DATES = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
"""What each format says about when a figure was drawn."""


def draw_study(
    study: Study, runs: Sequence[Run], root: Path, rows: pa.Table, to: Path, form: str = "svg"
) -> list[Path]:
    """Draw all figures of the runs under `root` and their rows into the folder `to`, and return the files.

    Metrics are the study's first of calibration, its first of refinement, and accuracy. Rows are those of the usual
    score, on the test set unless the shift varies. Figures of predictions show one seed, which their titles name: the
    first that most methods have.
    """
    needs("matplotlib")
    to.mkdir(parents=True, exist_ok=True)
    results = Results(study, runs, root, rows)
    written = []
    for figures in DRAWINGS:
        for name, figure in figures(results):
            file = to / f"{re.sub(r'[^A-Za-z0-9_.=]+', '-', name)}.{form}"
            with replacing(file) as stream:
                _save(figure, stream, form)
            written.append(file)
    return written


def _save(figure: Figure, stream: IO[bytes], form: str) -> None:
    """The same bytes for the same figure: without its date, with ids that are not drawn by lot."""
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": "assay"}):
        figure.savefig(stream, format=form, metadata=DATES.get(form))
