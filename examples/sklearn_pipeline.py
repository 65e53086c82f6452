"""A scikit-learn pipeline: audit it, calibrate it by cross-validation, and choose a threshold.

    python examples/sklearn_pipeline.py

A random forest trained on three hundred digits is right nine times out of ten, but much less confident.
"""

from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from assay import Predictions, audit, compare, evaluate
from assay.selective import SelectiveClassifier
from assay.sklearn import CalibratedClassifier
from assay.thresholds import choose_threshold

x, y = load_digits(return_X_y=True)
x_train, x_rest, y_train, y_rest = train_test_split(x, y, train_size=300, random_state=0, stratify=y)
x_choose, x_test, y_choose, y_test = train_test_split(x_rest, y_rest, test_size=700, random_state=0, stratify=y_rest)

pipeline = make_pipeline(StandardScaler(), RandomForestClassifier(100, random_state=0)).fit(x_train, y_train)
before = Predictions.from_probabilities(pipeline.predict_proba(x_test), y_test)
print("forest:    ", audit(before))

# The map is fitted on predictions of five folds of the training set, so no samples are held out.
calibrated = CalibratedClassifier(pipeline, calibrator="temperature").fit(x_train, y_train)
after = Predictions.from_probabilities(calibrated.predict_proba(x_test), y_test)
print("calibrated:", audit(after))
print("map:       ", calibrated.map_)
print("difference:", compare(before, after))

threshold = choose_threshold(Predictions.from_probabilities(calibrated.predict_proba(x_choose), y_choose), risk=0.02)
print("threshold: ", threshold)
print("on test:   ", SelectiveClassifier(calibrated, None, threshold).report(x_test, y_test))
print({key: round(evaluate(after)[key], 4) for key in ("accuracy", "ece", "auroc", "aurc")})
