"""mixup: beyond empirical risk minimization (Zhang, Cisse, Dauphin & Lopez-Paz, ICLR 2018)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from assay._core.arrays import InputError
from assay.nn.batch import Batch, Objective, Task
from assay.nn.losses import cross_entropy


def mixup(*, alpha: float = 0.2) -> Callable[[Task], Objective]:
    """Mix each sample with another of its batch and answer for both: share * CE(y) + (1 - share) * CE(y').

    One share ~ Beta(alpha, alpha) for the batch, partners by permutation; alpha towards 0 is no mixing. zhu2022 prints
    .2, its code has .3. Both are drawn from (torch's seed, epoch, first index), so that they are the same whenever a
    batch is looked at again, as by SAM, and in a resumed run.
    """
    if not alpha > 0:
        raise ValueError(f"alpha must be > 0, got {alpha}")

    def objective(model: nn.Module, batch: Batch) -> Tensor:
        if not batch.x.is_floating_point():
            raise InputError("mixup mixes the numbers of inputs, which words and trees do not have")
        draw = np.random.default_rng([torch.initial_seed(), batch.epoch, int(batch.index[0])])
        share = float(draw.beta(alpha, alpha))
        partner = torch.from_numpy(draw.permutation(len(batch.x))).to(batch.x.device)
        logits = model(share * batch.x + (1 - share) * batch.x[partner])
        return share * cross_entropy(logits, batch.y) + (1 - share) * cross_entropy(logits, batch.y[partner])

    return lambda task: objective
