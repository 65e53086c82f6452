"""Studies: recipes x calibrators x scores over data sets, networks and seeds, resumable, with statistics."""

from assay.study._checking import check
from assay.study._execute import execute
from assay.study._local import FAILED, Progress, run_local
from assay.study._rows import read_rows, write_rows
from assay.study._run import Run, expand
from assay.study._statistics import Summary, cohens_d, paired, ranks, welch, within_sem
from assay.study._study import Study, read_study
from assay.study._table import Cell, Line, Table, tables

__all__ = [
    "FAILED",
    "Cell",
    "Line",
    "Progress",
    "Run",
    "Study",
    "Summary",
    "Table",
    "check",
    "cohens_d",
    "execute",
    "expand",
    "paired",
    "ranks",
    "read_rows",
    "read_study",
    "run_local",
    "tables",
    "welch",
    "within_sem",
    "write_rows",
]
