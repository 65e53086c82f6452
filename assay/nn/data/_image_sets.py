"""SVHN, Tiny-ImageNet, ImageNet, and folders of images."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from assay._core.arrays import InputError
from assay.nn.data._batches import crop_and_flip, flip
from assay.nn.data._images import MARGIN, Column, Files, Images, decoded
from assay.nn.data._parquet import Hub, class_names, from_hub, labeled_images, labels, tables
from assay.nn.data._samples import Cut, Facts, Samples, Splits, divide, samples, whereabouts
from assay.nn.data._shifts import Shifts, imagenet_shifts
from assay.nn.data.corruptions import shifts

if TYPE_CHECKING:
    import pyarrow as pa

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet
SIZE = 224
ENDINGS = (".jpeg", ".jpg", ".png", ".bmp", ".webp", ".ppm", ".tif", ".tiff")


def svhn(folder: Path | None, cut: Cut) -> Splits:
    """House numbers (Netzer et al. 2011), cropped to digits, from svhn/*.parquet or the hub."""
    found = tables(folder, "svhn", Hub("ufldl-stanford/svhn", "cropped_digits"), ("train", "test"))
    facts = Facts(tuple("0123456789"), 3 * (0.5,), 3 * (0.5,))
    train, test = (samples(*labeled_images(found, split), facts) for split in ("train", "test"))
    return Splits(*divide(train, cut), test, shifts(test))


def tiny_imagenet(folder: Path | None, cut: Cut) -> Splits:
    """200 classes of ImageNet at 64x64 from tiny-imagenet-200/, tiny-imagenet/*.parquet or the hub, tested on `val`."""
    place = folder / "tiny-imagenet-200" if folder else None
    if place and place.is_dir():
        classes = _classes(place / "train")
        found_files = (_files(place / "train", classes), _tiny_val(place / "val", classes))
        train, val = ((decoded(files), y) for files, y in found_files)
    else:
        found = tables(folder, "tiny-imagenet", Hub("zh-plus/tiny-imagenet"), ("train", "valid"))
        train, val = (labeled_images(found, split) for split in ("train", "valid"))
        classes = class_names(found["train"], "label", 200)
    facts = Facts(classes, MEAN, STD, crop_and_flip)
    test = samples(*val, facts)
    return Splits(*divide(samples(*train, facts), cut), test, shifts(test))


def imagenet(folder: Path | None, cut: Cut) -> Splits:
    """ImageNet (Russakovsky et al. 2015) from imagenet/train/<class>/ and imagenet/val/<class>/ or the hub.

    The test set is `val`. Images are read on demand, at 224x224.
    """
    if folder and (folder / "imagenet").is_dir():
        train, test = _folders(folder / "imagenet" / "train", folder / "imagenet" / "val")
    else:
        lacking = f"no train/ and val/ in {whereabouts(folder, 'imagenet')}"
        found = from_hub(Hub("ILSVRC/imagenet-1k"), ("train", "validation"), lacking)
        facts = Facts(class_names(found["train"], "label", 1000), MEAN, STD, flip)
        train, test = (_mapped(found[split], facts) for split in ("train", "validation"))
    read = imagenet_shifts(folder, test.facts, SIZE) | _imagenet_c(folder, test.facts)
    return Splits(*divide(train, cut), test, shifts(test) | read)


def _imagenet_c(folder: Path | None, facts: Facts) -> Shifts:
    """ImageNet-C (Hendrycks & Dietterich, ICLR 2019): ImageNet-C/<corruption>/<severity>/<class>/ in the folder.

    The corruptions may also be in folders of their groups, such as ImageNet-C/blur/. Its images have 224x224 pixels.
    """
    place = folder / "ImageNet-C" if folder else None
    found = sorted({*place.glob("*/[1-5]"), *place.glob("*/*/[1-5]")}) if place else []
    return {f"imagenet_c/{each.parent.name}_{each.name}": partial(_streamed, each, facts, 1.0) for each in found}


def image_folder(folder: Path | None, cut: Cut) -> Splits:
    """Images of any size in train/<class>/ and test/<class>/ of the folder itself, read on demand at 224x224."""
    if folder is None:
        raise InputError("name the folder that holds train/<class>/ and test/<class>/")
    train, test = _folders(folder / "train", folder / "test")
    return Splits(*divide(train, cut), test, shifts(test))


def _folders(train: Path, test: Path) -> tuple[Samples, Samples]:
    facts = Facts(_classes(train), MEAN, STD, flip)
    if len(facts.classes) < 2:
        raise InputError(f"{train}: one folder, {facts.classes[0]}, and a classifier needs two classes at least")
    return _streamed(train, facts), _streamed(test, facts)


def _mapped(table: pa.Table, facts: Facts) -> Samples:
    x = Images(Column(table["image"]), torch.arange(len(table)), SIZE)
    return samples(x, labels(table), facts)


def _classes(folder: Path) -> tuple[str, ...]:
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder")
    classes = tuple(sorted(place.name for place in folder.iterdir() if place.is_dir()))
    if not classes:
        raise InputError(f"{folder}: no folders; there must be one a class")
    return classes


def _streamed(folder: Path, facts: Facts, margin: float = MARGIN) -> Samples:
    unknown = sorted(set(_classes(folder)) - set(facts.classes))
    if unknown:
        raise InputError(f"{folder / unknown[0]}: a class that the training images do not have")
    files, y = _files(folder, facts.classes)
    return samples(Images(files, torch.arange(len(files)), SIZE, margin), y, facts)


def _files(folder: Path, classes: tuple[str, ...]) -> tuple[Files, Tensor]:
    """All images below <folder>/<class>, by class and name, and their labels."""
    found = [sorted(path for path in (folder / name).rglob("*") if path.suffix.lower() in ENDINGS) for name in classes]
    y = torch.cat([torch.full((len(paths),), k) for k, paths in enumerate(found)])
    if not len(y):
        raise InputError(f"{folder}: no images ({', '.join(ENDINGS)}) in its folders")
    return Files([path for paths in found for path in paths]), y


def _tiny_val(folder: Path, classes: tuple[str, ...]) -> tuple[Files, Tensor]:
    """The validation images of tiny-imagenet-200.zip; a table has their classes."""
    table = folder / "val_annotations.txt"
    if not table.is_file():
        raise InputError(f"{table}: no such file")
    rows = [line.split("\t")[:2] for line in table.read_text().splitlines()]
    for number, (_, name) in enumerate(rows, start=1):
        if name not in classes:
            raise InputError(f"{table}, line {number}: class '{name}' has no training images")
    files = Files([folder / "images" / image for image, _ in rows])
    return files, torch.tensor([classes.index(name) for _, name in rows])
