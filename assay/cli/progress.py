"""The progress of a study, as a live table."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table as Grid
from rich.text import Text

from assay.cli.output import Safe, console
from assay.study import Progress


@contextmanager
def watched(name: str, workers: int) -> Iterator[Callable[[Progress], None]]:
    """A live table of the progress; SIGTERM stops the study like Ctrl-C."""
    start = time.monotonic()
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with Live(console=console(stderr=True), refresh_per_second=2, transient=True) as live:
            yield lambda progress: live.update(Safe(_progress(name, progress, workers, start)))
    finally:
        signal.signal(signal.SIGTERM, before)


def _progress(name: str, progress: Progress, workers: int, start: float) -> RenderableType:
    left = progress.waiting + len(progress.running)
    taken = sum(progress.seconds) / len(progress.seconds) if progress.seconds else None
    eta = "?" if taken is None else _clock(taken * left / workers)
    counts = Grid(box=SIMPLE_HEAD, pad_edge=False, title=f"{name}, {_clock(time.monotonic() - start)}")
    for head in ("running", "waiting", "done", "failed", "left, about"):
        counts.add_column(head, justify="right")
    failed = Text(str(len(progress.failed)), "red" if progress.failed else "")
    counts.add_row(str(len(progress.running)), str(progress.waiting), str(progress.done), failed, eta)
    running = Grid.grid(padding=(0, 2))
    for run, since in progress.running.items():
        running.add_row(_clock(time.monotonic() - since), Text(str(run.folder), overflow="ellipsis", no_wrap=True))
    return Group(counts, running)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
