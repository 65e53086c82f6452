"""The command `assay check`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated
from xml.etree import ElementTree

from cyclopts import Parameter
from rich.table import Table
from rich.text import Text

from assay import files, maps
from assay._core import loops
from assay._core.arrays import InputError
from assay._core.writing import not_over, replacing
from assay._matching import in_order
from assay.checking import Check, check_no_worse, check_promise, check_requirements, requirement
from assay.cli.inputs import STANDARD, ColumnNames, Threads, refuse_group, refuse_many
from assay.cli.output import show
from assay.thresholds import load_threshold


def check_command(
    predictions: Path,
    *,
    require: Annotated[tuple[str, ...], Parameter(negative_iterable="")] = (),
    baseline: Path | None = None,
    no_worse: Annotated[bool, Parameter(negative="")] = False,
    threshold: Path | None = None,
    mapping: Annotated[Path | None, Parameter(name="--map")] = None,
    strict: Annotated[bool, Parameter(negative="")] = False,
    junit: Path | None = None,
    columns: ColumnNames = STANDARD,
    threads: Threads = None,
) -> None:
    """Check requirements on predictions, for continuous integration: exit code 1 and a table if one fails.

    A requirement fails if the 95 % interval shows that it is broken. In a GitHub workflow the table is also added to
    the summary of the job.

    Parameters
    ----------
    predictions
        Predictions of the model in question.
    require
        A requirement, as in 'ece<=0.05'; may be given several times.
    baseline
        Predictions of another model on the same samples.
    no_worse
        Fail if the model is shown to be worse than the baseline on any axis.
    threshold
        A threshold, as `assay threshold --json` writes it, whose promise is checked again on these labels.
    mapping
        A map to apply to the predictions first, as `assay calibrate --save` writes it.
    strict
        Fail unless the interval shows that a requirement is kept.
    junit
        Write the checks to this file, as JUnit XML.
    """
    refuse_group(columns)
    refuse_many(predictions, baseline)
    not_over(junit, reading=[predictions, baseline, threshold, mapping])
    if no_worse != (baseline is not None):
        raise InputError("--no-worse and --baseline belong together")
    if not (require or no_worse or threshold):
        raise InputError("nothing to check; give --require, --baseline with --no-worse, or --threshold")
    wanted = [requirement(text) for text in require]
    rows = files.read(predictions, columns)
    with loops.threads(threads):
        if mapping is not None:
            loaded = maps.load(mapping)
            rows = maps.apply(loaded, in_order(rows, loaded.fit.classes))
        checks = check_requirements(rows, wanted, strict=strict)
        if baseline is not None:
            checks += check_no_worse(files.read(baseline, columns), rows)
        if threshold is not None:
            checks.append(check_promise(rows, load_threshold(threshold), strict=strict))
    show(_table(checks))
    if junit is not None:
        with replacing(junit) as stream:
            stream.write(_junit(checks))
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(summary).open("a") as page:
            page.write(_markdown(checks))
    if not all(check.passed for check in checks):
        sys.exit(1)


def _table(checks: list[Check]) -> Table:
    table = Table("check", "", "found", box=None, pad_edge=False)
    for check in checks:
        table.add_row(check.name, "passed" if check.passed else Text("FAILED", "bold red"), check.found)
    return table


def _markdown(checks: list[Check]) -> str:
    rows = [f"| {c.name} | {'passed' if c.passed else '**failed**'} | {c.found} |" for c in checks]
    return "\n".join(["| check | | found |", "|---|---|---|", *rows, ""])


def _junit(checks: list[Check]) -> bytes:
    failed = sum(not check.passed for check in checks)
    suite = ElementTree.Element("testsuite", name="assay check", tests=str(len(checks)), failures=str(failed))
    for check in checks:
        case = ElementTree.SubElement(suite, "testcase", classname="assay", name=check.name)
        if not check.passed:
            ElementTree.SubElement(case, "failure", message=check.found)
    return bytes(ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True))
