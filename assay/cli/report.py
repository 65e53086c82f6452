"""The results of a study: the commands `assay study report` and `assay study rows`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import pyarrow
import pyarrow.csv
import pyarrow.parquet
from cyclopts import Parameter
from rich.console import Group, RenderableType
from rich.progress import track
from rich.text import Text

from assay import audit, files
from assay._core.arrays import InputError
from assay._core.lookup import needs
from assay._core.manifest import refuse_foreign
from assay._core.text import csv_cell
from assay._core.writing import not_over, replacing
from assay.cli.output import console, show
from assay.report import tables as shown
from assay.study import (
    Error,
    Run,
    Study,
    StudyTable,
    expand,
    has_rows,
    no_figure,
    paired,
    published_beside,
    read_rows,
    read_study,
    reference_method,
    state,
    tabulate,
    welch,
)

RUNS = Path("runs")
TESTS_BY_NAME = {"welch": welch, "paired": paired}


def rows_command(file: Path, *, to: Path, out: Path = RUNS) -> None:
    """Write all numbers of a study as one table in long form.

    Parameters
    ----------
    file
        The study.
    to
        The file to write, .parquet or .csv.
    out
        Folder of all runs.
    """
    study = read_study(file)
    not_over(to, reading=[file])
    rows = _rows(study, expand(study), out)
    with replacing(to) as stream:
        if to.suffix == ".parquet":
            pyarrow.parquet.write_table(rows, stream, write_page_checksum=True)
        elif to.suffix == ".csv":
            pyarrow.csv.write_csv(_cells(rows), stream)
        else:
            raise InputError(f"{to}: rows are written as .parquet or .csv")
    say_left_out(study, expand(study), out)


def _cells(rows: pyarrow.Table) -> pyarrow.Table:
    """The rows with texts that no spreadsheet takes for formulas."""
    columns = {
        csv_cell(name): [cell if cell is None else csv_cell(cell) for cell in column.to_pylist()]
        if pyarrow.types.is_string(column.type)
        else column
        for name, column in zip(rows.column_names, rows.columns, strict=True)
    }
    return pyarrow.table(columns)


@Parameter(name="*")
@dataclass(frozen=True)
class Tabulation:
    """How the tables of a study compare its methods.

    Parameters
    ----------
    test
        How a method is compared with the baseline: Welch's t-test, or paired by seed.
    error
        What stands behind ±: the standard deviation over seeds, or the standard error of the mean.
    holm
        Correct the tests of each metric for their number.
    bold
        Print in bold the best, or what is significantly worse than the baseline.
    published
        Show the figures of the papers that the study names beside ours, with the difference.
    """

    test: Literal["welch", "paired"] = "welch"
    error: Error = "sd"
    holm: Annotated[bool, Parameter(negative="")] = False
    bold: shown.Bold = "best"
    published: Annotated[bool, Parameter(negative="")] = False


DEFAULT_TABULATION = Tabulation()


def report_command(
    file: Path,
    *,
    out: Path = RUNS,
    to: Path | None = None,
    html: Path | None = None,
    pages: Annotated[bool, Parameter(negative="")] = False,
    figures: Path | None = None,
    how: Tabulation = DEFAULT_TABULATION,
) -> None:
    """Show the tables of a study, or write them, its page or its figures.

    Parameters
    ----------
    file
        The study.
    out
        Folder of all runs.
    to
        A file to write the tables to: .md, .tex or .csv.
    html
        A page to write, to explore all results in a browser.
    pages
        With --html, also write the audit of each run as a page in its folder; the study's page links to it.
    figures
        A folder to write figures to, as SVG.
    """
    study = read_study(file)
    not_over(to, html, reading=[file, figures])
    if figures is not None and figures.is_file():
        raise InputError(f"{figures} is a file; --figures needs a folder")
    if figures is not None:
        needs("matplotlib")
    runs = expand(study)
    if how.published and not study.published:
        raise InputError(f'{file} names no published table; say for instance published = ["zhu2022/2"]')
    made = study_tables(study, runs, out, how)
    if to is not None:
        _write_tables(made, to, how.bold, _left_out(study, runs, out))
    if html is not None:
        from assay.report.page import study_page

        if pages:
            _write_pages(study, runs, out)
        study_page(study, runs, out, made, html)
    if figures is not None:
        from assay.report.drawing import draw_study

        draw_study(study, runs, out, _rows(study, runs, out), figures)
    if to is html is figures is None:
        show(study_view(made, how.bold, console().width))
    say_left_out(study, runs, out)


def study_tables(study: Study, runs: list[Run], out: Path, how: Tabulation = DEFAULT_TABULATION) -> list[StudyTable]:
    """The tables of all runs that are done."""
    return tabulate(
        _rows(study, runs, out),
        baseline=str(reference_method(study)),
        metrics=study.metrics,
        test=TESTS_BY_NAME[how.test],
        corrected=how.holm,
        error=how.error,
        beside=published_beside(study) if how.published else no_figure,
    )


def _rows(study: Study, runs: Sequence[Run], out: Path) -> pyarrow.Table:
    rows = read_rows(study, [out / run.folder for run in runs])
    if not rows.num_rows:
        raise InputError(f"no run of {study.name} in {out} is done; assay study run makes them")
    return rows


def say_left_out(study: Study, runs: Sequence[Run], out: Path) -> None:
    """Say how many runs are missing in what was shown."""
    if left_out := _left_out(study, runs, out):
        show(left_out, "yellow", stderr=True)


def _left_out(study: Study, runs: Sequence[Run], out: Path) -> str:
    """A line that says how many runs are missing in a table; empty if none is."""
    undone = sum(not has_rows(study, out / run.folder) for run in runs)
    return f"{undone} of {len(runs)} runs are not done and left out" if undone else ""


def study_view(tables: list[StudyTable], bold: shown.Bold, width: int) -> RenderableType:
    """The tables, and if there are several their mean ranks, for the terminal."""
    legends = dict.fromkeys(shown.legend(table, bold) for table in tables)
    ranked = shown.rank_grids(tables, width=width) if len(tables) > 1 else []
    parts = [grid for table in tables for grid in shown.grids(table, bold, width=width)]
    return Group(*parts, *ranked, *(Text(legend, "dim") for legend in legends))


def _write_pages(study: Study, runs: list[Run], out: Path) -> None:
    """Write the audit of each run's test predictions as audit.html in its folder."""
    from assay.report.page import audit_page

    done = [run for run in runs if state(study, out / run.folder) == "done"]
    for run in done:
        refuse_foreign(out / run.folder, root=out)
    for run in track(done, "pages of runs", console=console(stderr=True), transient=True):
        predictions = files.read(out / run.folder / "test.npz")
        name = run.shown
        audit_page({name: predictions}, {name: audit(predictions)}, out / run.folder / "audit.html")


def _write_tables(tables: list[StudyTable], to: Path, bold: shown.Bold, left_out: str) -> None:
    forms = {
        ".md": lambda: "\n".join(
            [*(shown.markdown(table, bold) for table in tables), f"{left_out}\n" * bool(left_out)]
        ),
        ".tex": lambda: "\n".join([f"% {left_out}" * bool(left_out), *(shown.latex(table, bold) for table in tables)]),
        ".csv": lambda: shown.as_csv(tables),
    }
    if to.suffix not in forms:
        raise InputError(f"{to}: tables are written as {', '.join(forms)}")
    with replacing(to) as stream:
        stream.write(forms[to.suffix]().encode())
