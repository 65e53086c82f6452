"""Real predictions of two real networks, so that everything can be tried at once.

Two ResNets of 14 layers (172,506 parameters) were trained by `examples/embedded_predictions.py` on 15,000 CIFAR-10
images for 24 epochs without augmentation, with SGD on a one-cycle schedule: one on cross-entropy, one with labels
smoothed by .05. Stored are their float32 logits on 5,000 held-out images and on the 10,000 of the official test set.
"""

from importlib.resources import as_file, files

from assay.files import read
from assay.predictions import Predictions

MODELS = ("cross_entropy", "label_smoothing")
SPLITS = ("held_out", "test")


def load(model: str = "cross_entropy", split: str = "test") -> Predictions:
    """Predictions of one of `MODELS` on one of `SPLITS`.

    >>> load()
    Predictions(n=10000, k=10, logits)
    """
    if model not in MODELS or split not in SPLITS:
        raise ValueError(f"no embedded '{model}' on '{split}'; there are {', '.join(MODELS)} on {', '.join(SPLITS)}")
    with as_file(files("assay.examples") / f"cifar10_{model}_{split}.npz") as file:
        found = read(file)
    assert isinstance(found, Predictions)
    return found
