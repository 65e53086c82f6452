"""What each compiled loop gives: CPU time of its plain twin over its own, on one thread.

    python benchmarks/loops.py

A loop earns its place at 1.5 or more at one of the sizes; exits with an error where one does not.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from timing import seconds

from assay import Predictions, metrics
from assay._core import loops, plain
from assay._core.plain import ClassSums, Grid
from assay.metrics._bins import mass_starts

SIZES = ((10_000, 10, 3.0), (300_000, 100, 3.8))
EARNED = 1.5


def pairs(n: int, k: int, m: float) -> dict[str, tuple[Callable[[], object], Callable[[], object]]]:
    """Each loop beside its twin."""
    rng = np.random.default_rng(0)
    labels, logits = rng.integers(0, k, n), rng.standard_normal((n, k), dtype=np.float32)
    logits[np.arange(n), labels] += m
    logits *= 2 * m
    outcomes = Predictions.from_logits(logits, labels).outcomes()
    r = metrics.ranking(outcomes)
    negated = np.sort(-outcomes.confidence)
    errors = np.sort(-outcomes.confidence[~outcomes.correct])
    upper = np.arange(1, 16) / 15
    columns, correct, at = np.empty((4, n)), np.empty(n, dtype=bool), np.empty(n)
    sums = ClassSums.empty(k, 15, 0.01)

    def both(name: str, *args: object) -> tuple[Callable[[], object], Callable[[], object]]:
        return lambda: getattr(loops, name)(*args), lambda: getattr(plain, name)(*args)

    return {
        "rows": (
            lambda: loops.reduce(logits, labels, normalized=False),
            lambda: plain.reduce(logits, labels, False, columns, correct, None),
        ),
        "rows and classes": (
            lambda: loops.reduce(logits, labels, normalized=False, sums=sums),
            lambda: plain.reduce(logits, labels, False, columns, correct, sums),
        ),
        "moments": both("moments", logits, labels, 0.5),
        "confidence": (lambda: loops.confidence_at(logits, 0.5, at), lambda: plain.confidence(logits, 0.5, at)),
        "runs": (lambda: loops.runs(negated.copy(), errors), lambda: plain.runs(negated.copy(), errors)),
        "finite": (lambda: loops.all_finite(logits), lambda: plain.finite(logits)),
        "areas": both("areas", r.score, r.kept, r.wrong),
        "between": both("between", r.score, r.kept, r.wrong, mass_starts(r, 15)),
        "width_bins": both("width_bins", outcomes.confidence, outcomes.correct, upper),
        "add_to_cells": both("add_to_cells", outcomes.confidence, outcomes.correct, Grid.empty()),
        "majorant": both("majorant", r.kept, r.right),
        "laplacian": both("laplacian", r.score, r.kept, r.wrong, 0.4),
        "residuals": both("residuals", r.score, r.kept, r.wrong, 4096),
        "log_likelihood": both("log_likelihood", r.score, r.kept, r.wrong),
        "sweep": both("sweep", r.kept, r.right, 2, 100),
    }


def main() -> None:
    gains: dict[str, list[float]] = {}
    for size in SIZES:
        for name, (ours, twin) in pairs(*size).items():
            compiled, plainly = seconds(ours, twin, repeats=30 if size[0] <= 10_000 else 5)
            gains.setdefault(name, []).append(plainly / compiled)
    print(f"{'loop':20s}" + "".join(f"{n:>12,} x {k}" for n, k, _ in SIZES))
    for name, gain in gains.items():
        print(f"{name:20s}" + "".join(f"{x:14.1f} x" for x in gain) + ("" if max(gain) >= EARNED else "   NOT EARNED"))
    idle = [name for name, gain in gains.items() if max(gain) < EARNED]
    if idle:
        sys.exit(f"not worth their C: {', '.join(idle)}")


if __name__ == "__main__":
    main()
