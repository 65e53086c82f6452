"""Mixed precision training (Micikevicius et al., ICLR 2018): float16 with losses scaled up and gradients scaled down.

Without the scale, gradients below 6e-8 would be 0 in float16. A step whose gradients overflow is left out, and the
scale falls by half; after 2,000 steps that do not, it doubles.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor
from torch.amp import GradScaler
from torch.optim import Optimizer

from assay.nn.optim._sam import SAM


def scaled_step(optimizer: Optimizer, closure: Callable[[], Tensor], scaler: GradScaler) -> Tensor:
    """Step along the gradients of a closure that scales its loss before backward and returns it unscaled.

    SAM looks twice, and leaves the step out if either look overflowed.
    """
    if isinstance(optimizer, SAM):
        optimizer.scaler = scaler
        loss = optimizer.step(closure)
    else:
        loss = closure()
        scaler.step(optimizer)
    scaler.update()
    return loss
