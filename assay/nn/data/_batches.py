"""Batches of samples, augmented and normalized on the device that trains."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import torch
import torch.nn.functional as F
from torch import Generator, Tensor
from torch.utils.data import DataLoader, Dataset

from assay._core.arrays import InputError
from assay.nn.data._samples import Augment, Samples, Stored
from assay.nn.objectives import Batch

Sampler = Callable[[Tensor, Tensor, Generator], Tensor]
"""(rows of a batch, labels of the whole set, randomness) -> the rows to load, for example each with a partner."""


def batches(
    samples: Samples, batch_size: int, *, device: torch.device | str = "cpu", workers: int = 0
) -> Iterator[Batch]:
    """All samples in order, without augmentation."""
    parts = torch.split(torch.arange(len(samples)), batch_size)
    for rows, x in zip(parts, _read(samples.x, parts, None, workers), strict=True):
        yield Batch(_ready(x.to(device), samples), samples.y[rows].to(device), rows)


def batch_sizes(n_samples: int, batch_size: int) -> list[int]:
    """Samples in each batch of an epoch; a single last one joins the batch before: BatchNorm has no variance of it.

    >>> batch_sizes(8, 3), batch_sizes(7, 3), batch_sizes(2, 1)
    ([3, 3, 2], [3, 4], [1, 1])
    """
    whole, rest = divmod(n_samples, batch_size)
    if whole and rest == 1:
        return [batch_size] * (whole - 1) + [batch_size + 1]
    return [batch_size] * whole + [rest] * (rest > 0)


def shuffled_batches(
    samples: Samples,
    batch_size: int,
    generator: Generator,
    *,
    epoch: int = 0,
    augment: Augment | None = None,
    sampler: Sampler | None = None,
    rank: int = 0,
    device: torch.device | str = "cpu",
    workers: int = 0,
) -> Iterator[Batch]:
    """All samples once in random order, in batches of `batch_sizes`.

    The CPU generator alone decides the batches, whatever the device or the workers. Processes that share the batches
    have the same order, and by their `rank` different partners, crops and flips.
    """
    order = torch.randperm(len(samples), generator=generator)
    if rank:
        generator = Generator().manual_seed(int(torch.randint(2**62, (rank,), generator=generator)[-1]))
    parts: Sequence[Tensor] = torch.split(order, batch_sizes(len(samples), batch_size))
    if sampler is not None:
        parts = [sampler(rows, samples.y, generator) for rows in parts]
    seed = None if augment is None else int(torch.randint(2**62, (), generator=generator))
    for rows, x in zip(parts, _read(samples.x, parts, seed, workers), strict=True):
        x = x.to(device, non_blocking=True)
        x = _ready(x if augment is None else augment(x, generator), samples)
        yield Batch(x, samples.y[rows].to(device, non_blocking=True), rows, epoch)


def crop_and_flip(images: Tensor, generator: Generator, pad: int = 4) -> Tensor:
    """Move each image by up to `pad` pixels in both directions, fill with black, and mirror half of them."""
    n, c, h, w = images.shape
    height, width = h + 2 * pad, w + 2 * pad
    down, right = torch.randint(2 * pad + 1, (2, n, 1, 1), generator=generator).to(images.device)
    mirrored = torch.randint(2, (n, 1, 1), generator=generator).to(images.device)
    right = torch.where(mirrored == 1, 2 * pad - right, right)  # the place before it is mirrored
    image, channel, row = (torch.arange(size, device=images.device) for size in (n, c, h))
    # The start of each row of each crop among all pixels: copying rows is faster than gathering pixels.
    place = ((image[:, None, None] * c + channel[:, None]) * height + down + row) * width + right  # [n, c, h]
    pixels = F.pad(images, (pad, pad, pad, pad)).flatten()
    cropped = pixels.unfold(0, w, 1).index_select(0, place.flatten()).view(n, c, h, w)
    chosen = mirrored.flatten().nonzero().flatten()
    both = torch.cat([cropped, cropped.index_select(0, chosen).flip(3)])
    # Selecting among both is faster than writing the mirrored images back.
    return both.index_select(0, image.index_copy(0, chosen, torch.arange(n, len(both), device=images.device)))


def flip(images: Tensor, generator: Generator) -> Tensor:
    """Mirror half of the images."""
    mirrored = torch.randint(2, (len(images), 1, 1, 1), generator=generator).bool().to(images.device)
    return torch.where(mirrored, images.flip(3), images)


def normalized(images: Tensor, mean: Sequence[float], std: Sequence[float]) -> Tensor:
    """(pixels in [0, 1] - mean) / std by channel, float32, of uint8 images [n, c, h, w]."""
    mean_, std_ = (torch.tensor(x, device=images.device)[:, None, None] for x in (mean, std))
    return images.float().mul_(1 / (255 * std_)).sub_(mean_ / std_)


def _ready(x: Tensor, samples: Samples) -> Tensor:
    return normalized(x, samples.facts.mean, samples.facts.std) if samples.facts.mean else x


def _read(x: Tensor | Stored, parts: Sequence[Tensor], seed: int | None, workers: int) -> Iterator[Tensor]:
    """The inputs of each part: from memory, or by worker processes."""
    if isinstance(x, Tensor):
        return (x.index_select(0, rows.to(x.device)) for rows in parts)
    seeded = [[(row, None if seed is None else seed + row) for row in rows.tolist()] for rows in parts]
    # Without a generator, DataLoader draws from torch's global one.
    return _with_short_errors(DataLoader(_Reading(x), batch_sampler=seeded, num_workers=workers, generator=Generator()))


def _with_short_errors(loaded: Iterable[Tensor]) -> Iterator[Tensor]:
    """The loaded tensors; an error of a worker, whose text is a whole traceback, keeps only its message."""
    try:
        yield from loaded
    except InputError as problem:
        message = str(problem).splitlines()[-1]
        raise InputError(message.removeprefix(f"{InputError.__module__}.{InputError.__name__}: ")) from problem


class _Reading(Dataset[Tensor]):
    """Stored inputs as a dataset for DataLoader."""

    def __init__(self, stored: Stored):
        self.stored = stored

    def __getitem__(self, item: tuple[int, int | None]) -> Tensor:
        return self.stored.read(*item)
