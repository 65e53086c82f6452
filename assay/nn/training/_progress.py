"""How far a run is, on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from assay.nn.batch import Batch

Shown = Callable[[Iterable[Batch]], Iterable[Batch]]


@contextmanager
def progress(name: str, *, done: int, steps: int, visible: bool) -> Iterator[Shown]:
    """A bar on stderr with the time left, which the batches move on; nothing where stderr is no terminal."""
    console = Console(stderr=True)
    if not (visible and console.is_terminal):
        yield lambda batches: batches
        return
    times = (TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
    with Progress(TextColumn(name), BarColumn(), TaskProgressColumn(), *times, console=console) as bar:
        task = bar.add_task(name, total=steps, completed=done)

        def shown(batches: Iterable[Batch]) -> Iterator[Batch]:
            for batch in batches:
                yield batch
                bar.advance(task)

        yield shown
