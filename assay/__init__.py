"""Tell how far a classifier's confidence can be trusted, make it more trustworthy, and prove the difference."""

from typing import TYPE_CHECKING, Any

from assay._core.lookup import needs
from assay.auditing import Audit, audit
from assay.comparing import Comparison, compare
from assay.metrics import evaluate
from assay.predictions import Outcomes, Predictions
from assay.thresholds import Threshold, choose_threshold

if TYPE_CHECKING:
    from assay.nn.training import Recipe, predict, train
    from assay.study import Study

__all__ = [
    "Audit",
    "Comparison",
    "Outcomes",
    "Predictions",
    "Recipe",
    "Study",
    "Threshold",
    "audit",
    "choose_threshold",
    "compare",
    "evaluate",
    "predict",
    "train",
]
__version__ = "0.1.0"
_LATER = {"Recipe": "nn.training", "predict": "nn.training", "train": "nn.training", "Study": "study"}

_ELSEWHERE = {  # first guesses, and where the thing is
    **{name: f"nn.{name}" for name in ("losses", "objectives", "optim", "networks", "recipes", "deploy")},
    "CalibratedClassifier": "sklearn.CalibratedClassifier",
    "SelectiveClassifier": "selective.SelectiveClassifier",
    "apply": "maps.apply",
    "calibrate": "calibrators, for example assay.calibrators.temperature(held_out)",
}


def __getattr__(name: str) -> Any:
    """Load what training needs when it is asked for."""
    from importlib import import_module

    if name in _LATER:
        if _LATER[name].startswith("nn."):
            needs("torch")
        return getattr(import_module(f"assay.{_LATER[name]}"), name)
    elsewhere = f"; it is assay.{_ELSEWHERE[name]}" if name in _ELSEWHERE else ""
    raise AttributeError(f"module 'assay' has no attribute {name!r}{elsewhere}")
