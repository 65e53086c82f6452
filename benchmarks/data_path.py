"""How much faster images in memory become training batches than sample by sample through a DataLoader.

    python benchmarks/data_path.py

A ratio in one run on one thread, for images of the size of CIFAR; exits with an error where the bound of 5 is missed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable

import torch
import torch.nn.functional as F
from torch import Generator, Tensor
from torch.utils.data import DataLoader, Dataset

from assay.nn.data import Facts, Samples, crop_and_flip, samples, shuffled_batches
from assay.nn.training._hardware import reused_memory

N, BATCH, BOUND = 10_000, 128, 5
FACTS = Facts(tuple("0123456789"), (0.491, 0.482, 0.447), (0.247, 0.243, 0.262), crop_and_flip)


class OneByOne(Dataset[tuple[Tensor, int]]):
    """The usual way: each image cropped, flipped and normalized when it is asked for."""

    def __init__(self, images: Samples):
        self.images = images
        self.mean, self.std = (torch.tensor(x)[:, None, None] for x in (FACTS.mean, FACTS.std))

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, row: int) -> tuple[Tensor, int]:
        padded = F.pad(self.images.x[row], (4, 4, 4, 4))
        down, right, mirrored = torch.randint(9, (3,)).tolist()
        image = padded[:, down : down + 32, right : right + 32]
        image = image.flip(2) if mirrored % 2 else image
        return (image / 255 - self.mean) / self.std, int(self.images.y[row])


def seconds(batches: Iterable[object]) -> float:
    """CPU time of an epoch."""
    start = time.process_time()
    for _ in batches:
        pass
    return time.process_time() - start


if __name__ == "__main__":
    torch.set_num_threads(1)
    generator = Generator().manual_seed(0)
    x = torch.randint(256, (N, 3, 32, 32), generator=generator, dtype=torch.uint8)
    images = samples(x, torch.randint(10, (N,), generator=generator), FACTS)
    ratios = []
    for _ in range(3):
        with reused_memory():  # as in training
            slow = seconds(DataLoader(OneByOne(images), BATCH, shuffle=True))
            fast = seconds(shuffled_batches(images, BATCH, generator, augment=crop_and_flip))
        ratios.append(slow / fast)
        print(f"{N} images: sample by sample {slow:.2f} s, in batches {fast:.2f} s, ratio {slow / fast:.1f}")
    if sorted(ratios)[1] < BOUND:
        sys.exit(f"below the bound of {BOUND}")
