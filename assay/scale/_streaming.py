"""Tallies of rows that are read once, part by part, in memory that does not grow with their number."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from threading import Event, Lock

from assay._core import loops
from assay._core.arrays import InputError, NoRows
from assay._matching import in_order
from assay.files import Columns, refuse_in_parts, refuse_shares
from assay.metrics import Tables
from assay.scale._filling import Filling
from assay.scale._parts import Part, parts_of, shards
from assay.scale._reading import Bad, good_chunks, tally_of
from assay.scale._sorting import sorted_order
from assay.scale._state import State
from assay.scale._tally import Tally

STANDARD = Columns()
EVERY = 1.0  # seconds between two writings of the state


@dataclass
class Progress:
    """How far a tally is."""

    rows: int = 0  # read, those of unfinished parts among them
    of: int = 0  # 0 if nobody knows
    left_out: dict[str, list[str]] = field(default_factory=dict)  # by part, what was bad in it

    def __str__(self) -> str:
        return f"{self.rows:,}{f' of {self.of:,}' if self.of else ''} rows"


Watch = Callable[[Progress], None]


class _Leave(Exception):
    """Tells a thread that nobody waits for it any more."""


class Stopped(KeyboardInterrupt):
    """Ctrl-C, and how far it came."""


def tally_files(
    source: str | Path,
    columns: Columns = STANDARD,
    *,
    exact: bool = False,
    state: Path | None = None,
    skip_bad: int = 0,
    watch: Watch = lambda _: None,
) -> Tally:
    """The tally of a file, of all files of a folder or a pattern, or of an address such as s3://bucket/folder.

    Row groups are read on `--threads` threads; their order changes no number. `exact` sorts the rows too, on the disk.
    `state` is a file that keeps what has been counted: after a kill the same call goes on with what is left, and no
    row is counted twice. At most `skip_bad` bad rows, row groups and files are left out; `watch` is told of them.
    """
    refuse_in_parts(columns)
    files = shards(source)
    known = State() if state is None else _begun(state, files, columns, skip_bad)
    bad = Bad(skip_bad, {part: list(said) for part, said in known.left_out.items()})
    parts = list(_parts(files, columns, bad))
    far = Progress(of=sum(part.rows for part in parts) if all(part.rows for part in parts) else 0)
    far.left_out = bad.left_out
    _fill(known, parts, columns, bad, far, watch, state)
    if known.tally is None:
        raise NoRows(f"{source}: no rows")
    refuse_if_shares(known.tally, columns)
    if exact and known.tally.cells.mixed.any():
        again = Bad(skip_bad)
        read = (chunk for part in parts for chunk in good_chunks(part, columns, again))
        chunks = (in_order(chunk, known.tally.classes) for chunk in read)
        return replace(known.tally, order=sorted_order(known.tally.cells, chunks))
    return known.tally


def refuse_if_shares(found: Tally, columns: Columns) -> None:
    """Refuse shares that were read as per cents: only all rows together tell."""
    if columns.percent and len(found):
        refuse_shares(Tables(found.of_positive or found).ranking.score)


def _begun(state: Path, files: list[Path | str], columns: Columns, skip_bad: int) -> State:
    """What has been counted of these files."""
    known = State.load(state, columns)
    known.check(files, state)
    left_out = sum(map(len, known.left_out.values()))
    if left_out > skip_bad:
        raise InputError(f"{state}: {left_out} bad places have been left out of it; say --skip-bad {left_out} or more")
    return known


def _parts(files: list[Path | str], columns: Columns, bad: Bad) -> Iterator[Part]:
    for file in files:
        try:
            yield from parts_of(file, columns)
        except InputError as problem:
            bad.leave_out(str(file), problem)


def _fill(
    known: State, parts: list[Part], columns: Columns, bad: Bad, far: Progress, watch: Watch, state: Path | None
) -> None:
    """Count the parts that the state does not have, and keep it now and then."""
    todo = [part for part in parts if part.name not in known.parts]
    far.rows = len(known.tally or ())
    saved = time.monotonic()
    try:
        watch(far)
        for part, found in _in_threads(todo, columns, bad, known, far):
            if part is not None:
                known.add(part, found, bad.left_out)
            watch(far)
            if state is not None and time.monotonic() - saved > EVERY:
                known.save(state, columns)
                saved = time.monotonic()
    except KeyboardInterrupt:
        kept = f"; give --state {state} again to go on" if state else "; with --state FILE it could go on from here"
        counted = replace(far, rows=len(known.tally or ()))  # without parts that were not finished
        raise Stopped(f"stopped after {counted}{kept}") from None
    finally:
        if state is not None:
            known.save(state, columns)


def _in_threads(
    todo: list[Part], columns: Columns, bad: Bad, known: State, far: Progress
) -> Iterator[tuple[Part | None, Tally | None]]:
    """The parts with their tallies as they are done; None several times a second, to look at the progress."""
    stop, lock = Event(), Lock()
    first = todo[0].used if todo else None  # it names the classes; else the first part that is counted does

    def count(rows: int) -> None:
        with lock:
            far.rows += rows
        if stop.is_set():
            raise _Leave

    def work(part: Part) -> Tally | None:
        on_grid = known.tally is not None and known.tally.cells.level > 0
        counted = known.tally or first
        classes = None if counted is None else counted.classes
        return tally_of(part, columns, bad, partial(Filling, on_grid=on_grid, classes=classes), count)

    waiting: dict[Future[Tally | None], Part] = {}
    queue, n = iter(todo), loops.n_threads()
    with ThreadPoolExecutor(n) as pool, loops.threads(1):
        try:
            while True:
                at_once = n + 1 if known.tally is not None or first is not None else 1
                for part in islice(queue, at_once - len(waiting)):
                    waiting[pool.submit(work, part)] = part
                if not waiting:
                    return
                done, _ = wait(waiting, timeout=0.2, return_when=FIRST_COMPLETED)
                for future in done:
                    yield waiting.pop(future), future.result()
                yield None, None
        finally:
            stop.set()
            for future in waiting:
                future.cancel()
