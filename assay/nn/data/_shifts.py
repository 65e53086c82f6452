"""Shifted test sets, from the files that their authors publish.

CIFAR-10-C, CIFAR-100-C: benchmarking neural network robustness to common corruptions and perturbations. Dan Hendrycks,
Thomas Dietterich; ICLR 2019. CIFAR-10.1: do CIFAR-10 classifiers generalize to CIFAR-10? Benjamin Recht, Rebecca
Roelofs, Ludwig Schmidt, Vaishaal Shankar; 2018. ImageNet-v2: do ImageNet classifiers generalize to ImageNet? The same;
ICML 2019. CIFAR-10.2: harder or different? Shangyun Lu, Bradley Nott, Aaron Olson, Alberto Todeschini, Hossein Vahabi,
Yair Carmon, Ludwig Schmidt; 2020.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from assay._core.arrays import InputError
from assay.nn.data._images import Files, Images
from assay.nn.data._samples import Facts, Samples, samples
from assay.nn.names import SEVERITIES

Shifts = dict[str, Callable[[], Samples]]


def cifar10_shifts(folder: Path | None, facts: Facts) -> Shifts:
    """The shifts in CIFAR-10-C/, CIFAR-10.1/ and CIFAR-10.2/ of the folder."""
    if folder is None:
        return {}
    found = _corrupted(folder / "CIFAR-10-C", "cifar10_c", facts)
    if (folder / "CIFAR-10.1").is_dir():
        found["cifar10_1"] = partial(_cifar10_1, folder / "CIFAR-10.1", facts)
    if (folder / "CIFAR-10.2").is_dir():
        found["cifar10_2"] = partial(_cifar10_2, folder / "CIFAR-10.2" / "cifar102_test.npz", facts)
    return found


def cifar100_shifts(folder: Path | None, facts: Facts) -> Shifts:
    """The shifts in CIFAR-100-C/ of the folder."""
    return {} if folder is None else _corrupted(folder / "CIFAR-100-C", "cifar100_c", facts)


def imagenet_shifts(folder: Path | None, facts: Facts, size: int) -> Shifts:
    """The variants of ImageNet-v2 in the folder, such as imagenetv2-matched-frequency-format-val/."""
    found = sorted(folder.glob("imagenetv2-*-format-val")) if folder else []
    names = [place.name.removeprefix("imagenetv2-").removesuffix("-format-val") for place in found]
    return {
        f"imagenet_v2/{name}": partial(_imagenet_v2, place, facts, size)
        for name, place in zip(names, found, strict=True)
    }


def _corrupted(folder: Path, name: str, facts: Facts) -> Shifts:
    """One shift for each corruption and severity: a file has the test images five times, by rising severity."""
    files = sorted(file for file in folder.glob("*.npy") if file.stem != "labels")
    return {
        f"{name}/{file.stem}_{severity}": partial(_severity, file, severity, facts)
        for file in files
        for severity in SEVERITIES
    }


def _severity(file: Path, severity: int, facts: Facts) -> Samples:
    images, labels = _array(file), _array(file.with_name("labels.npy"))
    n = len(images) // len(SEVERITIES)
    if len(images) != len(labels) or len(images) % len(SEVERITIES):
        raise InputError(f"{file}: {len(images)} images for {len(labels)} labels, and not the same set five times")
    rows = slice((severity - 1) * n, severity * n)
    return _from_arrays(images[rows], labels[rows], facts)


def _cifar10_1(folder: Path, facts: Facts) -> Samples:
    return _from_arrays(_array(folder / "cifar10.1_v6_data.npy"), _array(folder / "cifar10.1_v6_labels.npy"), facts)


def _cifar10_2(file: Path, facts: Facts) -> Samples:
    try:
        with np.load(file, allow_pickle=False) as archive:
            return _from_arrays(archive["images"], archive["labels"], facts)
    except (OSError, ValueError, KeyError) as problem:
        raise InputError(f"{file}: cannot be read: {problem}") from problem


def _imagenet_v2(folder: Path, facts: Facts, size: int) -> Samples:
    """Images in folders 0 to 999, the classes in the order of ImageNet's folders."""
    paths = sorted(folder.glob("[0-9]*/*"), key=lambda path: (int(path.parent.name), path.name))
    if not paths:
        raise InputError(f"{folder}: no images in folders 0 to 999")
    y = torch.tensor([int(path.parent.name) for path in paths])
    return samples(Images(Files(paths), torch.arange(len(paths)), size), y, facts)


def _array(file: Path) -> NDArray[np.uint8]:
    try:
        array: NDArray[np.uint8] = np.load(file, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as problem:
        raise InputError(f"{file}: cannot be read: {str(problem).splitlines()[0]}") from problem
    return array


def _from_arrays(images: NDArray[np.uint8], labels: NDArray[np.generic], facts: Facts) -> Samples:
    """Samples of images [n, h, w, c]."""
    x = torch.from_numpy(np.ascontiguousarray(images.transpose(0, 3, 1, 2)))
    return samples(x, torch.from_numpy(np.array(labels)), facts)
