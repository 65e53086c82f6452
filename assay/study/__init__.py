"""Studies: recipes x calibrators x scores over data sets, networks and seeds, resumable, with statistics.

Reading a study, its rows and its tables needs no torch; what trains is imported on first use.
"""

from typing import TYPE_CHECKING, Any

from assay._core.variants import Variant, parse_variant
from assay.study._consent import own_code
from assay.study._corrections import FITTED, FIXED, ON_TEST, UNCHANGED, correction
from assay.study._engine import DONE, Progress, failure, state, why
from assay.study._published import Beside, no_figure, published_beside
from assay.study._rows import has_rows, joined, read_rows, row_table, rows_file, value_column, write_rows
from assay.study._run import Run, expand
from assay.study._scores import LEARNED
from assay.study._statistics import SeedSummary, cohens_d, holm_corrected, paired, ranks, welch, within_sem
from assay.study._study import TEMPERATURE, USUAL_SCORE, Study, read_study, reference_method
from assay.study._table import Error, StudyCell, StudyLine, StudyTable, better, mean_ranks, tabulate
from assay.study._tuning import Trial, Tuned, tune, tuned_study

if TYPE_CHECKING:
    from assay.study._checking import Attempt, check, try_out
    from assay.study._costs import Cost
    from assay.study._execute import execute
    from assay.study._local import run_local
    from assay.study._ray import Cluster, run_ray

__all__ = [
    "DONE",
    "FITTED",
    "FIXED",
    "LEARNED",
    "ON_TEST",
    "TEMPERATURE",
    "UNCHANGED",
    "USUAL_SCORE",
    "Attempt",
    "Beside",
    "Cluster",
    "Cost",
    "Error",
    "Progress",
    "Run",
    "SeedSummary",
    "Study",
    "StudyCell",
    "StudyLine",
    "StudyTable",
    "Trial",
    "Tuned",
    "Variant",
    "better",
    "check",
    "cohens_d",
    "correction",
    "execute",
    "expand",
    "failure",
    "has_rows",
    "holm_corrected",
    "joined",
    "mean_ranks",
    "no_figure",
    "own_code",
    "paired",
    "parse_variant",
    "published_beside",
    "ranks",
    "read_rows",
    "read_study",
    "reference_method",
    "row_table",
    "rows_file",
    "run_local",
    "run_ray",
    "state",
    "tabulate",
    "try_out",
    "tune",
    "tuned_study",
    "value_column",
    "welch",
    "why",
    "within_sem",
    "write_rows",
]
_TRAINING = {
    "Attempt": "_checking",
    "Cost": "_costs",
    "check": "_checking",
    "try_out": "_checking",
    "execute": "_execute",
    "run_local": "_local",
    "run_ray": "_ray",
    "Cluster": "_ray",
}


def __getattr__(name: str) -> Any:
    """Import what trains on first use: it needs torch."""
    from importlib import import_module

    from assay._core.lookup import needs

    if name not in _TRAINING:
        raise AttributeError(f"module 'assay.study' has no attribute {name!r}")
    needs("torch")
    return getattr(import_module(f"assay.study.{_TRAINING[name]}"), name)
