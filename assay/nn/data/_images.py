"""Images from encoded bytes (PNG, JPEG and other formats of Pillow): all in memory, or one by one on demand."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import exp, log
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
import torch
from torch import Generator, Tensor

from assay._core.arrays import InputError

if TYPE_CHECKING:
    import pyarrow as pa
    from PIL.Image import Image

Box = tuple[float, float, float, float]
"""Left, upper, right and lower edge in pixels."""

MARGIN = 224 / 256  # share of the shorter side in the middle crop, usual for ImageNet


class Source(Protocol):
    """Encoded images, each with a name for messages."""

    def __len__(self) -> int: ...

    def __call__(self, place: int) -> tuple[str, bytes]: ...


@dataclass(frozen=True)
class Files:
    """Images in files."""

    paths: Sequence[Path]

    def __len__(self) -> int:
        return len(self.paths)

    def __call__(self, place: int) -> tuple[str, bytes]:
        return str(self.paths[place]), self.paths[place].read_bytes()


@dataclass(frozen=True)
class Column:
    """Images in a column of {bytes, path}."""

    images: pa.ChunkedArray

    def __len__(self) -> int:
        return len(self.images)

    def __call__(self, place: int) -> tuple[str, bytes]:
        image = self.images[place].as_py()
        if image is None or image["bytes"] is None:
            raise InputError(f"row {place}: no image")
        return f"row {place}", image["bytes"]


@dataclass(frozen=True)
class Images:
    """Images that are read on demand, as uint8 [3, size, size]."""

    source: Source
    places: Tensor  # [n] int64, in the source
    size: int
    margin: float = MARGIN  # 1 if images were cropped before, as those of ImageNet-C
    change: Callable[[Tensor, int], Tensor] | None = None  # (an image as it was read, its place in the source)

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, rows: Tensor) -> Images:
        return replace(self, places=self.places[rows])

    def read(self, row: int, seed: int | None) -> Tensor:
        """The middle of an image, or with a seed a random part of it, resized."""
        place = int(self.places[row])
        image = opened(*self.source(place)).convert("RGB")
        box = _middle(image, self.margin) if seed is None else _part(image, Generator().manual_seed(seed))
        read = pixels(image.resize((self.size, self.size), resample=2, box=box))  # 2: bilinear
        return read if self.change is None else self.change(read, place)


def opened(name: str, encoded: bytes) -> Image:
    """The decoded image; the name is for the message if it is damaged."""
    from PIL import Image, UnidentifiedImageError

    try:
        image = Image.open(io.BytesIO(encoded))
        image.load()
    except (UnidentifiedImageError, OSError, SyntaxError) as problem:
        raise InputError(f"{name}: cannot be read as an image: {str(problem).splitlines()[0]}") from problem
    return image


def pixels(image: Image) -> Tensor:
    """Pixels uint8 [c, h, w]: a gray image has one channel, any other three."""
    array = np.array(image if image.mode in ("L", "RGB") else image.convert("RGB"))
    return torch.from_numpy(array if array.ndim == 3 else array[:, :, None]).permute(2, 0, 1)


def decoded(source: Source) -> Tensor:
    """All images, uint8 [n, c, h, w]; they must have one size, and gray images among colored ones become colored."""
    if not len(source):
        raise InputError("no images")
    images = [pixels(opened(*source(place))) for place in range(len(source))]
    channels, (height, width) = max(len(image) for image in images), images[0].shape[1:]
    for place, image in enumerate(images):
        if image.shape[1:] != (height, width):
            here, first = list(image.shape[1:]), [height, width]
            raise InputError(f"{source(place)[0]}: an image of {here} pixels, the first has {first}")
    return torch.stack([image.expand(channels, height, width) for image in images])


def _middle(image: Image, margin: float) -> Box:
    side = margin * min(image.size)
    left, upper = (image.width - side) / 2, (image.height - side) / 2
    return left, upper, left + side, upper + side


def _part(image: Image, generator: Generator) -> Box:
    """A random part of 8 to 100 % of the area and sides 3:4 to 4:3, cut to the image (Szegedy et al., CVPR 2015)."""
    area, ratio, across, down = torch.rand(4, generator=generator).tolist()
    area, ratio = (0.08 + 0.92 * area) * image.width * image.height, exp((2 * ratio - 1) * log(4 / 3))
    width, height = min((area * ratio) ** 0.5, image.width), min((area / ratio) ** 0.5, image.height)
    left, upper = across * (image.width - width), down * (image.height - height)
    return left, upper, left + width, upper + height
