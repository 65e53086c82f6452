"""What the processes of one run share: each batch is cut among them, and what they see and remember is put together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from torch import Generator, Tensor, distributed, nn

from assay._core.arrays import InputError
from assay.nn.data import Sampler, batch_sizes

if TYPE_CHECKING:
    from lightning.fabric import Fabric


def part_of(sampler: Sampler | None, rank: int, processes: int) -> Sampler:
    """The sampler for one process: of each batch every `processes`-th sample, beginning with its rank."""

    def own(rows: Tensor, labels: Tensor, generator: Generator) -> Tensor:
        part = rows[rank::processes]
        return part if sampler is None else sampler(part, labels, generator)

    return own


def part_weights(n_samples: int, batch_size: int, rank: int, processes: int) -> list[float]:
    """What the mean of a process's part counts for in each batch, so that the mean over processes is that of it all.

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
    """Give all processes the buffers of the first: in each, BatchNorm has seen other samples."""
    if fabric.world_size > 1:
        for buffer in network.buffers():
            distributed.broadcast(buffer, 0)


def of_all(state: dict[str, Any], fabric: Fabric) -> list[dict[str, Any]]:
    """The states of all processes, by rank."""
    states: list[Any] = [state]
    if fabric.world_size > 1:
        states = [None] * fabric.world_size
        distributed.all_gather_object(states, state)
    return states
