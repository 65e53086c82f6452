"""Digital corruptions: contrast, elastic transform, fewer pixels, compression."""

from __future__ import annotations

import io

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Generator, Tensor

from assay._core.arrays import InputError
from assay.nn.data._images import opened, pixels
from assay.nn.data.corruptions._blur import smoothed
from assay.nn.data.corruptions._constants import constant, is_large


def contrast(x: Tensor, severity: int, generator: Generator) -> Tensor:
    """Move every channel toward its mean."""
    kept = constant(x, severity, (0.75, 0.5, 0.4, 0.3, 0.15), (0.4, 0.3, 0.2, 0.1, 0.05))
    mean = x.mean((2, 3), keepdim=True)
    return mean + kept * (x - mean)


def elastic_transform(x: Tensor, severity: int, generator: Generator) -> Tensor:
    """Apply an affine map that moves three points at random, then move every pixel a little, similar to its neighbors.

    As published, the first step reflects the image at the centers of its outermost pixels and the second at their
    edges, and both results are float32.
    """
    strength, sigma, affine = constant(
        x,
        severity,
        ((0, 0, 0.08), (0.05, 0.2, 0.07), (0.08, 0.06, 0.06), (0.1, 0.04, 0.05), (0.1, 0.03, 0.03)),
        ((2, 0.7, 0.1), (2, 0.08, 0.2), (0.05, 0.01, 0.02), (0.07, 0.01, 0.02), (0.12, 0.01, 0.02)),
    )
    n, _, h, w = x.shape
    side = 244 if is_large(x) else min(h, w)  # 244: so it is in the code that made ImageNet-C
    size = torch.tensor((w, h))
    places = _affine_places(n, h, w, affine * side, generator)
    grid = (2 * places / (size - 1) - 1).to(x)
    x = F.grid_sample(x, grid, padding_mode="reflection", align_corners=True).float().double()
    places = _pixels(h, w) + strength * side * _displacements(n, h, w, sigma * side, generator)
    grid = ((2 * places + 1) / size - 1).to(x)
    return F.grid_sample(x, grid, padding_mode="reflection", align_corners=False).float()


def pixelate(x: Tensor, severity: int, generator: Generator) -> Tensor:
    """Shrink the images, then enlarge them to the original size."""
    kept = constant(x, severity, (0.95, 0.9, 0.85, 0.75, 0.65), (0.6, 0.5, 0.4, 0.3, 0.25))
    levels = x * 255
    for axis in (3, 2):  # Pillow rounds after the rows and after the columns
        size = x.shape[axis]
        few = max(1, int(size * kept))
        both = _box(size, few) @ _box(few, size)
        levels = (levels.movedim(axis, 3) @ both.to(x)).add(0.5).floor().movedim(3, axis)
    return levels / 255


def jpeg_compression(x: Tensor, severity: int, generator: Generator) -> Tensor:
    """Write the images as JPEG of low quality with Pillow, and read them."""
    quality = constant(x, severity, (80, 65, 58, 50, 40), (25, 18, 15, 10, 7))
    if x.shape[1] not in (1, 3):
        raise InputError(f"JPEG holds 1 or 3 channels, the images have {x.shape[1]}")
    images = x.mul(255).round().to(torch.uint8).permute(0, 2, 3, 1).cpu().numpy()
    return torch.stack([_through_jpeg(image, quality) for image in images]).to(x) / 255


def _through_jpeg(image: NDArray[np.uint8], quality: int) -> Tensor:
    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(image.squeeze(2) if image.shape[2] == 1 else image).save(stream, "JPEG", quality=quality)
    return pixels(opened("JPEG", stream.getvalue()))


def _box(size: int, other: int) -> Tensor:
    """The matrix [size, other] that resizes rows: a new value is the mean of the old ones whose center it covers."""
    ratio = size / other
    middle = (torch.arange(other) + 0.5) * ratio
    distance = (torch.arange(size)[:, None] + 0.5 - middle) / max(ratio, 1)
    weight = ((distance > -0.5) & (distance <= 0.5)).float()
    return weight / weight.sum(0)


def _affine_places(n: int, h: int, w: int, reach: float, generator: Generator) -> Tensor:
    """The source of each pixel [n, h, w, 2] as (x, y), if three points of a square move by up to `reach`."""
    middle, side = torch.tensor((w // 2, h // 2)), min(h, w) // 3
    points = (middle + side * torch.tensor(((1, 1), (1, -1), (-1, -1)))).double()
    moved = points + reach * _uniform(n, 3, 2, generator=generator)
    affine = torch.linalg.solve(F.pad(moved, (0, 1), value=1), points)  # [n, 3, 2]
    places: Tensor = F.pad(_pixels(h, w), (0, 1), value=1) @ affine[:, None]
    return places


def _displacements(n: int, h: int, w: int, sigma: float, generator: Generator) -> Tensor:
    """Noise [n, h, w, 2] in [-1, 1], smoothed up to three sigma; scipy's reflection repeats the edge."""
    return smoothed(_uniform(n, 2, h, w, generator=generator), sigma, mode="reflect", truncate=3).permute(0, 2, 3, 1)


def _uniform(*shape: int, generator: Generator) -> Tensor:
    return 2 * torch.rand(shape, generator=generator, dtype=torch.float64) - 1


def _pixels(h: int, w: int) -> Tensor:
    """Coordinates of pixels [h, w, 2] as (x, y)."""
    y, x = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
    return torch.stack([x, y], 2).double()
