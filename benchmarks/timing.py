"""How the benchmarks take time."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
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


def peak() -> float:
    """Highest resident memory, MB."""
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) * 1024 / 1e6


class Report:
    """Prints each figure beside its bound and remembers the missed ones."""

    def __init__(self) -> None:
        self.missed = 0

    def __call__(self, what: str, ratio: float, bound: float, detail: str) -> None:
        word = "ok" if ratio <= bound else "MISSED"
        self.missed += ratio > bound
        print(f"  {what:58s} {ratio:8.3f}  (at most {bound:g})  {word:6s}  {detail}", flush=True)
