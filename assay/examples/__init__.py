"""Real predictions of two networks, to try everything without data of your own.

`examples/embedded_predictions.py` trained two ResNets of 14 layers (172,506 parameters) on 15,000 CIFAR-10 images for
24 epochs without augmentation, with SGD on a one-cycle schedule: one with cross-entropy, one with label smoothing of
.05. The files have their float32 logits on 5,000 held-out images and on the 10,000 images of the official test set.
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
        predictions = read(file)
    assert isinstance(predictions, Predictions)
    return predictions
