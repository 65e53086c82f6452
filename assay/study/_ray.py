"""The engine for a cluster: each run is a Ray task, and all machines share the folder of results."""

from __future__ import annotations

import os
import signal
import socket
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from threading import current_thread, main_thread
from typing import Any

from assay._core.arrays import InputError
from assay._core.lookup import needs
from assay._core.manifest import FAILED, LOG, opened
from assay.nn.training import Hardware, threads_each, use_threads
from assay.study._consent import permit_own_code
from assay.study._engine import Progress, not_done, remember
from assay.study._execute import execute
from assay.study._run import Run
from assay.study._study import Study

ANSWER = 10  # seconds in which a cluster must answer
RETRIES = 2  # of a run whose machine or process was lost; it continues from its last epoch


@dataclass(frozen=True)
class Cluster:
    """The Ray cluster: its address, by default a new one of this machine, and the GPUs that a run takes."""

    address: str | None = None
    gpus: float = 0


@dataclass(frozen=True)
class _Queue:
    """Where runs are sent, and how many at a time."""

    study: Study
    root: Path
    workers: int
    send: Callable[[Run], Any]  # returns Ray's reference to the result


def run_ray(
    study: Study,
    runs: Sequence[Run],
    root: Path,
    *,
    workers: int,
    threads: int | None = None,
    cluster: Cluster = Cluster(),
    hardware: Hardware = Hardware(),  # noqa: B008 (frozen)
    allow_code: bool = False,
    show: Callable[[Progress], None] = lambda progress: None,
) -> Progress:
    """Run all runs that are not done on a cluster, at most `workers` at a time; a run takes `threads` CPUs."""
    permit_own_code(study, allow_code=allow_code)
    ray: Any = needs("ray")
    share = threads or threads_each(workers)
    # Without "local" Ray would join any cluster that it finds on this machine, and that has a size already.
    own = {"address": "local", "num_cpus": workers * share, "include_dashboard": False}
    size = {"address": cluster.address} if cluster.address else own
    os.environ.setdefault("RAY_worker_niceness", "0")  # by default 15, and workers starve beside other processes
    _refuse_silent(cluster.address)
    before = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(log_to_driver=False, logging_level="ERROR", **size)
    except (ConnectionError, ValueError, RuntimeError) as problem:
        where = f"at '{cluster.address}'" if cluster.address else "could be started"
        raise InputError(f"no Ray cluster {where}: {str(problem).splitlines()[0]}") from problem
    if current_thread() is main_thread():
        signal.signal(signal.SIGTERM, before)  # Ray's own would end the study with a stack, not like Ctrl-C
    try:
        task = ray.remote(num_cpus=share, num_gpus=cluster.gpus, max_retries=RETRIES)(_task)
        there = root.resolve()
        queue = _Queue(study, there, workers, lambda run: task.remote(study, run, there, share, hardware, allow_code))
        return _run_all(ray, queue, runs, show)
    finally:
        ray.shutdown()


def _refuse_silent(address: str | None) -> None:
    """Refuse an address that nobody answers: Ray would wait for minutes."""
    host, _, port = (address or "").rpartition("/")[2].rpartition(":")
    if host and port.isdecimal():
        try:
            socket.create_connection((host.strip("[]"), int(port)), ANSWER).close()
        except (OSError, OverflowError) as problem:
            raise InputError(
                f"no Ray cluster at '{address}': {getattr(problem, 'strerror', None) or problem}"
            ) from problem


def _run_all(ray: Any, queue: _Queue, runs: Sequence[Run], show: Callable[[Progress], None]) -> Progress:
    waiting = deque(not_done(queue.study, runs, queue.root))
    progress = Progress(len(waiting), done=len(runs) - len(waiting))
    tasks: dict[Any, Run] = {}
    while waiting or tasks:
        while waiting and len(tasks) < queue.workers:
            run = waiting.popleft()
            tasks[queue.send(run)] = run
            progress.running[run] = time.monotonic()
        progress.waiting = len(waiting)
        show(progress)
        finished, _ = ray.wait(list(tasks), timeout=0.5)
        for reference in finished:
            run = tasks.pop(reference)
            progress.seconds.append(time.monotonic() - progress.running.pop(run))
            try:
                how = ray.get(reference)
            except ray.exceptions.RayError as problem:  # its process was lost too often
                how = str(problem).splitlines()[0]
            if how is None:
                progress.done += 1
            else:
                progress.failed.append(run)
                remember(queue.study, queue.root / run.folder, how)
    show(progress)
    return progress


def _task(study: Study, run: Run, root: Path, threads: int, hardware: Hardware, allow_code: bool) -> str | None:
    """One run, with its own log; returns how it failed, or None."""
    folder = root / run.folder
    folder.mkdir(parents=True, exist_ok=True)
    use_threads(threads)
    (folder / FAILED).unlink(missing_ok=True)
    with os.fdopen(opened(folder / LOG), "w") as log, redirect_stdout(log), redirect_stderr(log):
        try:
            execute(study, run, root, hardware=hardware, allow_code=allow_code)
        except Exception as problem:
            traceback.print_exc()
            return f"{type(problem).__name__}: {problem}"
    return None
