"""scikit-learn: a classifier that calibrates another one, metrics as scorers, predictions of fitted estimators."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import check_cv, cross_val_predict
from sklearn.utils import _safe_indexing, assert_all_finite, column_or_1d, get_tags, indexable
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from assay._core.arrays import Array, Floats, InputError, Labels
from assay._core.lookup import lookup
from assay.calibrators import calibrator, temperature
from assay.maps import Answer, Map, answer
from assay.metrics import METRICS, evaluate
from assay.predictions import Predictions

SMALLEST = 1e-12  # is added to probabilities: trees give 0 to every class they have not seen
FLOORS = (SMALLEST, 1e-8, 1e-6, 1e-4, 1e-3, 1e-2, 1e-1)


class CalibratedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """`estimator`, with its probabilities, or margins if it has none, mapped by a calibrator.

    `calibrator` is a name, with values if any ("matrix,free_diagonal=True"), or a function of held-out predictions.

    The map is fitted on predictions for samples that the estimator was not fitted on: those of `cv` (a number of folds
    or a splitter), after which the estimator is fitted again on all samples. With `ensemble=True` the estimator of each
    fold is kept, with a map of its own, and the probabilities of all are averaged: slower and often better. With
    `cv="prefit"` the estimator is used as it is, and `fit` needs samples that it has not seen.

    Probabilities of 0 have no logarithm: `floor_` is added to all, 1e-12 as in scikit-learn or a higher power of ten,
    whichever has the least log loss after temperature scaling on samples that the estimator has not seen. The class
    passes scikit-learn's estimator checks.

    >>> from sklearn.datasets import load_digits
    >>> from sklearn.naive_bayes import GaussianNB
    >>> x, y = load_digits(return_X_y=True)
    >>> model = CalibratedClassifier(GaussianNB(), calibrator="temperature").fit(x[:1000], y[:1000])
    >>> print(model.map_)
    logits / 6.819
    """

    def __init__(
        self,
        estimator: Any = None,
        calibrator: str | Callable[..., Map] = "temperature",
        cv: Any = 5,
        n_jobs: int | None = None,
        ensemble: bool = False,
    ):
        self.estimator = estimator
        self.calibrator = calibrator
        self.cv = cv
        self.n_jobs = n_jobs
        self.ensemble = ensemble

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
        if self.ensemble and self.cv == "prefit":
            raise InputError("an ensemble fits its own estimators, so cv cannot be 'prefit'")
        given = _Samples(X, y, weights, groups, self.n_jobs)
        fit_all = _ensemble if self.ensemble else _prefit if self.cv == "prefit" else _refitted
        self.members_ = fit_all(self._base(), fitted_by, given, self.cv)
        self.classes_ = self.members_[0].classes
        if not self.ensemble:
            self.estimator_, self.map_, self.floor_ = (
                getattr(self.members_[0], x) for x in ("estimator", "map", "floor")
            )
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.members_[0].estimator, name):
                setattr(self, name, getattr(self.members_[0].estimator, name))
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Calibrated probabilities [n, k]."""
        check_is_fitted(self, "members_")
        found: Floats = np.mean([member.answer(X).probabilities for member in self.members_], 0)
        return found

    def predict(self, X: Any) -> Array:
        """The predicted class; it is the estimator's if the map keeps labels."""
        check_is_fitted(self, "members_")
        label = self.predict_proba(X).argmax(1) if self.ensemble else self.members_[0].answer(X).label
        predicted: Array = self.classes_[label]
        return predicted


@dataclass(frozen=True, eq=False)
class _Samples:
    """What `fit` is given."""

    X: Any
    y: Array
    weights: Floats | None
    groups: ArrayLike | None
    n_jobs: int | None

    def fitted(self, base: Any, rows: Array) -> Any:
        weight = {} if self.weights is None else {"sample_weight": self.weights[rows]}
        return clone(base).fit(_safe_indexing(self.X, rows), self.y[rows], **weight)


@dataclass(frozen=True, eq=False)
class _Member:
    """An estimator with the map of its probabilities, to which `floor` is added."""

    estimator: Any
    classes: Array
    map: Map
    floor: float

    def answer(self, X: Any) -> Answer[Array]:
        unseen = _scores(self.estimator, X, self.classes)
        labels = np.zeros(len(unseen), dtype=int)
        return answer(self.map, _predictions(self.estimator, unseen, labels, floor=self.floor).logits)


