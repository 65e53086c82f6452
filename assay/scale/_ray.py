"""Tallies that are counted on a cluster by Ray: of parts of files, or of the blocks of a Ray Dataset."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from assay._core.arrays import InputError, NoRows
from assay.files import FEW, Columns, needed, refuse_in_parts
from assay.scale._filling import Filling
from assay.scale._parts import Part, parts_of, shards
from assay.scale._reading import Bad, tally_of
from assay.scale._state import State
from assay.scale._streaming import refuse_if_shares
from assay.scale._tally import Tally

STANDARD = Columns()
TALLY = "tally"  # the column of tallies as bytes that engines hand on
Result = dict[str, Any]  # of a task: the name of what was counted, and its tally as bytes or what is wrong with it
Count = Callable[[Iterable[Any], Columns], Tally]


def tally_on_ray(source: str | Path, columns: Columns = STANDARD, address: str | None = None) -> Tally:
    """The tally of files, counted on a Ray cluster: that of the address, or the one that Ray finds.

    A task counts a part of a file, as a thread of `tally_files` does; every node must reach the files by their names.
    """
    import ray

    refuse_in_parts(columns)
    parts = [part for file in shards(source) for part in parts_of(file, columns)]
    if not parts:
        raise NoRows(f"{source}: no rows")
    classes = _classes(parts, columns)
    if not ray.is_initialized():
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    ray.data.DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)  # after the import of ray.data, which sets it anew

    def count(row: dict[str, int]) -> list[Result]:
        part, into = parts[row["id"]], partial(Filling, classes=classes)
        return _result(str(part.file), lambda: tally_of(part, columns, Bad(), into, lambda _: None))

    found = _sum_on_ray(ray.data.range(len(parts), override_num_blocks=len(parts)).flat_map(count))
    if found is None:
        raise NoRows(f"{source}: no rows")
    refuse_if_shares(found, columns)
    return found


def _classes(parts: list[Part], columns: Columns) -> tuple[str, ...] | None:
    """What the first part with rows calls the classes: all others are counted in that order."""
    counted = (part.used or tally_of(part, columns, Bad(), Filling, lambda _: None) for part in parts)
    first = next((known for known in counted if known is not None), None)
    return None if first is None else first.classes


def tally_of_dataset(source: Any, columns: Columns, count: Count) -> Tally:
    """The tally of a Ray Dataset, a task for each block; a lost block is counted again from its source."""
    try:
        head = next(iter(source.limit(FEW).iter_batches(batch_size=FEW, batch_format="pyarrow")), None)
        if head is None:
            raise NoRows("no rows")
        counted = source.select_columns(list(needed(head, columns).names)).map_batches(
            partial(_of_block, columns=columns, count=count),
            batch_format="pyarrow",
            batch_size=None,
            zero_copy_batch=True,
        )
        found = _sum_on_ray(counted)
    except (InputError, MemoryError):
        raise
    except Exception as problem:  # whatever the dataset's own reading raises, in the words of Ray
        raise InputError(f"the Ray Dataset cannot be read: {_reason(problem)}") from problem
    if found is None:
        raise NoRows("no rows")
    return found


def _of_block(block: Any, columns: Columns, count: Count) -> Any:
    def counted() -> Tally | None:
        try:
            return count(block.to_batches(), columns) if block.num_rows else None
        except InputError as problem:
            raise InputError(f"in a block of the dataset, {problem}") from problem

    return _as_table(_result("a block of the dataset", counted))


def _sum_on_ray(counted: Any) -> Tally | None:
    """The sum of what tasks found: of several tallies at once in the cluster, and of these sums here."""
    return _sum_of(counted.map_batches(_summed, batch_format="pyarrow", batch_size=64).iter_rows())


def _summed(block: Any) -> Any:
    results = block.to_pylist()
    return _as_table(_result(results[0]["name"] if results else "", lambda: _sum_of(results)))


def _sum_of(results: Iterable[Result]) -> Tally | None:
    """The sum of the tallies; an error names what does not fit."""
    total = State()
    for each in results:
        if each["problem"]:
            raise InputError(each["problem"])
        total.add(Part(each["name"]), Tally.from_bytes(each[TALLY]), {})
    return total.tally


def _result(name: str, count: Callable[[], Tally | None]) -> list[Result]:
    """What a task hands on; an error is handed on too, since Ray buries those of tasks in its own."""
    try:
        counted = count()
    except InputError as problem:
        return [{"name": name, TALLY: b"", "problem": str(problem)}]
    return [] if counted is None else [{"name": name, TALLY: counted.to_bytes(), "problem": ""}]


def _as_table(results: list[Result]) -> Any:
    import pyarrow as pa

    schema = pa.schema({"name": pa.string(), TALLY: pa.binary(), "problem": pa.string()})
    return pa.Table.from_pylist(results, schema)


def _reason(problem: Exception) -> str:
    """What happened: Ray puts the traceback of its task before it, and its own words after it."""
    lines = str(problem).partition("\n\nThe above exception was")[0].strip().splitlines()
    return lines[-1] if lines else type(problem).__name__
