"""Data sets: named ones, files in public formats, and test sets under shift, all as `Splits` of `Samples`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from assay._core.arrays import InputError
from assay._core.lookup import lookup_or_import
from assay.nn.data import corruptions
from assay.nn.data._batches import Sampler, batch_sizes, batches, crop_and_flip, flip, normalized, shuffled_batches
from assay.nn.data._cifar import cifar10, cifar100
from assay.nn.data._datasets import Data, Inputs, Items, labeled_batches, samples_of, splits_of
from assay.nn.data._digits import digits
from assay.nn.data._features import cifar10_features
from assay.nn.data._image_sets import image_folder, imagenet, svhn, tiny_imagenet
from assay.nn.data._images import Images
from assay.nn.data._newsgroups import newsgroups, newsgroups_random
from assay.nn.data._parquet import parquet
from assay.nn.data._samples import Augment, Cut, Facts, Loader, Samples, Splits, divide, samples
from assay.nn.data._sst import sst2, sst5
from assay.nn.data._synthetic import gaussian_logits, gaussians, noise_images, synthetic
from assay.nn.data._words import read_glove

DATA: Mapping[str, Loader] = MappingProxyType(
    {
        "digits": digits,
        "synthetic": synthetic,
        "cifar10_features": cifar10_features,
        "cifar10": cifar10,
        "cifar100": cifar100,
        "svhn": svhn,
        "tiny_imagenet": tiny_imagenet,
        "imagenet": imagenet,
        "newsgroups": newsgroups,
        "newsgroups_random": newsgroups_random,
        "sst2": sst2,
        "sst5": sst5,
        "image_folder": image_folder,
        "parquet": parquet,
    }
)


def load(name: str, *, folder: str | Path | None = None, cut: Cut = Cut()) -> Splits:  # noqa: B008 (frozen)
    """The data set of that name in `DATA`, or of a user's own loader at "package.module:loader".

    `folder` holds data sets; by default the environment variable ASSAY_DATA names it.

    >>> load("digits").train.x.shape
    torch.Size([1295, 1, 8, 8])
    """
    place = folder or os.environ.get("ASSAY_DATA")
    read = loader(name)
    try:
        found: object = read(Path(place) if place else None, cut)
    except InputError as problem:
        raise InputError(f"{name}: {problem}") from problem
    if not isinstance(found, Splits):
        raise InputError(f"{name}: a loader must give Splits, and gave {type(found).__name__}")
    return found


def loader(name: str) -> Loader:
    """The loader of that name in `DATA`, or a user's own at "package.module:loader"."""
    return lookup_or_import("data set", name, DATA)


__all__ = [
    "DATA",
    "Augment",
    "Cut",
    "Data",
    "Facts",
    "Images",
    "Inputs",
    "Items",
    "Loader",
    "Sampler",
    "Samples",
    "Splits",
    "batch_sizes",
    "batches",
    "corruptions",
    "crop_and_flip",
    "divide",
    "flip",
    "gaussian_logits",
    "gaussians",
    "labeled_batches",
    "load",
    "loader",
    "noise_images",
    "normalized",
    "read_glove",
    "samples",
    "samples_of",
    "shuffled_batches",
    "splits_of",
]
