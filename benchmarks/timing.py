"""How the benchmarks take time."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median


def timed(call: Callable[[], object]) -> tuple[float, object]:
    """CPU time of a call, and what it returned."""
    start = time.process_time()
    found = call()
    return time.process_time() - start, found


def seconds(*calls: Callable[[], object], repeats: int = 5) -> list[float]:
    """Median CPU time of each after one to warm up, taken in turns so that a slow moment of the machine meets all."""
    turns = [[timed(call)[0] for call in calls] for _ in range(repeats + 1)]
    return [median(taken) for taken in zip(*turns[1:], strict=True)]
