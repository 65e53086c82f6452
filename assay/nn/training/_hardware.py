"""On what to train: device, precision and processes, all through Lightning Fabric."""

from __future__ import annotations

import atexit
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from torch import distributed

from assay._core.arrays import InputError

if TYPE_CHECKING:
    from lightning.fabric import Fabric


@dataclass(frozen=True)
class Hardware:
    """Where a run takes place; under torchrun, in as many processes as that has started.

    Half precision without a range as wide as that of bfloat16 is left out: it needs gradients to be scaled, which a
    closure, and so SAM, does not allow.
    """

    device: str = "auto"  # cpu, cuda, mps or auto
    precision: Literal["32-true", "bf16-mixed", "64-true"] = "32-true"
    workers: int = 0  # processes that read images which are not in memory

    def __post_init__(self) -> None:
        if self.workers < 0:
            raise InputError(f"workers must be 0 or more, got {self.workers}")


def launched(hardware: Hardware) -> Fabric:
    """Fabric, with this process joined to the others of its run."""
    from lightning.fabric import Fabric

    processes, here = (int(os.environ.get(name, 1)) for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE"))
    try:
        fabric = Fabric(
            accelerator=hardware.device,
            devices=here,
            num_nodes=processes // here,
            strategy="ddp" if processes > 1 else "auto",
            precision=hardware.precision,
        )
    except (RuntimeError, ValueError, ImportError) as problem:
        raise InputError(f"cannot train on device '{hardware.device}': {problem}") from problem
    fabric.launch()
    if processes > 1:
        atexit.register(_leave)
    return fabric


def _leave() -> None:
    """Take leave of the other processes: gloo's threads, if they still wait when Python ends, abort it."""
    if distributed.is_initialized():
        distributed.destroy_process_group()
