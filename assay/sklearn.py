"""scikit-learn: a classifier that calibrates another one, metrics as scorers, predictions of fitted estimators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import check_cv, cross_val_predict
from sklearn.utils import assert_all_finite, column_or_1d, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from assay._core.arrays import Array, Floats, InputError
from assay._core.lookup import lookup
from assay.calibrators import calibrator
from assay.maps import Answer, Map, answer
from assay.metrics import METRICS, evaluate
from assay.predictions import Predictions

SMALLEST = 1e-7  # lower probabilities are raised to this: trees give 0 to every class they have not seen


class CalibratedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """`estimator`, with its probabilities, or margins if it has none, mapped by a calibrator.

    `calibrator` is a name, with values if any ("matrix,free_diagonal=True"), or a function of held-out predictions.

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

    def __init__(
        self,
        estimator: Any = None,
        calibrator: str | Callable[..., Map] = "temperature",
        cv: Any = 5,
        n_jobs: int | None = None,
    ):
        self.estimator = estimator
        self.calibrator = calibrator
        self.cv = cv
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self._base()).input_tags.sparse
        return tags

    def _base(self) -> Any:
        return LogisticRegression() if self.estimator is None else self.estimator

    def fit(
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> CalibratedClassifier:
        """Fit the map and, unless it is fitted already, the estimator.

        `groups` go to the splitter `cv`. `sample_weight` goes to the estimator and to the calibrator, as the weights of
        its predictions; the calibrator does not see rows of weight 0.
        """
        fitted_by = calibrator(self.calibrator)
        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, X)
        base = self._base()
        if self.cv == "prefit":
            check_is_fitted(base)
            self.estimator_ = base
            unseen = _scores(base, X)
        else:
            folds = check_cv(self.cv, y, classifier=True)
            weight = {} if weights is None else {"sample_weight": weights}
            method = "predict_proba" if hasattr(base, "predict_proba") else "decision_function"
            split = {"cv": folds, "groups": groups, "n_jobs": self.n_jobs, "params": weight}
            unseen = cross_val_predict(clone(base), X, y, method=method, **split)
            self.estimator_ = clone(base).fit(X, y, **weight)
        self.classes_ = self.estimator_.classes_
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        unknown = ~np.isin(y, self.classes_)
        if unknown.any():
            raise InputError(f"row {unknown.argmax()}: the estimator was not fitted on class {y[unknown][0]}")
        labels = np.searchsorted(self.classes_, np.asarray(y))
        if weights is not None:
            counted = weights != 0
            unseen, labels, weights = unseen[counted], labels[counted], weights[counted]
        self.map_ = fitted_by(_predictions(self.estimator_, unseen, labels, weights))
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
        unseen = _scores(self.estimator_, X)
        return answer(self.map_, _predictions(self.estimator_, unseen, np.zeros(len(unseen), dtype=int)).logits)


def scorer(key: str) -> Callable[[Any, Any, Any], float]:
    """A metric of `evaluate` as a scorer, for `cross_val_score`, grid searches and the like; higher is better.

    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import cross_val_score
    >>> model, iris = LogisticRegression(max_iter=1000), load_iris(return_X_y=True)
    >>> ours, theirs = (cross_val_score(model, *iris, scoring=each) for each in (scorer("nll"), "neg_log_loss"))
    >>> bool(abs(ours - theirs).max() < 1e-5)
    True
    """
    sign = 1.0 if lookup("metric", key, METRICS).better == "higher" else -1.0

    def score(estimator: Any, X: Any, y: Any) -> float:
        return sign * evaluate(from_estimator(estimator, X, y), [key])[key]

    return score


def from_estimator(estimator: Any, X: Any, y: Any, *, sample_weight: ArrayLike | None = None) -> Predictions:
    """The predictions of a fitted classifier on labeled samples, from its probabilities or else its margins.

    Labels are those that it was fitted on, numbers or strings.
    """
    known = np.asarray(estimator.classes_)
    y = column_or_1d(y)
    unknown = ~np.isin(y, known)
    if unknown.any():
        raise InputError(f"row {unknown.argmax()}: the estimator was not fitted on class {y[unknown][0]}")
    found = _predictions(estimator, _scores(estimator, X), np.searchsorted(known, y), sample_weight)
    return replace(found, classes=tuple(map(str, known)) if known.dtype.kind in "UO" else None)


def _scores(estimator: Any, X: Any) -> Array:
    """Probabilities, or margins of an estimator that has none."""
    method = "predict_proba" if hasattr(estimator, "predict_proba") else "decision_function"
    return np.asarray(getattr(estimator, method)(X))


def _predictions(
    estimator: Any, scores: Array, labels: ArrayLike, sample_weight: ArrayLike | None = None
) -> Predictions:
    """Scores of an estimator as predictions; one margin a row is that of class 1 against class 0."""
    if hasattr(estimator, "predict_proba"):
        return Predictions.from_probabilities(_clipped(scores), labels, weights=sample_weight)
    make = Predictions.from_binary_logits if scores.ndim == 1 else Predictions.from_logits
    return make(scores, labels, weights=sample_weight)


def _clipped(probabilities: Array) -> Floats:
    p = np.clip(np.asarray(probabilities, dtype=np.float64), SMALLEST, None)
    p /= p.sum(1, keepdims=True)
    return p
