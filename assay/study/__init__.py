"""Studies: recipes x calibrators x scores over data sets, networks and seeds, resumable, with statistics."""

from assay.study._checking import check, try_out
from assay.study._corrections import FITTED, ON_TEST, UNCHANGED
from assay.study._engine import FAILED, Progress, failure, state, why
from assay.study._execute import DONE, execute
from assay.study._local import run_local
from assay.study._named import Named
from assay.study._published import Beside, published_beside
from assay.study._ray import run_ray
from assay.study._rows import has_rows, read_rows, rows_file, write_rows
from assay.study._run import Run, expand
from assay.study._scores import LEARNED
from assay.study._statistics import Summary, cohens_d, holm, paired, ranks, welch, within_sem
from assay.study._study import PLAIN, TEMPERATURE, Study, read_study
from assay.study._table import Cell, Line, Table, better, competes, mean_ranks, tables
from assay.study._tuned_file import tuned_study
from assay.study._tuning import Trial, Tuned, tune

__all__ = [
    "DONE",
    "FAILED",
    "FITTED",
    "LEARNED",
    "ON_TEST",
    "PLAIN",
    "TEMPERATURE",
    "UNCHANGED",
    "Beside",
    "Cell",
    "Line",
    "Named",
    "Progress",
    "Run",
    "Study",
    "Summary",
    "Table",
    "Trial",
    "Tuned",
    "better",
    "check",
    "cohens_d",
    "competes",
    "execute",
    "expand",
    "failure",
    "has_rows",
    "holm",
    "mean_ranks",
    "paired",
    "published_beside",
    "ranks",
    "read_rows",
    "read_study",
    "rows_file",
    "run_local",
    "run_ray",
    "state",
    "tables",
    "try_out",
    "tune",
    "tuned_study",
    "welch",
    "why",
    "within_sem",
    "write_rows",
]
