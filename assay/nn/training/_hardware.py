"""The machine that trains: device and precision by Lightning Fabric, threads, memory, and several processes at once."""

from __future__ import annotations

import atexit
import ctypes
import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Generator, Tensor, distributed, nn
from torch.amp import GradScaler

from assay._core.arrays import InputError
from assay.nn.data import Sampler, batch_sizes
from assay.nn.names import Precision

if TYPE_CHECKING:
    from lightning.fabric import Fabric

TRIM_THRESHOLD, MMAP_THRESHOLD, MMAP_MAX = -1, -3, -4  # parameters of mallopt, see its manual page


@dataclass(frozen=True)
class Hardware:
    """Where a run takes place; under torchrun, in as many processes as torchrun starts."""

    device: str = "auto"  # cpu, cuda, mps or auto
    precision: Precision = "32-true"
    workers: int = 0  # processes that read images from disk

    def __post_init__(self) -> None:
        if self.workers < 0:
            raise InputError(f"workers must be 0 or more, got {self.workers}")


def use_threads(n: int) -> None:
    """Train on `n` CPU threads; a run repeats exactly only on the same number of threads."""
    torch.set_num_threads(n)


def threads_each(workers: int) -> int:
    """Threads of each of so many runs at once: OMP_NUM_THREADS, or else an equal share of the cores."""
    said = os.environ.get("OMP_NUM_THREADS", "")
    return int(said) if said.isdecimal() and int(said) > 0 else max((os.cpu_count() or 1) // workers, 1)


def launched(hardware: Hardware) -> Fabric:
    """Fabric, with this process connected to the other processes of the run."""
    from lightning.fabric import Fabric

    processes, here = (int(os.environ.get(name, 1)) for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE"))
    try:
        fabric = Fabric(
            accelerator=hardware.device,
            devices=here,
            num_nodes=processes // here,
            strategy="ddp" if processes > 1 else "auto",
            **_precision(hardware),
        )
    except (RuntimeError, ValueError, ImportError) as problem:
        raise InputError(f"cannot train on device '{hardware.device}': {problem}") from problem
    fabric.launch()
    if processes > 1:
        atexit.register(_disconnect)
    return fabric


def _precision(hardware: Hardware) -> dict[str, Any]:
    """The precision as arguments of Fabric, which does not know that torch has float16 on CPUs."""
    from lightning.fabric.plugins import MixedPrecision

    on_cpu = hardware.device == "cpu" or (hardware.device == "auto" and not torch.accelerator.is_available())
    if hardware.precision == "16-mixed" and on_cpu:
        return {"plugins": MixedPrecision("16-mixed", "cpu")}
    return {"precision": hardware.precision}


def scaler_of(fabric: Fabric) -> GradScaler | None:
    """What scales losses and gradients in float16; None in other precisions."""
    return getattr(fabric.strategy.precision, "scaler", None)


def _disconnect() -> None:
    """Disconnect from the other processes before Python exits: gloo's waiting threads would abort it.

    Networks in reference cycles hold on to the group of processes, and its threads with it, until they are collected.
    """
    if distributed.is_initialized():
        gc.collect()
        distributed.destroy_process_group()


@contextmanager
def reused_memory() -> Iterator[None]:
    """Inside the block, memory that one step frees serves the next; without glibc, nothing changes.

    glibc returns large blocks to the system when they are freed, and the next step pays for each page again: up to an
    eighth of a step on a CPU, and more in SAM's second evaluation, while the first one's gradients are in memory.
    """
    if sys.platform != "linux" or not hasattr(libc := ctypes.CDLL(None), "mallopt"):
        yield
        return
    libc.mallopt(TRIM_THRESHOLD, -1)
    libc.mallopt(MMAP_MAX, 0)
    try:
        yield
    finally:
        libc.mallopt(MMAP_MAX, 2**16)
        libc.mallopt(MMAP_THRESHOLD, 2**25)  # where glibc's own adaptation of both ends
        libc.mallopt(TRIM_THRESHOLD, 2**26)
        libc.malloc_trim(0)


def part_of(sampler: Sampler | None, rank: int, processes: int) -> Sampler:
    """The sampler of one process: every `processes`-th sample of each batch, beginning with its rank."""

    def own(rows: Tensor, labels: Tensor, generator: Generator) -> Tensor:
        part = rows[rank::processes]
        return part if sampler is None else sampler(part, labels, generator)

    return own


def part_weights(n_samples: int, batch_size: int, rank: int, processes: int) -> list[float]:
    """Weights of a process's mean loss in each batch, such that the mean over processes is the mean of the batch.

    >>> part_weights(7, 4, rank=0, processes=2), part_weights(7, 4, rank=1, processes=2)
    ([1.0, 1.3333333333333333], [1.0, 0.6666666666666666])
    """
    sizes = batch_sizes(n_samples, batch_size)
    if sizes[-1] < processes:
        raise InputError(
            f"the last batch has {sizes[-1]} of {n_samples} samples, too few for {processes} processes; "
            f"choose another batch size than {batch_size}"
        )
    return [len(range(rank, size, processes)) * processes / size for size in sizes]


def mean_of_all(values: Tensor, fabric: Fabric) -> Tensor:
    """The mean over processes."""
    return cast(Tensor, fabric.all_reduce(values, reduce_op="mean"))


def sum_of_all(values: Tensor, fabric: Fabric) -> Tensor:
    """The sum over processes."""
    return cast(Tensor, fabric.all_reduce(values, reduce_op="sum"))


def share_buffers(network: nn.Module, fabric: Fabric) -> None:
    """Copy the buffers of the first process to all others: BatchNorm sees other samples in each."""
    if fabric.world_size > 1:
        for buffer in network.buffers():
            distributed.broadcast(buffer, 0)


def states_of_all(state: dict[str, Any], fabric: Fabric) -> list[dict[str, Any]]:
    """The states of all processes, by rank."""
    states: list[Any] = [state]
    if fabric.world_size > 1:
        states = [None] * fabric.world_size
        distributed.all_gather_object(states, state)
    return states
