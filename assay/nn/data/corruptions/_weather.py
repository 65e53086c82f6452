"""Weather: snow, frost, fog and brightness."""

from __future__ import annotations

from math import pi

import torch
from torch import Generator, Tensor

from assay.nn.data.corruptions._blur import trailed, zoomed
from assay.nn.data.corruptions._constants import constant


def snow(x: Tensor, severity: int, generator: Generator) -> Tensor:
    """Falling flakes over a paler image."""
    loc, scale, zoom, threshold, length, sigma, kept = constant(
        x,
        severity,
        (
            (0.1, 0.2, 1, 0.6, 8, 3, 0.95),
            (0.1, 0.2, 1, 0.5, 10, 4, 0.9),
            (0.15, 0.3, 1.75, 0.55, 10, 4, 0.9),
            (0.25, 0.3, 2.25, 0.6, 12, 6, 0.85),
            (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8),
        ),
        (
            (0.1, 0.3, 3, 0.5, 10, 4, 0.8),
            (0.2, 0.3, 2, 0.5, 12, 4, 0.7),
            (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
            (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
            (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
        ),
    )
    n, _, h, w = x.shape
    x = x.float()
    layer = zoomed(loc + scale * torch.randn(n, 1, h, w, generator=generator).double(), zoom)
    layer = torch.where(layer < threshold, 0, layer).clamp(0, 1).mul(255).floor().div(255)
    layer = trailed(layer, length, sigma, -(0.25 + torch.rand(n, generator=generator) / 2) * pi).to(x.device)
    pale = torch.maximum(x, 1.5 * _gray(x) + 0.5)
    return kept * x + (1 - kept) * pale + layer + layer.flip(2, 3)


def frost(x: Tensor, severity: int, generator: Generator) -> Tensor:
    """Ice on a window. Its authors paste photographs; here pale blue veins of ice are drawn from two clouds."""
    kept, ice = constant(
        x,
        severity,
        ((1, 0.2), (1, 0.3), (0.9, 0.4), (0.85, 0.4), (0.75, 0.45)),
        ((1, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75)),
    )
    n, c, h, w = x.shape
    clouds = plasma(2 * n, max(h, w), 2.0, generator)[:, None, :h, :w]
    veins = (1 - 4 * (clouds[:n] - clouds[n:]).abs()).clamp(0, 1)  # where two surfaces meet
    tint = torch.tensor((0.8, 0.9, 1.0)) if c == 3 else torch.ones(c)
    layer = (0.35 + 0.65 * veins) * tint[:, None, None]
    return kept * x + ice * layer.to(x)


def fog(x: Tensor, severity: int, generator: Generator) -> Tensor:
    """A bright cloud in front of the image; the maximum of the image stays the same."""
    density, decay = constant(
        x,
        severity,
        ((0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75)),
        ((1.5, 2), (2, 2), (2.5, 1.7), (2.5, 1.5), (3, 1.4)),
    )
    n, _, h, w = x.shape
    cloud = plasma(n, max(h, w), decay, generator)[:, None, :h, :w].to(x)
    brightest = x.amax((1, 2, 3), keepdim=True)
    return (x + density * cloud) * brightest / (brightest + density)


def brightness(x: Tensor, severity: int, generator: Generator) -> Tensor:
    """More light at the same hue and saturation: a higher value in HSV."""
    more = constant(x, severity, (0.05, 0.1, 0.15, 0.2, 0.3), (0.1, 0.2, 0.3, 0.4, 0.5))
    value = x.amax(1, keepdim=True)
    raised = (value + more).clamp(max=1)
    return torch.where(value > 0, raised * (1 - (value - x) / value.clamp(min=1e-6)), raised)


def plasma(n: int, side: int, decay: float, generator: Generator) -> Tensor:
    """Clouds [n, s, s] in [0, 1], s the next power of two: midpoints of ever finer squares move by ever less.

    "Computer rendering of stochastic models", Alain Fournier, Don Fussell, Loren Carpenter; CACM 1982; on a torus.
    """
    size = 1 << (side - 1).bit_length()
    cloud = torch.zeros(n, size, size)
    step, wobble = size, 1.0
    while step > 1:
        half = step // 2
        corners = cloud[:, ::step, ::step]
        rows = corners + corners.roll(-1, 2)
        cloud[:, half::step, half::step] = (rows + rows.roll(-1, 1)) / 4 + _wobble(corners, wobble, generator)
        middles = cloud[:, half::step, half::step]
        above = corners + corners.roll(-1, 2) + middles + middles.roll(1, 1)
        beside = corners + corners.roll(-1, 1) + middles + middles.roll(1, 2)
        cloud[:, ::step, half::step] = above / 4 + _wobble(corners, wobble, generator)
        cloud[:, half::step, ::step] = beside / 4 + _wobble(corners, wobble, generator)
        step, wobble = half, wobble / decay**2
    low, high = cloud.amin((1, 2), keepdim=True), cloud.amax((1, 2), keepdim=True)
    return (cloud - low) / (high - low)


def _wobble(like: Tensor, size: float, generator: Generator) -> Tensor:
    return size * (2 * torch.rand(like.shape, generator=generator) - 1)


def _gray(x: Tensor) -> Tensor:
    """Luma of three channels; the mean of any other number."""
    weight = torch.tensor((0.299, 0.587, 0.114)) if x.shape[1] == 3 else torch.full((x.shape[1],), 1 / x.shape[1])
    return torch.einsum("nchw,c->nhw", x, weight.to(x))[:, None]
