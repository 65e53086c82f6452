"""A Keras model: audit it, correct it, and check the correction.

    pip install 'assay-ml[integrations]' && python examples/keras_model.py

The last layer has no activation, so `predict` gives logits. Any backend of Keras will do; here it is torch.
"""

import os

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import assay
from assay import calibrators, maps

x, y = load_digits(return_X_y=True)
x_train, x_rest, y_train, y_rest = train_test_split(x / 16, y, train_size=400, random_state=0, stratify=y)
x_held_out, x_test, y_held_out, y_test = train_test_split(x_rest, y_rest, test_size=700, random_state=0)

keras.utils.set_random_seed(0)
model = keras.Sequential([keras.layers.Dense(64, activation="relu"), keras.layers.Dense(10)])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(keras.optimizers.Adam(0.01), loss)
model.fit(x_train, y_train, epochs=20, batch_size=32, verbose=0)

held_out = assay.Predictions.from_logits(model.predict(x_held_out, verbose=0), y_held_out)
test = assay.Predictions.from_logits(model.predict(x_test, verbose=0), y_test)
print("before:", assay.audit(test))
mapping = calibrators.temperature(held_out)
print("map:   ", mapping)
print("after: ", assay.compare(test, maps.apply(mapping, test)))
print({key: round(value, 4) for key, value in assay.evaluate(test, ["accuracy", "ece", "auroc"]).items()})
