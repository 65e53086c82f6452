"""Blur by a lens, by frosted glass, and by motion."""

from __future__ import annotations

from math import ceil, pi

import numpy as np
import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from assay.nn.data.corruptions._constants import constant, enlargement, is_large


def defocus_blur(x: Tensor, severity: int, generator: Generator) -> Tensor:
    """Spread every point over a disk."""
    from scipy.ndimage import correlate

    radius, alias = constant(
        x,
        severity,
        ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1)),
        ((3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5)),
    )
    radius *= enlargement(x)
    edge = 2 if radius > 8 else 1  # pixels that soften the edge of the disk
    reach = ceil(radius) + edge
    offset = torch.arange(-reach, reach + 1, device=x.device)
    disk = (offset[:, None] ** 2 + offset**2 <= radius**2).float()
    near = torch.exp(-(torch.arange(-edge, edge + 1).to(x) ** 2) / (2 * alias**2))
    near = (near / near.sum()).float()  # as in OpenCV: in float64, a flat area could fall below its level
    kernel = F.conv2d((disk / disk.sum())[None, None], (near[:, None] * near)[None, None], padding=edge)
    if is_large(x):  # of which torch would make a copy for each of up to 625 neighbors
        return torch.from_numpy(correlate(x.cpu().numpy(), kernel.double().numpy(), mode="mirror")).to(x)
    padded = F.pad(x, 4 * (reach,), mode="reflect")
    return F.conv2d(padded.flatten(0, 1)[:, None], kernel.to(x)).view_as(x)


def glass_blur(x: Tensor, severity: int, generator: Generator) -> Tensor:
    """Read every pixel from a close one, between two light blurs.

    The paper exchanges pixels; its code, which made CIFAR-10-C, overwrites one of the two. This follows the code.
    """
    sigma, reach, times = constant(
        x,
        severity,
        ((0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2)),
        ((0.7, 1, 2), (0.9, 2, 1), (1.0, 2, 3), (1.1, 3, 2), (1.5, 4, 2)),
    )
    larger = round(enlargement(x))
    sigma, reach = sigma * larger, reach * larger
    x = smoothed(x, sigma).mul(255).floor().div(255)
    for _ in range(times):
        offsets = torch.randint(-reach, reach, (2, len(x), *x.shape[2:]), generator=generator)
        offsets[:, :, : reach + 1] = 0
        offsets[:, :, :, : reach + 1] = 0
        if is_large(x):  # whose last rows and columns the code leaves out too
            offsets[:, :, x.shape[2] - reach + 1 :] = 0
            offsets[:, :, :, x.shape[3] - reach + 1 :] = 0
        x = displaced(x, *offsets)
    return smoothed(x, sigma)


def motion_blur(x: Tensor, severity: int, generator: Generator) -> Tensor:
    """A trail behind every point, in a direction within 45 degrees of the horizontal."""
    length, sigma = constant(
        x, severity, ((6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5)), ((10, 3), (15, 5), (15, 8), (15, 12), (20, 15))
    )
    angle = (torch.rand(len(x), generator=generator) - 0.5) * pi / 2
    return trailed(x, length, sigma, angle)


def zoom_blur(x: Tensor, severity: int, generator: Generator) -> Tensor:
    """The mean of ever closer views, as of a camera that moves forward."""
    x = x.float()
    # Not 1 + i / 100: numpy's steps go one beyond 1.05 and 1.10, and a little beyond 1.25, which is one pixel more.
    end, step = constant(
        x,
        severity,
        ((1.06, 0.01), (1.11, 0.01), (1.16, 0.01), (1.21, 0.01), (1.26, 0.01)),
        ((1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03)),
    )
    factors = np.arange(1, end, step).tolist()
    views = [zoomed(x.double(), factor).float() for factor in factors]
    return (x + sum(views)) / (len(views) + 1)


def smoothed(x: Tensor, sigma: float, *, mode: str = "nearest", truncate: float = 4.0) -> Tensor:
    """Gaussian blur of images up to `truncate` sigma; scipy's `mode` extends them beyond the edges."""
    from scipy.ndimage import gaussian_filter

    return torch.from_numpy(gaussian_filter(x.cpu().numpy(), (0, 0, sigma, sigma), mode=mode, truncate=truncate)).to(x)


def trailed(x: Tensor, length: float, sigma: float, angle: Tensor) -> Tensor:
    """The weighted mean of 2 length + 1 steps along the angle [n] of each image, rounded as in ImageMagick."""
    sigma *= enlargement(x)
    steps = torch.arange(2 * round(length * enlargement(x)) + 1)
    weights = torch.exp(-(steps**2) / (2 * sigma**2))
    weights /= weights.sum()
    down, right = (angle.sin() * steps[:, None]).round(), (angle.cos() * steps[:, None]).round()  # [steps, n]
    parts = zip(weights.tolist(), down.long()[:, :, None, None], right.long()[:, :, None, None], strict=True)
    total = torch.zeros_like(x)
    for weight, d, r in parts:
        total += weight * displaced(x, d, r)
    return total.mul(255).add(0.5).floor().div(255)


def displaced(x: Tensor, down: Tensor, right: Tensor) -> Tensor:
    """Read every pixel from so many pixels below and right of it, [n, h, w] or [n, 1, 1]; edge pixels are repeated."""
    n, c, h, w = x.shape
    row = (torch.arange(h)[:, None] + down).clamp(0, h - 1)
    column = (torch.arange(w) + right).clamp(0, w - 1)
    place = (row * w + column).view(n, 1, h * w).expand(n, c, h * w)
    return x.flatten(2).gather(2, place.to(x.device)).view_as(x)


def zoomed(x: Tensor, factor: float) -> Tensor:
    """The middle of the images, enlarged by `factor` to the original size."""
    h, w = x.shape[2:]
    height, width = ceil(h / factor), ceil(w / factor)
    top, left = (h - height) // 2, (w - width) // 2
    middle = x[:, :, top : top + height, left : left + width]
    size = (round(height * factor), round(width * factor))
    large = F.interpolate(middle, size, mode="bilinear", align_corners=True)
    top, left = (large.shape[2] - h) // 2, (large.shape[3] - w) // 2
    return large[:, :, top : top + h, left : left + w]
