"""What happens to images on the way to a file."""

from __future__ import annotations

import io

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Generator, Tensor

from assay.arrays import InputError
from assay.data._images import opened, pixels
from assay.data.corruptions._blur import smoothed


def contrast(x: Tensor, severity: int, generator: Generator) -> Tensor:
    """Every channel drawn to its mean."""
    kept = (0.75, 0.5, 0.4, 0.3, 0.15)[severity - 1]
    mean = x.mean((2, 3), keepdim=True)
    return mean + kept * (x - mean)


def elastic_transform(x: Tensor, severity: int, generator: Generator) -> Tensor:
    """An affine map that moves three points at random, then every pixel moved a little like its neighbors."""
    strength, sigma, affine = (
        (0, 0, 0.08),
        (0.05, 0.2, 0.07),
        (0.08, 0.06, 0.06),
        (0.1, 0.04, 0.05),
        (0.1, 0.03, 0.03),
    )[severity - 1]
    n, _, h, w = x.shape
    side = min(h, w)
    moved = _affine_grid(n, h, w, affine * side, generator).to(x)
    if strength:
        field = 2 * torch.rand(n, 2, h, w, generator=generator) - 1
        moved = moved + strength * side * smoothed(field, sigma * side).permute(0, 2, 3, 1).to(x)
    grid = 2 * moved / torch.tensor((w - 1, h - 1)).to(x) - 1
    return F.grid_sample(x, grid, mode="bilinear", padding_mode="reflection", align_corners=True)


def pixelate(x: Tensor, severity: int, generator: Generator) -> Tensor:
    """Fewer pixels, then as many as before."""
    kept = (0.95, 0.9, 0.85, 0.75, 0.65)[severity - 1]
    for axis in (2, 3):
        size = x.shape[axis]
        few = max(1, int(size * kept))
        both = _box(size, few) @ _box(few, size)
        x = (x.movedim(axis, 3) @ both.to(x)).movedim(3, axis)
    return x


def jpeg_compression(x: Tensor, severity: int, generator: Generator) -> Tensor:
    """Written as JPEG of low quality by Pillow, and read again."""
    quality = (80, 65, 58, 50, 40)[severity - 1]
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
    """The matrix [size, other] that resizes rows, each new value the mean of the old ones whose middle it covers."""
    ratio = size / other
    middle = (torch.arange(other) + 0.5) * ratio
    distance = (torch.arange(size)[:, None] + 0.5 - middle) / max(ratio, 1)
    weight = ((distance > -0.5) & (distance <= 0.5)).float()
    return weight / weight.sum(0)


def _affine_grid(n: int, h: int, w: int, reach: float, generator: Generator) -> Tensor:
    """Where each pixel comes from [n, h, w, 2] as (x, y), if three points of a square are moved by up to `reach`."""
    middle, side = torch.tensor((w // 2, h // 2)).float(), min(h, w) // 3
    points = middle + side * torch.tensor(((1.0, 1.0), (1.0, -1.0), (-1.0, -1.0)))
    sources = points + reach * (2 * torch.rand(n, 3, 2, generator=generator) - 1)
    ones = torch.ones(3, 1)
    affine = torch.linalg.solve(torch.cat([points, ones], 1), sources)  # [n, 3, 2]
    y, x = torch.meshgrid(torch.arange(h).float(), torch.arange(w).float(), indexing="ij")
    grid: Tensor = torch.stack([x, y, torch.ones_like(x)], 2) @ affine[:, None]
    return grid
