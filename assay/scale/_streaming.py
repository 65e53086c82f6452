"""Tallies of rows that are read once, chunk by chunk, in memory that does not grow with their number."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from glob import glob, has_magic
from pathlib import Path

from assay._core import loops
from assay._core.arrays import InputError
from assay.files import ENDINGS, Columns, read_chunks
from assay.predictions import Outcomes, Predictions
from assay.scale._tally import Tally

STANDARD = Columns()
Chunks = Iterable[Predictions | Outcomes]


def tally(source: str | Path | Chunks, columns: Columns = STANDARD) -> Tally:
    """The tally of a file, of all files of a folder or a pattern, or of chunks of rows.

    Chunks are counted on `--threads` threads while the next ones are read; their order changes no number.

    >>> from assay import evaluate, examples
    >>> rows = examples.load()
    >>> whole = tally(rows[start : start + 1000] for start in range(0, len(rows), 1000))
    >>> evaluate(whole)["ece"] == evaluate(Tally.of(rows))["ece"]
    True
    """
    chunks = _of_files(shards(source), columns) if isinstance(source, str | Path) else iter(source)
    total: Tally | None = None
    for part in _tallies(chunks):
        total = part if total is None else total + part
    if total is None:
        raise InputError("no rows")
    return total


def shards(source: str | Path) -> list[Path]:
    """The files that a path, a folder or a pattern stands for, in order of their names."""
    path = Path(source)
    if not is_sharded(path):
        return [path]
    if not path.is_dir():
        found = [Path(name) for name in sorted(glob(str(source)))]
    else:
        found = sorted(x for x in path.iterdir() if x.suffix in ENDINGS)
    if not found:
        raise InputError(f"{source}: no files of predictions there")
    return found


def is_sharded(path: Path) -> bool:
    """Whether a path is a folder or a pattern of files."""
    return path.is_dir() or (has_magic(str(path)) and not path.exists())


def _of_files(paths: list[Path], columns: Columns) -> Iterator[Predictions | Outcomes]:
    for path in paths:
        yield from read_chunks(path, columns)


def _tallies(chunks: Iterator[Predictions | Outcomes]) -> Iterator[Tally]:
    """The tally of each chunk, in order; as many chunks as threads are in memory."""
    n = loops.n_threads()
    if n == 1:
        yield from map(Tally.of, chunks)
        return
    waiting: list[Future[Tally]] = []
    with ThreadPoolExecutor(n) as pool, loops.threads(1):
        for chunk in chunks:
            waiting.append(pool.submit(Tally.of, chunk))
            if len(waiting) > n:
                yield waiting.pop(0).result()
        for future in waiting:
            yield future.result()
