"""The command `assay judge`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from assay import files
from assay._core.writing import not_over
from assay.cli.output import show
from assay.judging import judge
from assay.report.judgments import judge_view


def judge_command(
    answers: Path,
    *,
    judge_column: Annotated[str, Parameter(name="--judge")] = "judge",
    human: str = "human",
    risk: float = 0.05,
    format: str | None = None,
    json: Path | None = None,
) -> None:
    """Say how far a judge's verdicts can be trusted, and how many answers are right, from a few human labels.

    Parameters
    ----------
    answers
        A file with a row for each answer; the labelled ones must be a random part of all.
    judge_column
        Column of the judge's probability that the answer is right, or of its verdict as 0 or 1.
    human
        Column that says whether the answer is right, 0 or 1, empty where nobody looked.
    risk
        Trust verdicts of which at most this share is wrong, with a guarantee.
    format
        Format of a .json, .jsonl or .eval file; by default it is recognized.
    json
        Write what is found to this file.
    """
    not_over(json, reading=[answers])
    found = judge(*files.read_judged(answers, judge_column, human, format=format), risk=risk)
    show(judge_view(found))
    if json is not None:
        from assay.report.jsons import write_json

        write_json(found, json)
