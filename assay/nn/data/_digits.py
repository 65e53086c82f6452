"""Handwritten digits of 8x8 pixels, which scikit-learn includes (Alpaydin and Kaynak, UCI 1998)."""

from __future__ import annotations

from pathlib import Path

import torch

from assay._core.arrays import InputError
from assay.nn.data._samples import Cut, Facts, Splits, divide, samples
from assay.nn.data.corruptions import shifts

N_TEST = 359  # a fifth of 1797


def digits(folder: Path | None, cut: Cut) -> Splits:
    """Scikit-learn's digits as images [1, 8, 8]; the seed draws the test samples too."""
    try:
        from sklearn.datasets import load_digits  # type: ignore[import-untyped, unused-ignore]
    except ImportError as problem:
        raise InputError("they come with scikit-learn, which is not installed") from problem

    bunch = load_digits()
    images = torch.from_numpy(bunch.images[:, None] * (255 / 16)).round().to(torch.uint8)
    facts = Facts(tuple("0123456789"), mean=(0.305,), std=(0.376,))
    rest, test = divide(samples(images, torch.from_numpy(bunch.target), facts), Cut(held_out=N_TEST, seed=cut.seed))
    return Splits(*divide(rest, cut), test, shifts(test))
