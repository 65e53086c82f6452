"""How fast large files are tallied, against what pyarrow takes to decode the same columns, and in how much memory.

    python benchmarks/scale.py [rows] [folder]

Makes files of (confidence, correct), of a tenth of the rows and of all (100 million unless said), and 2 million x 100
logits, in a temporary folder unless one is named. Every figure is from a process of its own; what is compared is run in
turns. Exits with an error where a bound is missed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from timing import Report, peak

from assay import audit
from assay._core import loops
from assay.scale import tally

GROUP = 2**20  # rows of a row group, pyarrow's own choice
CLASSES = 100
TURNS = 3


def make_pairs(file: Path, n: int) -> None:
    """Confidences of an over-confident model of two classes, and whether it was right."""
    _write(file, n, GROUP, _pairs)


def make_logits(file: Path, n: int) -> None:
    """Logits of 100 classes in single precision, and labels."""
    _write(file, n, 2**16, _logits)


def _write(file: Path, n: int, group: int, make: Callable[[np.random.Generator, int], Any]) -> None:
    rng = np.random.default_rng(0)
    with pq.ParquetWriter(file, make(rng, 1).schema) as writer:
        for start in range(0, n, group):
            writer.write_table(make(rng, min(group, n - start)))


def _pairs(rng: np.random.Generator, n: int) -> Any:
    z = 2.5 * rng.standard_normal(n) + 3
    confidence = 1 / (1 + np.exp(-1.4 * np.abs(z)))
    return pa.table({"confidence": confidence, "correct": rng.random(n) < 1 / (1 + np.exp(-np.abs(z)))})


def _logits(rng: np.random.Generator, n: int) -> Any:
    labels = rng.integers(0, CLASSES, n)
    logits = rng.standard_normal((n, CLASSES), dtype=np.float32)
    logits[np.arange(n), labels] += 3.8
    rows = pa.FixedSizeListArray.from_arrays(pa.array(7.6 * logits.reshape(-1)), CLASSES)
    return pa.table({"logits": rows, "labels": labels})


def decode(file: str) -> None:
    """Read every column, a row group at a time, on one thread, and do nothing with it.

    Of pyarrow's ways this one takes the least CPU time: batches of the default size spend twice as much in the system
    as on decoding, and a reference like that would flatter.
    """
    opened = pq.ParquetFile(file)
    for group in range(opened.num_row_groups):
        opened.read_row_group(group, use_threads=False)


def whole_audit(file: str) -> None:
    audit(tally(file))


TASKS: dict[str, Callable[[str], object]] = {"decode": decode, "tally": tally, "audit": whole_audit}


def child(task: str, file: str, threads: str, *first: str) -> None:
    """Do a task and print what it took; `first` on a small file, if one is given, so that no start is timed."""
    pa.set_cpu_count(1)
    with loops.threads(int(threads)):
        for small in first:
            TASKS[task](small)
        wall, cpu = time.perf_counter(), time.process_time()
        TASKS[task](file)
    print(json.dumps([time.process_time() - cpu, time.perf_counter() - wall, peak()]))


def took(task: str, file: Path, threads: int = 1, *first: Path) -> list[float]:
    """CPU time, wall time and peak memory in MB, in a process of its own."""
    command = [sys.executable, __file__, "--child", task, str(file), str(threads), *map(str, first)]
    found: list[float] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return found


def in_turns(*runs: tuple[str, Path, int, Path]) -> list[list[float]]:
    """Medians of each figure."""
    turns = [[took(*run) for run in runs] for _ in range(TURNS)]
    return [[median(figure) for figure in zip(*run, strict=True)] for run in zip(*turns, strict=True)]


def measure(folder: Path, n: int, report: Report) -> None:
    small, large, logits = folder / "small.parquet", folder / "large.parquet", folder / "logits.parquet"
    for file, make, rows in ((small, make_pairs, n // 10), (large, make_pairs, n), (logits, make_logits, n // 50)):
        if not file.exists():
            make(file, rows)
    print(f"{n:,} rows of confidence and correct")
    decoded, counted, two = in_turns(
        ("decode", large, 1, small), ("tally", large, 1, small), ("tally", large, 2, small)
    )
    detail = f"{1e9 * counted[0] / n:.1f} ns a row; {1e9 * decoded[0] / n:.1f}"
    report("tally / (decoding / .6), CPU time", counted[0] / (decoded[0] / 0.6), 1, detail)
    report("tally, wall time of two threads / one", two[1] / counted[1], 1 / 1.6, f"{two[1]:.1f}; {counted[1]:.1f} s")
    few, many = (took("audit", file, 2)[2] for file in (small, large))
    report("audit, peak memory on two threads, MB", many, 400, f"{few:.0f} MB of a tenth of the rows")
    report("audit, peak memory / that of a tenth of the rows", many / few, 1.1, "")
    print(f"{n // 50:,} x {CLASSES} logits")
    decoded, counted = in_turns(("decode", logits, 1, small), ("tally", logits, 1, small))
    detail = f"{1e9 * counted[0] / (n // 50):.0f} ns a row; {1e9 * decoded[0] / (n // 50):.0f}"
    report("tally / (decoding / .5), CPU time", counted[0] / (decoded[0] / 0.5), 1, detail)
    report("audit, peak memory on two threads, MB", took("audit", logits, 2)[2], 600, "")


def main() -> None:
    if "--child" in sys.argv:
        child(*sys.argv[2:])
        return
    n = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10**8
    report = Report()
    with TemporaryDirectory() as temporary:
        measure(Path(sys.argv[2] if len(sys.argv) > 2 else temporary), n, report)
    if report.missed:
        sys.exit(f"{report.missed} bounds missed")


if __name__ == "__main__":
    main()
