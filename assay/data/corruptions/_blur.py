"""Blur: by a lens, by frosted glass, by motion."""

from __future__ import annotations

from math import ceil, pi

import torch
import torch.nn.functional as F
from torch import Generator, Tensor


def defocus_blur(x: Tensor, severity: int, generator: Generator) -> Tensor:
    """Every point spread over a disk."""
    radius, alias = ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1))[severity - 1]
    radius *= enlargement(x)
    reach = ceil(radius) + 1
    offset = torch.arange(-reach, reach + 1, device=x.device)
    disk = (offset[:, None] ** 2 + offset**2 <= radius**2).to(x)
    kernel = smoothed(disk[None, None] / disk.sum(), alias, reach=1)
    padded = F.pad(x, 4 * (reach,), mode="reflect")
    return F.conv2d(padded.flatten(0, 1)[:, None], kernel).view_as(x)


def glass_blur(x: Tensor, severity: int, generator: Generator) -> Tensor:
    """Every pixel read from a close one, between two light blurs.

    The paper exchanges pixels; its code, which made CIFAR-10-C, overwrites one of the two, and so does this.
    """
    sigma, times = ((0.05, 1), (0.25, 1), (0.4, 1), (0.25, 2), (0.4, 2))[severity - 1]
    reach = round(enlargement(x))
    x = smoothed(x, sigma * reach)
    for _ in range(times):
        offsets = torch.randint(-reach, reach, (2, len(x), *x.shape[2:]), generator=generator)
        offsets[:, :, : reach + 1] = 0
        offsets[:, :, :, : reach + 1] = 0
        x = displaced(x, *offsets)
    return smoothed(x, sigma * reach)


def motion_blur(x: Tensor, severity: int, generator: Generator) -> Tensor:
    """A trail behind every point, in a direction within 45 degrees of the horizontal."""
    length, sigma = ((6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5))[severity - 1]
    angle = (torch.rand(len(x), generator=generator) - 0.5) * pi / 2
    return trailed(x, length, sigma, angle)


def zoom_blur(x: Tensor, severity: int, generator: Generator) -> Tensor:
    """The mean of ever closer views, as of a camera that moves ahead."""
    last = (5, 10, 15, 20, 25)[severity - 1]
    views = [zoomed(x, 1 + percent / 100) for percent in range(last + 1)]
    return torch.stack([x, *views]).mean(0)


def enlargement(x: Tensor) -> float:
    """How many times larger than 32 pixels the images are, where they are."""
    return max(1.0, min(x.shape[2:]) / 32)


def smoothed(x: Tensor, sigma: float, *, reach: int | None = None) -> Tensor:
    """Gaussian blur, over four sigma unless said; the edges go on outside."""
    reach = int(4 * sigma + 0.5) if reach is None else reach
    kernel = torch.exp(-(torch.arange(-reach, reach + 1, device=x.device).to(x) ** 2) / (2 * sigma**2))
    kernel /= kernel.sum()
    flat = F.pad(x, 4 * (reach,), mode="replicate").flatten(0, 1)[:, None]
    return F.conv2d(F.conv2d(flat, kernel.view(1, 1, -1, 1)), kernel.view(1, 1, 1, -1)).view_as(x)


def trailed(x: Tensor, length: float, sigma: float, angle: Tensor) -> Tensor:
    """The weighted mean of 2 length + 1 steps along the angle [n] of each image."""
    sigma *= enlargement(x)
    steps = torch.arange(2 * round(length * enlargement(x)) + 1)
    weights = torch.exp(-(steps**2) / (2 * sigma**2))
    weights /= weights.sum()
    down, right = (angle.sin() * steps[:, None]).round(), (angle.cos() * steps[:, None]).round()  # [steps, n]
    parts = zip(weights.tolist(), down.long()[:, :, None, None], right.long()[:, :, None, None], strict=True)
    total = torch.zeros_like(x)
    for weight, d, r in parts:
        total += weight * displaced(x, d, r)
    return total


def displaced(x: Tensor, down: Tensor, right: Tensor) -> Tensor:
    """Every pixel read from so many pixels below and right of it, [n, h, w] or [n, 1, 1]; the edges go on outside."""
    n, c, h, w = x.shape
    row = (torch.arange(h)[:, None] + down).clamp(0, h - 1)
    column = (torch.arange(w) + right).clamp(0, w - 1)
    place = (row * w + column).view(n, 1, h * w).expand(n, c, h * w)
    return x.flatten(2).gather(2, place.to(x.device)).view_as(x)


def zoomed(x: Tensor, factor: float) -> Tensor:
    """The middle of the images, made larger by `factor` to the same size."""
    h, w = x.shape[2:]
    height, width = ceil(h / factor), ceil(w / factor)
    top, left = (h - height) // 2, (w - width) // 2
    middle = x[:, :, top : top + height, left : left + width]
    size = (round(height * factor), round(width * factor))
    large = F.interpolate(middle, size, mode="bilinear", align_corners=True)
    top, left = (large.shape[2] - h) // 2, (large.shape[3] - w) // 2
    return large[:, :, top : top + h, left : left + w]
