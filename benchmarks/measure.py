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

import numpy as np
import torch
from timing import seconds
from torch import Tensor

from assay import Outcomes, Predictions, metrics
from assay.metrics import _evaluate as tables

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
    o = Predictions.from_logits(logits, labels).outcomes()
    r = metrics.ranking(o)
    return tables._of_ranking(r) | tables._of_confidence(o, r, metrics.equal_width(r), metrics.equal_mass(r))


def classwise_peers(p: Tensor, labels: Tensor) -> dict[str, Callable[[], object]]:
    import calibration
    from mapie.metrics.calibration import expected_calibration_error

    table, y = p.numpy(), labels.numpy()

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


def peak() -> float:
    """Highest resident memory, MB."""
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) * 1024 / 1e6


class Report:
    """Prints each figure beside its bound and remembers the missed ones."""

    def __init__(self) -> None:
        self.missed = 0

    def __call__(self, what: str, ratio: float, bound: float, detail: str) -> None:
        word = "ok" if ratio <= bound else "MISSED"
        self.missed += ratio > bound
        print(f"  {what:58s} {ratio:8.3f}  (at most {bound:g})  {word:6s}  {detail}", flush=True)


def measure(size: str, report: Report) -> None:
    from relplot import smECE
    from torchmetrics.classification import MulticlassCalibrationError
    from torchmetrics.functional.classification import multiclass_calibration_error

    n, k, m = SIZES[size]
    logits, labels = data(n, k, m)
    print(f"{size}: {n:,} x {k}")
    repeats = 5 if n * k > 10**6 else 300
    metric = MulticlassCalibrationError(k, 15)
    ours, theirs, theirs_in_class = seconds(
        lambda: top_label(logits, labels),
        lambda: multiclass_calibration_error(logits, labels, k, 15),
        lambda: (metric.reset(), metric(logits, labels)),
        repeats=repeats,
    )
    reference, sort = seconds(
        lambda: torch.logsumexp(logits, 1), lambda: np.argsort(np.random.default_rng(0).random(n)), repeats=repeats
    )
    shown = f"{1e3 * ours:.1f} ms; logsumexp {1e3 * reference:.1f}, sort {1e3 * sort:.1f}"
    if size != "10k":
        report("top-label metrics / (2 logsumexp + 4 sorts)", ours / (2 * reference + 4 * sort), 1, shown)
    report(
        "top-label metrics / torchmetrics' ECE function", ours / theirs, 1, f"{1e3 * ours:.2f} ms; {1e3 * theirs:.2f}"
    )
    detail = f"{1e3 * ours:.2f} ms; {1e3 * theirs_in_class:.2f}"
    report("top-label metrics / torchmetrics' ECE class", ours / theirs_in_class, 1, detail)

    o = Predictions.from_logits(logits, labels).outcomes()
    c, correct = o.confidence.numpy(), o.correct.numpy().astype(float)
    smooth, relplot = seconds(
        lambda: metrics.smooth_ece(metrics.ranking(Outcomes(o.confidence, o.correct))),
        lambda: smECE(c, correct),
        repeats=3,
    )
    report("smooth ECE with its sort / relplot", smooth / relplot, 1, f"{1e3 * smooth:.1f} ms; {1e3 * relplot:.1f}")

    if size != "1M":
        bound = 1 / 8 if size == "50k" else 1
        predictions = Predictions.from_probabilities(logits.softmax(1), labels)
        peers = classwise_peers(predictions.values, labels)
        classwise, *others = seconds(
            lambda: metrics.classwise_ece(metrics.class_bins(predictions)), *peers.values(), repeats=1 if k > 10 else 5
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
