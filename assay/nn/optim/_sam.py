"""Sharpness-aware minimization for efficiently improving generalization (Foret et al., ICLR 2021).

g  = gradient of the loss at w
e  = rho g / ||g||, over all parameters together
w <- what the base optimizer makes of w and the gradient at w + e
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.optim import Optimizer


class SAM(Optimizer):
    """Step `base` along the gradient taken at the worst point within `rho` of the weights.

    `step` takes a closure that zeroes the gradients, computes the loss, calls backward and returns the loss; it is
    called twice, and the first loss is returned. A closure that clips the gradient's norm does no harm in the first
    call, of which only the direction is used. Parameter groups, state and checkpoints are those of `base`, so
    learning-rate schedules may be attached to either. rho = 0 is `base` alone.

    Both calls update the statistics of BatchNorm, as in the code of zhu2022, unless `frozen` is the model whose
    statistics the second call, away from the weights, shall leave as they are.

    >>> model = nn.Linear(3, 2)
    >>> optimizer = SAM(torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), rho=0.05)
    >>> def closure() -> Tensor:
    ...     optimizer.zero_grad()
    ...     loss = model(torch.ones(4, 3)).square().mean()
    ...     loss.backward()
    ...     return loss
    >>> loss = optimizer.step(closure)
    """

    def __init__(self, base: Optimizer, *, rho: float = 0.05, frozen: nn.Module | None = None) -> None:
        if not rho >= 0:
            raise ValueError(f"rho must be >= 0, got {rho}")
        super().__init__(base.param_groups, base.defaults)
        self.base, self.rho, self.frozen = base, rho, frozen
        self._share()

    @torch.no_grad()
    def step(self, closure: Callable[[], Tensor]) -> Tensor:  # type: ignore[override]
        """Climb, look, come back, descend."""
        with torch.enable_grad():
            loss = closure()
        with_gradient = [(p, p.grad) for group in self.param_groups for p in group["params"] if p.grad is not None]
        norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(g) for _, g in with_gradient]))
        before = [p.clone() for p, _ in with_gradient]
        try:
            for p, g in with_gradient:
                p.add_(g * (self.rho / (norm + 1e-12)))
            with frozen_statistics(self.frozen) if self.frozen else nullcontext(), torch.enable_grad():
                closure()
        finally:  # also if interrupted or out of memory: whoever goes on, or saves, shall find w and not w + e
            for (p, _), w in zip(with_gradient, before, strict=True):
                p.copy_(w)
        self.base.step()
        return loss

    def state_dict(self) -> dict[str, Any]:
        """The base optimizer's."""
        return self.base.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the base optimizer's."""
        self.base.load_state_dict(state_dict)
        self._share()

    def _share(self) -> None:
        self.param_groups, self.state = self.base.param_groups, self.base.state


@contextmanager
def frozen_statistics(model: nn.Module) -> Iterator[None]:
    """Within it, BatchNorm in train mode normalizes by the batch as ever but leaves its running statistics alone."""
    norms = [m for m in model.modules() if isinstance(m, _BatchNorm) and m.track_running_stats]
    try:
        for m in norms:
            m.track_running_stats = False
        yield
    finally:
        for m in norms:
            m.track_running_stats = True
