"""Sharpness-aware minimization for efficiently improving generalization (Foret et al., ICLR 2021).

g  = gradient of the loss at w
e  = rho g / ||g||, over all parameters together
w <- what the base optimizer makes of w and the gradient at w + e

Where gradients are accumulated over several batches, each batch climbs by its own g, as on several devices in the
paper (m-sharpness).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.amp import GradScaler
from torch.nn.modules.batchnorm import _BatchNorm
from torch.optim import Optimizer

Gradients = list[Tensor | None]


class SAM(Optimizer):
    """Step `base` along the gradient taken at the worst point within `rho` of the weights.

    `base` is an optimizer, or parameters with the class of one and its values: `SAM(model.parameters(), SGD, lr=0.1)`.

    `step` takes a closure that zeroes the gradients, computes the loss, calls backward and returns the loss; it is
    called twice, and the first loss is returned. A closure that clips the gradient's norm does no harm in the first
    call, of which only the direction is used. Where no closure can be had, or where gradients are accumulated, look
    again `with optimizer.climb():` after each backward, and then call `step()`.

    Parameter groups, state and checkpoints are those of `base`, so learning-rate schedules may be attached to either.
    rho = 0 is `base` alone. With a `scaler` (float16) the closure scales its loss; gradients are unscaled before the
    step, which is left out if either look overflowed, and the caller updates the scaler.

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

    def __init__(
        self,
        base: Optimizer | Iterable[Any],
        base_class: Callable[..., Optimizer] | None = None,
        *,
        rho: float = 0.05,
        frozen: nn.Module | None = None,
        scaler: GradScaler | None = None,
        **values: Any,
    ) -> None:
        if not rho >= 0:
            raise ValueError(f"rho must be >= 0, got {rho}")
        if not isinstance(base, Optimizer):
            if base_class is None:
                raise TypeError("SAM needs an optimizer, or parameters and its class: SAM(parameters, SGD, lr=0.1)")
            base = base_class(base, **values)
        super().__init__(base.param_groups, base.defaults)
        self.base, self.rho, self.frozen, self.scaler = base, rho, frozen, scaler
        self._climbed: Gradients | None = None  # gradients of the second looks since the last step
        self._share()

    @torch.no_grad()
    def step(self, closure: Callable[[], Tensor] | None = None) -> Tensor:  # type: ignore[override]
        """Climb, look, come back, descend; without a closure only descend, after one or several `climb`."""
        if closure is None:
            if self._climbed is None:
                raise TypeError("SAM looks twice: give step a closure, or look again `with optimizer.climb():` before")
            loss = torch.tensor(torch.nan)
        else:
            kept = _Kept(self._parameters())
            with torch.enable_grad():
                loss = closure()
            kept.refuse_accumulation()
            with self._away([None] * len(self._parameters())), torch.enable_grad():
                closure()
        self._climbed = None
        if self.scaler is None:
            self.base.step()
        else:
            self.scaler.step(self.base)  # unscales, and skips infinite gradients
        return loss

    @contextmanager
    def climb(self) -> Iterator[None]:
        """Within it, compute the loss again and call backward; `step()` then takes that gradient.

        Gradients that were there before the last backward, of other batches of the same step, are kept.
        """
        before = self._climbed or [None] * len(self._parameters())
        with self._away(before):
            yield
        self._climbed = gradients(self._parameters())

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients, and what was climbed."""
        self._climbed = None
        super().zero_grad(set_to_none)

    def state_dict(self) -> dict[str, Any]:
        """The base optimizer's."""
        return self.base.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the base optimizer's."""
        self.base.load_state_dict(state_dict)
        self._share()

    def __getstate__(self) -> dict[str, Any]:
        return {"base": self.base, "rho": self.rho, "frozen": self.frozen, "scaler": self.scaler}

    def __setstate__(self, state: dict[str, Any]) -> None:
        SAM.__init__(self, **state)

    def _away(self, before: Gradients) -> Any:
        return climbed(self._parameters(), before, rho=self.rho, frozen=self.frozen)

    def _parameters(self) -> list[Tensor]:
        return [p for group in self.param_groups for p in group["params"]]

    def _share(self) -> None:
        self.param_groups, self.state = self.base.param_groups, self.base.state


class _Kept:
    """Gradients from before a closure: has it kept them?"""

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        self.parameter = next((p for p in parameters if p.grad is not None and p.grad.any()), None)
        self.gradient = None if self.parameter is None else self.parameter.grad
        self.version = 0 if self.gradient is None else self.gradient._version

    def refuse_accumulation(self) -> None:
        """Raise if backward only added to a gradient; zeroing it in place is a second change, or a new tensor."""
        if self.parameter is None or self.gradient is None or self.parameter.grad is not self.gradient:
            return
        if self.gradient._version == self.version + 1:
            how = "in your loop look again `with optimizer.climb():` after each backward and then call step()"
            there = "in Lightning use assay.integrations.lightning.SharpnessAware"
            raise RuntimeError(
                f"the closure adds to gradients of other batches, at which SAM looked only once; {how}, {there}"
            )


def gradients(parameters: Iterable[Tensor]) -> Gradients:
    """Copies of the gradients there are, to give to `climbed` after the next backward."""
    return [None if p.grad is None else p.grad.detach().clone() for p in parameters]


@contextmanager
def climbed(
    parameters: Sequence[Tensor], before: Gradients, *, rho: float, frozen: nn.Module | None = None
) -> Iterator[None]:
    """Within it the weights are at the worst point within `rho`, by what the last backward added to `before`.

    The gradients are `before` again, so that the next backward adds to them; after it, the weights are back. Gradients
    that overflowed (float16) do not move the weights.
    """
    with torch.no_grad():
        own = [
            (p, p.grad if b is None else p.grad - b)
            for p, b in zip(parameters, before, strict=True)
            if p.grad is not None
        ]
        weights = [p.clone() for p, _ in own]
        norms = [torch.linalg.vector_norm(g) for _, g in own]
        norm = (
            torch.linalg.vector_norm(torch.stack([n.to(norms[0].device) for n in norms])) if norms else torch.zeros(())
        )
        finite = torch.isfinite(norm)
    try:
        with torch.no_grad():
            for p, g in own:
                p.add_(torch.where(finite.to(p.device), g * (rho / (norm.to(p.device) + 1e-12)), 0))
        for p, b in zip(parameters, before, strict=True):
            p.grad = b
        with frozen_statistics(frozen) if frozen else nullcontext():
            yield
    finally:  # also if interrupted or out of memory: whoever goes on, or saves, shall find w and not w + e
        with torch.no_grad():
            for (p, _), w in zip(own, weights, strict=True):
                p.copy_(w)


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
