"""Benchmarking neural network robustness to common corruptions and perturbations.

Dan Hendrycks, Thomas Dietterich; ICLR 2019.

The fifteen corruptions of CIFAR-10-C with its constants, and for images of 224 pixels and more with those of
ImageNet-C. Each takes images [n, c, h, w] in [0, 1], a severity from 1 to 5 and a generator. There are two differences:
frost is drawn here, not pasted from photographs, and lengths in pixels, which are meant for images of 32 pixels, grow
with larger images up to 224.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
from torch import Generator, Tensor

from assay._core.arrays import InputError
from assay.nn.data._images import Images
from assay.nn.data._samples import Samples
from assay.nn.data.corruptions._blur import defocus_blur, glass_blur, motion_blur, zoom_blur
from assay.nn.data.corruptions._digital import contrast, elastic_transform, jpeg_compression, pixelate
from assay.nn.data.corruptions._noise import gaussian_noise, impulse_noise, shot_noise
from assay.nn.data.corruptions._weather import brightness, fog, frost, snow
from assay.nn.names import SEVERITIES

Corruption = Callable[[Tensor, int, Generator], Tensor]

CORRUPTIONS: dict[str, Corruption] = {
    "gaussian_noise": gaussian_noise,
    "shot_noise": shot_noise,
    "impulse_noise": impulse_noise,
    "defocus_blur": defocus_blur,
    "glass_blur": glass_blur,
    "motion_blur": motion_blur,
    "zoom_blur": zoom_blur,
    "snow": snow,
    "frost": frost,
    "fog": fog,
    "brightness": brightness,
    "contrast": contrast,
    "elastic_transform": elastic_transform,
    "pixelate": pixelate,
    "jpeg_compression": jpeg_compression,
}
CHUNK = 256  # images at a time, to save memory


def corrupted(images: Tensor, corruption: Corruption, severity: int, generator: Generator) -> Tensor:
    """The corrupted images, uint8 [n, c, h, w].

    Like the published code, this truncates values to levels and calculates in float64 unless a corruption uses less:
    float32 would give other levels for values close to one.
    """
    if severity not in SEVERITIES:
        raise InputError(f"severity must be 1 to 5, got {severity}")
    if images.dtype is not torch.uint8 or images.ndim != 4:
        raise InputError(f"corruptions need uint8 images [n, c, h, w], got {images.dtype} {list(images.shape)}")
    parts = [corruption(part.double() / 255, severity, generator) for part in torch.split(images, CHUNK)]
    return torch.cat(parts).clamp(0, 1).mul(255).to(torch.uint8)


def shifts(test: Samples) -> dict[str, Callable[[], Samples]]:
    """Every corruption at every severity, by names like "fog_3"; images that are read on demand are corrupted then."""
    return {
        f"{name}_{severity}": partial(_shift, test, corruption, severity)
        for name, corruption in CORRUPTIONS.items()
        for severity in SEVERITIES
    }


def _shift(test: Samples, corruption: Corruption, severity: int) -> Samples:
    if isinstance(test.x, Images):
        return replace(test, x=replace(test.x, change=partial(_corrupted_image, corruption, severity)))
    if not isinstance(test.x, Tensor):
        raise InputError("corruptions need images in memory, or files of images that are read on demand")
    return replace(test, x=corrupted(test.x, corruption, severity, Generator().manual_seed(severity)))


def _corrupted_image(corruption: Corruption, severity: int, image: Tensor, place: int) -> Tensor:
    """One image, whose place in its source decides the randomness, in whatever order images are read."""
    generator = Generator().manual_seed(len(SEVERITIES) * place + severity)
    return corrupted(image[None], corruption, severity, generator)[0]
