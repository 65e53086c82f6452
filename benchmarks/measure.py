"""How fast metrics are measured: ratios against a reference and against other libraries, in one run on one thread.

    python benchmarks/measure.py [10k] [50k] [1M]

Exits with an error where a bound is missed.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np
import torch
from timing import Report, peak, seconds
from torch import Tensor

from assay import Outcomes, Predictions, evaluate, metrics
from assay._core import loops
from assay._core.arrays import Array

EXAMPLE = Predictions.from_logits([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]], [0, 2])
TOP_LABEL = [key for key in evaluate(EXAMPLE.outcomes()) if key != "smooth_ece"]  # what needs no other class
SIZES = {"10k": (10_000, 10, 3.0), "50k": (50_000, 1000, 4.5), "1M": (1_000_000, 100, 3.8)}


def data(n: int, k: int, m: float) -> tuple[Tensor, Tensor]:
    """x = one-hot m + N(0, 1), logits 2 m x: a true temperature of 2."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(0, k, (n,), generator=generator)
    logits = torch.randn(n, k, generator=generator)
    logits[torch.arange(n), labels] += m
    return logits.mul_(2 * m), labels


def top_label(logits: Tensor, labels: Tensor) -> dict[str, float]:
    """From logits to every top-label metric but smooth ECE."""
    return evaluate(Predictions.from_logits(logits, labels), TOP_LABEL)


def everything(logits: Tensor, labels: Tensor) -> dict[str, float]:
    return evaluate(Predictions.from_logits(logits, labels))


def one_metric(logits: Tensor, labels: Tensor) -> dict[str, float]:
    return evaluate(Predictions.from_logits(logits, labels), ["ece"])


def classwise_peers(p: Array, labels: Tensor) -> dict[str, Callable[[], object]]:
    import calibration
    from mapie.metrics.calibration import expected_calibration_error

    table, y = p, labels.numpy()

    def mapie() -> object:
        return [expected_calibration_error(y == j, table[:, j], num_bins=15) for j in range(table.shape[1])]

    def uncertainty_calibration() -> object:
        return calibration.get_calibration_error(table, y, p=1, debias=False, mode="marginal")

    return {"mapie, class by class": mapie, "uncertainty-calibration": uncertainty_calibration}


def extra_memory(size: str) -> float:
    """MB that the metrics take at their peak beyond the input and the columns, in a process of its own."""
    done = subprocess.run([sys.executable, __file__, "--memory", size], capture_output=True, text=True, check=True)
    return float(done.stdout)


def print_extra_memory(size: str) -> None:
    logits, labels = data(*SIZES[size])
    top_label(logits[:1000], labels[:1000])  # imports and their memory come first
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far (Linux)
    before = peak()
    top_label(logits, labels)
    columns = len(logits) * (4 * 8 + 1) / 1e6
    print(peak() - before - columns)


def wall_times(call: Callable[[], object], *threads: int) -> list[float]:
    """On each number of threads, the least of several taken in turns: other processes only ever add to it."""
    turns = []
    for _ in range(8):
        turns.append([])
        for n in threads:
            with loops.threads(n):
                turns[-1].append(timed_by(perf_counter, call))
    return [min(taken) for taken in zip(*turns, strict=True)]


def timed_by(clock: Callable[[], float], call: Callable[[], object]) -> float:
    start = clock()
    call()
    return clock() - start


def measure(size: str, report: Report) -> None:
    from relplot import smECE
    from torchmetrics.classification import MulticlassCalibrationError
    from torchmetrics.functional.classification import multiclass_calibration_error

    n, k, m = SIZES[size]
    logits, labels = data(n, k, m)
    print(f"{size}: {n:,} x {k}")
    repeats = 5 if n * k > 10**6 else 300
    metric = MulticlassCalibrationError(k, 15)
    ours, all_of_ours, only_ece, theirs, theirs_in_class, reference, sort = seconds(
        lambda: top_label(logits, labels),
        lambda: everything(logits, labels),
        lambda: one_metric(logits, labels),
        lambda: multiclass_calibration_error(logits, labels, k, 15),
        lambda: (metric.reset(), metric(logits, labels)),
        lambda: torch.logsumexp(logits, 1),
        lambda: np.argsort(np.random.default_rng(0).random(n)),
        repeats=repeats,
    )
    small = size == "10k"
    detail = f"{1e3 * ours:.2f} ms; {1e3 * theirs:.2f}, {1e3 * theirs_in_class:.2f}"
    report("top-label metrics / torchmetrics' ECE function", ours / theirs, 0.8 if small else 1, detail)
    report("top-label metrics / torchmetrics' ECE class", ours / theirs_in_class, 0.8 if small else 1, detail)
    if small:
        report("ECE alone / torchmetrics' ECE function", only_ece / theirs, 0.35, f"{1e3 * only_ece:.2f} ms")
    else:
        unit = 2 * reference + 4 * sort
        shown = f"{1e3 * ours:.1f} ms; logsumexp {1e3 * reference:.1f}, sort {1e3 * sort:.1f}"
        report("top-label metrics / (2 logsumexp + 4 sorts)", ours / unit, 0.22, shown)
        report("every metric / (2 logsumexp + 4 sorts)", all_of_ours / unit, 0.35, f"{1e3 * all_of_ours:.1f} ms")
        one, two = wall_times(lambda: everything(logits, labels), 1, 2)
        report(
            "every metric, wall time of two threads / one", two / one, 1 / 1.6, f"{1e3 * two:.1f}; {1e3 * one:.1f} ms"
        )

    o = Predictions.from_logits(logits, labels).outcomes()
    c, correct = o.confidence, o.correct.astype(float)
    smooth, relplot = seconds(
        lambda: metrics.smooth_ece(Outcomes(o.confidence, o.correct)),
        lambda: smECE(c, correct),
        repeats=3,
    )
    report("smooth ECE with its sort / relplot", smooth / relplot, 1, f"{1e3 * smooth:.1f} ms; {1e3 * relplot:.1f}")

    if size != "1M":
        bound = 1 / 8 if size == "50k" else 1
        predictions = Predictions.from_probabilities(logits.softmax(1), labels)
        peers = classwise_peers(predictions.values, labels)
        classwise, *others = seconds(
            lambda: metrics.classwise_ece(predictions), *peers.values(), repeats=1 if k > 10 else 5
        )
        for peer, took in zip(peers, others, strict=True):
            report(f"classwise ECE / {peer}", classwise / took, bound, f"{1e3 * classwise:.1f} ms; {1e3 * took:.0f}")

    extra = extra_memory(size)
    report("memory beyond input and columns, MB", extra, 100, "")


def main() -> None:
    if "--memory" in sys.argv:
        print_extra_memory(sys.argv[-1])
        return
    report = Report()
    for size in sys.argv[1:] or SIZES:
        measure(size, report)
    if report.missed:
        sys.exit(f"{report.missed} bounds missed")


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    main()
