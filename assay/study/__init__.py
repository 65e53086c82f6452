"""Studies: recipes x calibrators x scores over data sets, networks and seeds, resumable, with statistics.

Reading a study, its rows and its tables needs no torch; what trains is imported on first use.
"""

from typing import TYPE_CHECKING, Any

from assay.study._corrections import FITTED, ON_TEST, UNCHANGED
from assay.study._engine import DONE, FAILED, Progress, failure, state, why
from assay.study._named import Named
from assay.study._published import Beside, published_beside
from assay.study._rows import has_rows, read_rows, rows_file, write_rows
from assay.study._run import Run, expand
from assay.study._scores import LEARNED
from assay.study._statistics import Summary, cohens_d, holm, paired, ranks, welch, within_sem
from assay.study._study import PLAIN, TEMPERATURE, Study, read_study
from assay.study._table import Cell, Line, Table, better, competes, mean_ranks, tables
from assay.study._tuning import Trial, Tuned, tune, tuned_study

if TYPE_CHECKING:
    from assay.study._checking import check, try_out
    from assay.study._execute import execute
    from assay.study._local import run_local
    from assay.study._ray import run_ray

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
_TRAINING = {
    "check": "_checking",
    "try_out": "_checking",
    "execute": "_execute",
    "run_local": "_local",
    "run_ray": "_ray",
}


def __getattr__(name: str) -> Any:
    """Import what trains on first use: it needs torch."""
    from importlib import import_module

    from assay._core.lookup import needs

    if name not in _TRAINING:
        raise AttributeError(f"module 'assay.study' has no attribute {name!r}")
    needs("torch")
    return getattr(import_module(f"assay.study.{_TRAINING[name]}"), name)
