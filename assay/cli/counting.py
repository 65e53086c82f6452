"""The progress of a tally as a bar, with rows a second and the time left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from assay.scale import Progress


@contextmanager
def counted(name: str) -> Iterator[Callable[[Progress], None]]:
    """A bar that follows the progress; afterwards, what was left out is listed."""
    console = Console(stderr=True)
    rate = TextColumn("{task.fields[rate]}")
    bar = Bar(
        TextColumn("{task.description}"), BarColumn(), rate, TimeRemainingColumn(), console=console, transient=True
    )
    last = Progress()

    def watch(progress: Progress) -> None:
        nonlocal last
        last = progress
        speed = bar.tasks[task].speed
        rate = f"{progress}{f', {speed / 1e6:.1f} M rows/s' if speed else ''}"
        bar.update(task, completed=progress.rows, total=progress.of or None, rate=rate)

    with bar:
        task = bar.add_task(f"reading {name}", total=None, rate="")
        yield watch
    places = [place for part in last.left_out.values() for place in part]
    if places:
        console.print(f"{name}: left out {len(places)}:", highlight=False)
        for place in places:
            console.print(f"  {place}", highlight=False, markup=False, soft_wrap=True)
