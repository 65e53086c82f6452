"""mixup: beyond empirical risk minimization (Zhang, Cisse, Dauphin & Lopez-Paz, ICLR 2018)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from assay._core.arrays import InputError
from assay.nn.losses import cross_entropy
from assay.nn.objectives._objective import Batch, Objective, Task


def mixup(*, alpha: float = 0.2) -> Callable[[Task], Objective]:
    """Mix each sample with another of its batch, with the loss of both: share * CE(y) + (1 - share) * CE(y').

    The batch has one share ~ Beta(alpha, alpha) and partners by permutation; alpha towards 0 is no mixing. zhu2022
    prints .2, its code has .3. (torch's seed, epoch, first index) decide share and partners, so that a second
    evaluation of the batch, as by SAM, and a resumed run have the same.
    """
    if not alpha > 0:
        raise ValueError(f"alpha must be > 0, got {alpha}")

    def objective(model: nn.Module, batch: Batch) -> Tensor:
        if not batch.x.is_floating_point():
            raise InputError("mixup mixes the numbers of inputs, which words and trees do not have")
        draw = np.random.default_rng([torch.initial_seed(), batch.known_epoch("mixup"), int(batch.index[0])])
        share = float(draw.beta(alpha, alpha))
        partner = torch.from_numpy(draw.permutation(len(batch.x))).to(batch.x.device)
        logits = model(share * batch.x + (1 - share) * batch.x[partner])
        return share * cross_entropy(logits, batch.y) + (1 - share) * cross_entropy(logits, batch.y[partner])

    return lambda task: objective
