"""CIFAR-10 and CIFAR-100: learning multiple layers of features from tiny images. Alex Krizhevsky; 2009."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from assay._core.arrays import InputError
from assay.nn.data._batches import crop_and_flip
from assay.nn.data._parquet import Hub, class_names, labeled_images, tables
from assay.nn.data._samples import Cut, Facts, Splits, divide, samples
from assay.nn.data._shifts import Shifts, cifar10_shifts, cifar100_shifts
from assay.nn.data.corruptions import shifts

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
Part = tuple[Tensor, Tensor]


def cifar10(folder: Path | None, cut: Cut) -> Splits:
    """CIFAR-10 from cifar-10-batches-bin/, cifar10/*.parquet or the hub."""
    binary = folder / "cifar-10-batches-bin" if folder else None
    if binary and binary.is_dir():
        train = _binary([binary / f"data_batch_{i}.bin" for i in range(1, 6)], 1)
        test = _binary([binary / "test_batch.bin"], 1)
    else:
        found = tables(folder, "cifar10", Hub("uoft-cs/cifar10"), ("train", "test"))
        train, test = (labeled_images(found, split) for split in ("train", "test"))
    facts = Facts(CLASSES, (0.491, 0.482, 0.447), (0.247, 0.243, 0.262), crop_and_flip)
    return _splits(train, test, facts, cut, cifar10_shifts(folder, facts))


def cifar100(folder: Path | None, cut: Cut) -> Splits:
    """CIFAR-100, fine labels, from cifar-100-binary/, cifar100/*.parquet or the hub."""
    binary = folder / "cifar-100-binary" if folder else None
    names = tuple(map(str, range(100)))
    if binary and binary.is_dir():
        train, test = (_binary([binary / f"{split}.bin"], 2) for split in ("train", "test"))
    else:
        found = tables(folder, "cifar100", Hub("uoft-cs/cifar100"), ("train", "test"))
        train, test = (labeled_images(found, split, "fine_label") for split in ("train", "test"))
        names = class_names(found["train"], "fine_label", 100)
    facts = Facts(names, (0.507, 0.487, 0.441), (0.267, 0.256, 0.276), crop_and_flip)
    return _splits(train, test, facts, cut, cifar100_shifts(folder, facts))


def _splits(train: Part, test: Part, facts: Facts, cut: Cut, found: Shifts) -> Splits:
    tested = samples(*test, facts)
    return Splits(*divide(samples(*train, facts), cut), tested, shifts(tested) | found)


def _binary(files: list[Path], n_labels: int) -> Part:
    """Images and their last label from records of `n_labels` bytes and 3x32x32 pixels."""
    parts = []
    for file in files:
        if not file.is_file():
            raise InputError(f"{file}: no such file")
        record = np.fromfile(file, np.uint8)
        if record.size == 0 or record.size % (n_labels + 3072):
            raise InputError(f"{file}: {record.size} bytes are no records of {n_labels + 3072}")
        parts.append(record.reshape(-1, n_labels + 3072))
    records = torch.from_numpy(np.concatenate(parts))
    return records[:, n_labels:].reshape(-1, 3, 32, 32), records[:, n_labels - 1]
