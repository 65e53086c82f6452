"""Tallies of processes that train together, added up by torch.distributed."""

from __future__ import annotations

import torch
from torch import distributed

from assay.scale import Tally, added


def all_added(tally: Tally, group: distributed.ProcessGroup | None = None) -> Tally:
    """The sum of the tallies of all processes, the same on each; without a process group the tally itself.

    Each process tallies its own share of the rows, as in `Tally.of(Predictions.from_logits(logits, labels))` or with
    `assay.scale.Filling` batch by batch. What is sent is the stored tally, a few hundred kilobytes at most.
    """
    if not (distributed.is_available() and distributed.is_initialized()):
        return tally
    device = torch.device("cuda" if distributed.get_backend(group) == "nccl" else "cpu")
    own = torch.frombuffer(bytearray(tally.to_bytes()), dtype=torch.uint8).to(device)
    sizes = [torch.zeros(1, dtype=torch.int64, device=device) for _ in range(distributed.get_world_size(group))]
    distributed.all_gather(sizes, torch.tensor([len(own)], device=device), group=group)
    room = max(int(size) for size in sizes)
    stored = [torch.zeros(room, dtype=torch.uint8, device=device) for _ in sizes]
    distributed.all_gather(stored, torch.nn.functional.pad(own, (0, room - len(own))), group=group)
    return added(x[: int(size)].cpu().numpy().tobytes() for x, size in zip(stored, sizes, strict=True))
