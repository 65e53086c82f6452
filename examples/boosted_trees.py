"""XGBoost and LightGBM: their predictions audited, and their probabilities calibrated as scikit-learn estimators.

pip install 'assay-ml[integrations]' && python examples/boosted_trees.py
"""

from lightgbm import LGBMClassifier
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from xgboost import XGBClassifier

import assay
from assay.sklearn import CalibratedClassifier

x, y = load_digits(return_X_y=True)
train_x, test_x, train_y, test_y = train_test_split(x, y, test_size=0.4, random_state=0)
found = {}
for model in (XGBClassifier(n_estimators=20, n_jobs=1), LGBMClassifier(n_estimators=20, n_jobs=1, verbose=-1)):
    calibrated = CalibratedClassifier(model, calibrator="temperature", cv=3).fit(train_x, train_y)
    for name, fitted in (("as it is", calibrated.estimator_), ("calibrated", calibrated)):
        predictions = assay.Predictions.from_estimator(fitted, test_x, test_y)
        found[type(model).__name__, name] = round(assay.evaluate(predictions)["nll"], 4)

# Raw margins of XGBoost are logits, and its labels are floats.
margins = XGBClassifier(n_estimators=5, n_jobs=1).fit(train_x, train_y).predict(test_x, output_margin=True)
print(assay.audit(assay.Predictions.from_logits(margins, test_y.astype(float))))
print(found)
