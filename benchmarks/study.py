"""What a study costs beside its trainings: scheduling tiny runs, and tabulating the rows of many.

    python benchmarks/study.py [RUNS]

A tiny run in a child process, against the same runs one after the other in this process; reading and tabulating
10,000 runs of 100 rows, against reading the bytes of their files. Exits with an error where a bound is missed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import torch

from assay._core.manifest import recording
from assay.study import Run, Study, Variant, execute, expand, read_rows, row_table, rows_file, run_local, tabulate
from assay.study._execute import _data
from assay.study._rows import method_columns, split_columns, variant_columns

SCHEDULING, TABULATING = 0.1, 10.0  # seconds: a run, all
METRICS = ["accuracy", "ece", "auroc", "aurc", "e_aurc"]


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def tiny(n: int) -> Study:
    return Study(
        name="tiny",
        data=["digits"],
        networks=["mlp"],
        recipes=["cross_entropy"],
        seeds=list(range(n)),
        epochs=1,
        n_train=[32],
        held_out=32,
        metrics=["accuracy"],
    )


STORED = tiny(1)


def scheduling(n: int) -> bool:
    study = tiny(n)
    runs = expand(study)
    torch.set_num_threads(1)
    with TemporaryDirectory() as here, TemporaryDirectory() as there:
        first = tiny(n + 1)
        run_local(first, expand(first)[-1:], Path(there), workers=1, threads=1)  # starts the server, which imports
        execute(first, expand(first)[-1], Path(here))
        inside = seconds(lambda: [_alone(study, run, Path(here)) for run in runs])
        outside = seconds(lambda: run_local(study, runs, Path(there), workers=1, threads=1))
        at_work = sum(_at_work(study, Path(there) / run.folder) for run in runs)
    cost = (outside - at_work) / n
    print(f"{n} tiny runs: {outside / n:.3f} s a run as child processes, {inside / n:.3f} s in one process")
    print(f"  scheduling, the time that no child is at work, {cost:.3f} s a run (bound {SCHEDULING})")
    return cost <= SCHEDULING


def _at_work(study: Study, folder: Path) -> float:
    """From the first thing a child does, to open its log, to the last, to write its rows."""
    return (folder / rows_file(study)).stat().st_mtime - (folder / "log.txt").stat().st_mtime


def _alone(study: Study, run: Run, root: Path) -> None:
    """A run that reads its data, as each in a process of its own does."""
    _data.cache_clear()
    execute(study, run, root)


def tabulating(runs: int = 10_000) -> bool:
    """1,000 points of data set and method with 10 seeds each; 5 splits, 4 calibrators, 5 metrics."""
    with TemporaryDirectory() as folder:
        folders = [_stored(Path(folder), i) for i in range(runs)]
        taken = seconds(lambda: tabulate(read_rows(STORED, folders), baseline="m0", metrics=METRICS))
        assert len(read_rows(STORED, folders)) == 100 * runs, "some rows are not read"
        plain = seconds(lambda: [(run / rows_file(STORED)).read_bytes() for run in folders])
    print(
        f"rows of {runs} runs: {taken:.1f} s to read and tabulate (bound {TABULATING:.0f}), {taken / plain:.0f} x bytes"
    )
    return taken <= TABULATING


def _stored(root: Path, number: int) -> Path:
    rng = np.random.default_rng(number)
    data, method, seed = f"d{number % 10}", f"m{number // 100}", number // 10 % 10
    point = {"data": data, "network": "mlp", **method_columns(Variant(method)), "seed": seed}
    score = variant_columns("score", Variant("max_probability"))
    rows = [
        point
        | split_columns(split)
        | variant_columns("calibrator", Variant(calibrator))
        | score
        | {"held_out": 400, "metric": metric, "value": float(rng.random())}
        for split in ("test", "fog_1", "fog_3", "snow_1", "snow_3")
        for calibrator in ("none", "temperature", "histogram", "platt")
        for metric in METRICS
    ]
    table = row_table(rows)
    folder = root / data / method / str(seed)
    folder.mkdir(parents=True)
    name = rows_file(STORED)
    file = str(folder / name)
    with recording(folder, name), pa.OSFile(file, "wb") as stream, pa.ipc.new_file(stream, table.schema) as rows:
        rows.write_table(table)
    return folder


if __name__ == "__main__":
    kept = [scheduling(int(sys.argv[1]) if len(sys.argv) > 1 else 100), tabulating()]
    sys.exit(0 if all(kept) else 1)
