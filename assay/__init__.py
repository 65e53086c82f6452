"""Tell how far a classifier's confidence can be trusted, make it more trustworthy, and prove the difference."""

from assay.auditing import Audit, audit
from assay.comparing import Comparison, compare
from assay.metrics import evaluate
from assay.predictions import Outcomes, Predictions
from assay.selective import Threshold, choose_threshold

__all__ = [
    "Audit",
    "Comparison",
    "Outcomes",
    "Predictions",
    "Threshold",
    "audit",
    "choose_threshold",
    "compare",
    "evaluate",
]
__version__ = "0.1.0"
