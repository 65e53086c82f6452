"""The command `assay board`."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from assay import files
from assay._core.arrays import InputError
from assay._core.writing import not_over, replacing
from assay.boards import board
from assay.cli.inputs import STANDARD, ColumnNames
from assay.cli.output import console, show, working
from assay.files import Sheet
from assay.report import boards


def board_command(
    *answers: Path,
    by: str | None = None,
    columns: ColumnNames = STANDARD,
    to: Path | None = None,
    html: Path | None = None,
    workers: int = 1,
) -> None:
    """Rank many models by accuracy, calibration and refinement, and say which cannot be told apart.

    Rows without a usable confidence are left out and counted.

    Parameters
    ----------
    answers
        Files of confidences and right answers, of logits or of probabilities, or folders of such files; without --by
        one model a file.
    by
        Column that names the model.
    to
        Write the table to this Markdown file.
    html
        Write a page to sort and filter, with a map of calibration and refinement.
    workers
        Processes to compute on.
    """
    if workers < 1:
        raise InputError(f"--workers must be 1 or more, got {workers}")
    found = [file for path in answers for file in _files(path)]
    if not found:
        raise InputError("board needs files of answers, or a folder of them")
    not_over(to, html, reading=found)
    with working("reading") as say:
        sheets: list[Sheet] = []
        for file in found:
            sheets += files.read_sheets(file, columns, by=by)
        _refuse_other_questions(sheets)
        made = board(sheets, workers=workers, done=lambda count: say(f"{count} of {len(sheets)} measured"))
    show(boards.view(made, console().width))
    if to is not None:
        with replacing(to) as stream:
            stream.write(boards.markdown(made).encode())
    if html is not None:
        from assay.report.page import board_page

        board_page(made, html)


def _refuse_other_questions(sheets: list[Sheet]) -> None:
    """Rows without ids are paired in order, so every model must have as many."""
    in_order = [sheet for sheet in sheets if np.array_equal(sheet.question, np.arange(sheet.asked))]
    for sheet in in_order[1:]:
        if sheet.asked != (first := in_order[0]).asked:
            rows = f"{first.model} has {first.asked:,} rows and {sheet.model} {sheet.asked:,}"
            raise InputError(f"{rows}: without --ids they must answer the same questions in the same order")


def _files(path: Path) -> list[Path]:
    """The file itself, or the files of a folder that can be read."""
    if not path.is_dir():
        return [path]
    found = sorted(file for file in path.iterdir() if files.holds_predictions(file))
    if not found:
        raise InputError(f"{path}: the folder has no file that ends in {', '.join(files.ENDINGS)}")
    return found
