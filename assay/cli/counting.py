"""The progress of a tally as a bar, with rows a second and the time left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.text import Text

from assay._core.text import printable
from assay.cli.output import console, show
from assay.scale import Progress


@contextmanager
def counted(name: str) -> Iterator[Callable[[Progress], None]]:
    """A bar that follows the progress; afterwards, what was left out is listed."""
    rate = TextColumn("{task.fields[rate]}")
    doing = TextColumn("{task.description}", markup=False)
    bar = Bar(doing, BarColumn(), rate, TimeRemainingColumn(), console=console(stderr=True), transient=True)
    last = Progress()

    def watch(progress: Progress) -> None:
        nonlocal last
        last = progress
        speed = bar.tasks[task].speed
        rate = f"{progress}{f', {speed / 1e6:.1f} M rows/s' if speed else ''}"
        bar.update(task, completed=progress.rows, total=progress.of or None, rate=rate)

    with bar:
        task = bar.add_task(f"reading {printable(name)}", total=None, rate="")
        yield watch
    places = [place for part in last.left_out.values() for place in part]
    if places:
        show(Text(f"{name}: left out {len(places)}:"), stderr=True, soft_wrap=True)
        for place in places:
            show(Text(f"  {place}"), stderr=True, soft_wrap=True)
