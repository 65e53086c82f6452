"""A scikit-learn classifier that calibrates another one."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import check_cv, cross_val_predict
from sklearn.utils import assert_all_finite, column_or_1d, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from assay._core.arrays import Array, Floats, InputError
from assay._core.lookup import lookup
from assay.calibrators import CALIBRATORS
from assay.maps import Answer, answer
from assay.predictions import Predictions

SMALLEST = 1e-7  # lower probabilities are raised to this: trees give 0 to every class they have not seen


class CalibratedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """`estimator`, with its probabilities mapped by one of `CALIBRATORS`.

    The map is fitted on predictions for samples that the estimator was not fitted on: those of `cv` (a number of folds
    or a splitter), after which the estimator is fitted again on all samples. With `cv="prefit"` the estimator is used
    as it is, and `fit` needs samples that it has not seen. The class passes scikit-learn's estimator checks.

    >>> from sklearn.datasets import load_digits
    >>> from sklearn.naive_bayes import GaussianNB
    >>> x, y = load_digits(return_X_y=True)
    >>> model = CalibratedClassifier(GaussianNB(), calibrator="temperature").fit(x[:1000], y[:1000])
    >>> print(model.map_)
    logits / 4.165
    """

    def __init__(self, estimator: Any = None, calibrator: str = "temperature", cv: Any = 5):
        self.estimator = estimator
        self.calibrator = calibrator
        self.cv = cv

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self._base()).input_tags.sparse
        return tags

    def _base(self) -> Any:
        return LogisticRegression() if self.estimator is None else self.estimator

    def fit(self, X: Any, y: Any) -> CalibratedClassifier:
        """Fit the map and, unless it is fitted already, the estimator."""
        calibrator = lookup("calibrator", self.calibrator, CALIBRATORS)
        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        base = self._base()
        if self.cv == "prefit":
            check_is_fitted(base)
            self.estimator_ = base
            unseen = base.predict_proba(X)
        else:
            folds = check_cv(self.cv, y, classifier=True)
            unseen = cross_val_predict(clone(base), X, y, cv=folds, method="predict_proba")
            self.estimator_ = clone(base).fit(X, y)
        self.classes_ = self.estimator_.classes_
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        unknown = ~np.isin(y, self.classes_)
        if unknown.any():
            raise InputError(f"row {unknown.argmax()}: the estimator was not fitted on class {y[unknown][0]}")
        labels = np.searchsorted(self.classes_, np.asarray(y))
        self.map_ = calibrator(Predictions.from_probabilities(_clipped(unseen), labels))
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Calibrated probabilities [n, k]."""
        return self._answer(X).probabilities

    def predict(self, X: Any) -> Array:
        """The predicted class; it is the estimator's if the map keeps labels."""
        label = self._answer(X).label
        predicted: Array = self.classes_[label]
        return predicted

    def _answer(self, X: Any) -> Answer[Array]:
        check_is_fitted(self, "map_")
        return answer(self.map_, np.log(_clipped(self.estimator_.predict_proba(X))))


def _clipped(probabilities: Array) -> Floats:
    p = np.clip(np.asarray(probabilities, dtype=np.float64), SMALLEST, None)
    p /= p.sum(1, keepdims=True)
    return p
