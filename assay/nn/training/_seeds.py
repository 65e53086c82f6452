"""What the seed of a run decides."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from assay.nn.data import Samples, batches
from assay.nn.networks import Factory, build


def seed_of(*numbers: int) -> int:
    """One seed from several numbers, such as the seed of a run and an epoch; zeros at the end change nothing."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> 1)


def initialized(factory: Factory, samples: Samples, *, seed: int) -> nn.Module:
    """A network for such samples, its weights drawn from the seed alone."""
    some = next(batches(samples[torch.arange(1)], 1)).x
    with torch.random.fork_rng([]):
        torch.manual_seed(seed_of(seed))
        return build(factory, samples.n_classes, some, samples.facts.vectors)
