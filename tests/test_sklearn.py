"""scikit-learn's models at home in assay: margins, weights, groups, names of classes, scorers."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

from assay import evaluate
from assay._core.arrays import InputError
from assay.calibrators import CALIBRATORS, calibrator, matrix
from assay.sklearn import CalibratedClassifier, from_estimator, scorer

X, Y = load_digits(return_X_y=True)
NAMES = np.array(list("abcdefghij"))[Y]


@pytest.mark.filterwarnings("ignore:no finite temperature")  # one digit against the rest is told without an error
@pytest.mark.parametrize("y", [NAMES, NAMES == "a"])
def test_margins_become_probabilities(y):
    plain = LinearSVC(random_state=0).fit(X[:900], y[:900])
    model = CalibratedClassifier(LinearSVC(random_state=0), cv=3).fit(X[:900], y[:900])
    margins = plain.decision_function(X[900:])
    assert np.allclose(model.predict_proba(X[900:]).sum(1), 1)
    assert (model.predict(X[900:]) == plain.predict(X[900:])).mean() > 0.99
    assert from_estimator(plain, X[900:], y[900:]).logits[:, -1] == pytest.approx(
        margins if margins.ndim == 1 else margins[:, -1]
    )


def test_weights_reach_the_estimator_and_the_calibrator():
    seen = {}

    def noted(held_out):
        seen["weights"] = held_out.weights
        return CALIBRATORS["temperature"](held_out)

    weight = np.random.default_rng(0).uniform(0.1, 3, len(X))
    model = CalibratedClassifier(GaussianNB(), noted, cv=3).fit(X, NAMES, sample_weight=weight)
    assert np.array_equal(seen["weights"], weight)
    assert model.estimator_.theta_ == pytest.approx(GaussianNB().fit(X, NAMES, weight).theta_)


def test_groups_go_to_the_splitter():
    class Noting(GroupKFold):
        def split(self, X, y=None, groups=None):
            self.groups = groups
            return super().split(X, y, groups)

    folds, groups = Noting(3), np.arange(len(X)) % 7
    CalibratedClassifier(GaussianNB(), cv=folds).fit(X, Y, groups=groups)
    assert np.array_equal(folds.groups, groups)


def test_a_calibrator_is_a_name_with_values_or_a_function():
    by_name = CalibratedClassifier(GaussianNB(), "matrix,free_diagonal=True", cv=3).fit(X[:400], Y[:400])
    by_function = CalibratedClassifier(GaussianNB(), partial(matrix, free_diagonal=True), cv=3).fit(X[:400], Y[:400])
    assert by_name.map_ == by_function.map_
    with pytest.raises(InputError, match="no hyper-parameter 'gama'"):
        calibrator("matrix,gama=2")


def test_your_own_calibrator_is_named_by_its_module():
    assert calibrator("assay.calibrators:fixed_temperature,t=2.0").keywords == {"t": 2.0}
    with pytest.raises(TypeError, match="does not support item assignment"):
        CALIBRATORS["mine"] = matrix  # other processes would not know it


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("key", "sign"), [("ece", -1), ("auroc", 1)])
@pytest.mark.parametrize("y", [Y, NAMES, NAMES == "a"])
def test_a_scorer_is_the_metric_and_higher_is_better(key, sign, y):
    model = LogisticRegression(max_iter=20).fit(X[:300], y[:300])
    found = evaluate(from_estimator(model, X[300:], y[300:]))[key]
    assert scorer(key)(model, X[300:], y[300:]) == pytest.approx(sign * found)
    assert (sign * cross_val_score(GaussianNB(), X, y, scoring=scorer(key), cv=3) > 0).all()


def test_an_unknown_class_is_named():
    with pytest.raises(InputError, match="was not fitted on class j"):
        from_estimator(GaussianNB().fit(X[Y < 9], NAMES[Y < 9]), X, NAMES)


@pytest.mark.parametrize("ensemble", [False, True])
@pytest.mark.parametrize("estimator", [GaussianNB(), KNeighborsClassifier()])
def test_log_loss_is_no_higher_than_scikit_learns(estimator, ensemble):
    """Neighbors give probabilities of 0, and naive Bayes ones near it: what they are raised to matters."""
    theirs = CalibratedClassifierCV(estimator, method="temperature", ensemble=ensemble, cv=3)
    ours = CalibratedClassifier(estimator, cv=3, ensemble=ensemble)
    loss = [log_loss(Y[900:], model.fit(X[:900], Y[:900]).predict_proba(X[900:])) for model in (ours, theirs)]
    assert loss[0] <= loss[1] + 1e-6


def test_an_ensemble_averages_its_members():
    model = CalibratedClassifier(GaussianNB(), cv=3, ensemble=True).fit(X[:900], NAMES[:900])
    assert len(model.members_) == 3
    each = [member.answer(X[900:]).probabilities for member in model.members_]
    assert model.predict_proba(X[900:]) == pytest.approx(np.mean(each, 0))
    assert model.predict(X[900:]).tolist() == model.classes_[np.mean(each, 0).argmax(1)].tolist()
    with pytest.raises(InputError, match="cv cannot be 'prefit'"):
        CalibratedClassifier(GaussianNB().fit(X, Y), cv="prefit", ensemble=True).fit(X, Y)


def test_a_fold_without_a_class_gives_it_the_floor():
    y = np.where(np.arange(300) < 2, "rare", NAMES[:300])
    with pytest.warns(UserWarning, match="least populated class"):
        model = CalibratedClassifier(GaussianNB(), cv=3, ensemble=True).fit(X[:300], y)
    assert "rare" in model.classes_
    assert model.predict_proba(X[300:400]).sum(1) == pytest.approx(1)
