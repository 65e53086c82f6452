"""Primary plus secondary loss, as in karandikar2021."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

Loss = Callable[[Tensor, Tensor], Tensor]
"""(logits [n, k], labels [n]) -> scalar."""


def with_secondary(primary: Loss, secondary: Loss, *, beta: float) -> Loss:
    """PL + beta SL (karandikar2021, section 5.1); the optimizer adds the weight decay.

    >>> from functools import partial
    >>> from assay.nn.losses import cross_entropy, sb_ece_lb
    >>> loss = with_secondary(cross_entropy, partial(sb_ece_lb, temperature=0.01), beta=0.5)
    """
    return lambda logits, labels: primary(logits, labels) + beta * secondary(logits, labels)
