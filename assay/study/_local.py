"""The engine for one machine: a child process for each run, so that a crash of one does not touch the others."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from multiprocessing.connection import wait
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from threading import Thread
from typing import Any

from assay._core.manifest import FAILED, LOG, opened
from assay.nn.training import Hardware, threads_each, use_threads
from assay.study._consent import permit_own_code
from assay.study._engine import Progress, not_done, remember
from assay.study._execute import execute
from assay.study._run import Run
from assay.study._study import Study


def run_local(
    study: Study,
    runs: Sequence[Run],
    root: Path,
    *,
    workers: int,
    threads: int | None = None,
    hardware: Hardware = Hardware(),  # noqa: B008 (frozen)
    allow_code: bool = False,
    show: Callable[[Progress], None] = lambda progress: None,
) -> Progress:
    """Run all runs that are not done, `workers` at a time; by default they share the machine's threads."""
    permit_own_code(study, allow_code=allow_code)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["__main__", "assay.study._local", "assay.study._preloaded"])
    share = threads or threads_each(workers)
    waiting = deque(not_done(study, runs, root))
    progress = Progress(len(waiting), done=len(runs) - len(waiting))
    processes: dict[Any, tuple[ForkServerProcess, Run]] = {}
    try:
        while waiting or processes:
            while waiting and len(processes) < workers:
                run = waiting.popleft()
                process = context.Process(target=_child, args=(study, run, root, share, hardware, allow_code))
                process.start()
                processes[process.sentinel] = (process, run)
                progress.running[run] = time.monotonic()
            progress.waiting = len(waiting)
            show(progress)
            for sentinel in wait(list(processes), timeout=0.5):
                process, run = processes.pop(sentinel)
                process.join()
                progress.seconds.append(time.monotonic() - progress.running.pop(run))
                if process.exitcode == 0:
                    progress.done += 1
                else:
                    progress.failed.append(run)
                    remember(study, root / run.folder, _ended(process.exitcode))
    finally:
        for process, _ in processes.values():  # their finished epochs are on disk
            process.terminate()
        for process, _ in processes.values():
            process.join()
    show(progress)
    return progress


def _child(study: Study, run: Run, root: Path, threads: int, hardware: Hardware, allow_code: bool) -> None:
    """One run, with its own log; it ends when the study ends, however that happens."""
    Thread(target=_exit_with_parent, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to stop
    folder = root / run.folder
    folder.mkdir(parents=True, exist_ok=True)
    log = opened(folder / LOG)
    os.dup2(log, 1)
    os.dup2(log, 2)
    use_threads(threads)
    (folder / FAILED).unlink(missing_ok=True)
    try:
        execute(study, run, root, hardware=hardware, allow_code=allow_code)
    except Exception:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    sys.stdout.flush()
    os._exit(0)  # nothing is left to clean up, and a regular exit of a large process takes time


def _exit_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None, "a child has one"
    wait([parent.sentinel])
    os._exit(1)


def _ended(code: int | None) -> str:
    return f"killed by signal {-code}" if code is not None and code < 0 else f"exit code {code}"