def _prefit(base: Any, fitted_by: Callable[..., Map], given: _Samples, cv: Any) -> list[_Member]:
    check_is_fitted(base)
    return [_member(base, fitted_by, given, _scores(base, given.X), base.classes_)]


def _refitted(base: Any, fitted_by: Callable[..., Map], given: _Samples, cv: Any) -> list[_Member]:
    """One map, of predictions across folds, and the estimator fitted on all samples."""
    weight = {} if given.weights is None else {"sample_weight": given.weights}
    method = "predict_proba" if hasattr(base, "predict_proba") else "decision_function"
    split = {"cv": check_cv(cv, given.y, classifier=True), "groups": given.groups, "n_jobs": given.n_jobs}
    unseen = cross_val_predict(clone(base), given.X, given.y, method=method, params=weight, **split)
    whole = clone(base).fit(given.X, given.y, **weight)
    return [_member(whole, fitted_by, given, unseen, whole.classes_)]


def _ensemble(base: Any, fitted_by: Callable[..., Map], given: _Samples, cv: Any) -> list[_Member]:
    """The estimator of each fold, with a map of what it says about the samples left out."""
    classes, (X_all,) = np.unique(given.y), indexable(given.X)
    given = replace(given, X=X_all)

    def of_fold(train: Array, rest: Array) -> _Member:
        estimator = given.fitted(base, train)
        X, y = _safe_indexing(given.X, rest), given.y[rest]
        left_out = _Samples(X, y, None if given.weights is None else given.weights[rest], None, None)
        return _member(estimator, fitted_by, left_out, _scores(estimator, X, classes), classes)

    folds = check_cv(cv, given.y, classifier=True).split(given.X, given.y, given.groups)
    found: list[_Member] = Parallel(n_jobs=given.n_jobs)(delayed(of_fold)(*fold) for fold in folds)
    return found


def _member(estimator: Any, fitted_by: Callable[..., Map], given: _Samples, unseen: Array, classes: Array) -> _Member:
    """The estimator with the map of its `unseen` scores; rows of weight 0 are left out of them."""
    unknown = ~np.isin(given.y, classes)
    if unknown.any():
        raise InputError(f"row {unknown.argmax()}: the estimator was not fitted on class {given.y[unknown][0]}")
    counted = slice(None) if given.weights is None else np.flatnonzero(given.weights)
    labels = np.searchsorted(classes, given.y)[counted]
    weights = None if given.weights is None else given.weights[counted]
    floor = _floor(estimator, unseen[counted], labels, weights)
    held_out = _predictions(estimator, unseen[counted], labels, weights, floor=floor)
    return _Member(estimator, classes, fitted_by(held_out), floor)


def _floor(estimator: Any, scores: Array, labels: Labels, weights: Floats | None) -> float:
    """The floor of least log loss after temperature scaling; of several, the lowest."""
    if not hasattr(estimator, "predict_proba") or scores.min() >= max(FLOORS):
        return SMALLEST
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # no finite temperature
        losses = [
            temperature(_predictions(estimator, scores, labels, weights, floor=floor)).fit.after for floor in FLOORS
        ]
    return FLOORS[int(np.argmin(losses))]


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


def _scores(estimator: Any, X: Any, classes: Array | None = None) -> Array:
    """Probabilities, or margins of an estimator that has none; of `classes`, if it may not know them all."""
    method = "predict_proba" if hasattr(estimator, "predict_proba") else "decision_function"
    found = np.asarray(getattr(estimator, method)(X))
    if classes is None or len(estimator.classes_) == len(classes):
        return found
    if method == "decision_function":
        absent = next(name for name in classes if name not in estimator.classes_)
        raise InputError(f"class {absent} is in too few rows for every fold to have it")
    every = np.zeros((len(found), len(classes)))
    every[:, np.searchsorted(classes, estimator.classes_)] = found
    return every


def _predictions(
    estimator: Any,
    scores: Array,
    labels: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    floor: float = SMALLEST,
) -> Predictions:
    """Scores of an estimator as predictions; one margin a row is that of class 1 against class 0."""
    if hasattr(estimator, "predict_proba"):
        p = np.asarray(scores, dtype=np.float64) + floor
        return Predictions.from_probabilities(p / p.sum(1, keepdims=True), labels, weights=sample_weight)
    make = Predictions.from_binary_logits if scores.ndim == 1 else Predictions.from_logits
    return make(scores, labels, weights=sample_weight)
