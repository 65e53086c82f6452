"""The compiled loops under address and undefined-behavior sanitizers, by random calls of public functions.

`python tests/sanitized.py --calls 200000` copies the package, compiles its loops there with both sanitizers, and makes
the calls in a process that ends at the first access outside an array, and at the first undefined operation. Half of the
calls are given arrays that do not fit each other or hold anything: they may raise, never crash.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from runpy import run_path
from tempfile import TemporaryDirectory
from typing import Any
from warnings import simplefilter

import numpy as np

ROOT = Path(__file__).parents[1]
FLAGS = ["-O1", "-g", "-fno-trapping-math", "-ffp-contract=off", "-fPIC", "-shared", "-fno-omit-frame-pointer"]
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
ODD = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 1e308, -1e308, 5e-324, 1e-300, 1 - 2**-53, 0.5, 2.0)


def main() -> int:
    """Build the library and start the calls."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=200_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--here", action="store_true", help="make the calls in this process, with its library")
    given = parser.parse_args()
    if given.here:
        made = call_all(given.first, given.calls)
        print(f"{sum(made.values()):,} calls:", ", ".join(f"{count:,} {how}" for how, count in made.most_common()))
        return 0
    with TemporaryDirectory(prefix="assay-sanitized-") as folder:
        shutil.copytree(ROOT / "assay", Path(folder, "assay"), ignore=shutil.ignore_patterns("loops-*", "__pycache__"))
        core = Path(folder, "assay", "_core")
        library = run_path(str(core / "library.py"))["library"](core)
        compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
        subprocess.run([compiler, *FLAGS, *SANITIZERS, str(core / "loops.c"), "-o", str(library)], check=True)
        asked = subprocess.run([compiler, "-print-file-name=libasan.so"], check=True, capture_output=True, text=True)
        environment = os.environ | {
            "PYTHONPATH": folder,
            "LD_PRELOAD": asked.stdout.strip(),
            "ASAN_OPTIONS": "detect_leaks=0:halt_on_error=1",  # Python itself keeps memory until its end
            "UBSAN_OPTIONS": "print_stacktrace=1",
            "OMP_NUM_THREADS": "1",
        }
        words = [sys.executable, __file__, "--here", "--calls", str(given.calls), "--first", str(given.first)]
        return subprocess.run(words, env=environment, check=False, cwd=folder).returncode


def call_all(first: int, calls: int) -> Counter[str]:
    """Make the calls, and count how they ended."""
    from assay._core import loops

    if not loops.AVAILABLE:
        raise RuntimeError("the compiled loops are not used here")
    simplefilter("ignore")
    functions = public_functions()
    ended: Counter[str] = Counter()
    for number in range(first, first + calls):
        rng = np.random.default_rng(number)
        try:
            functions[rng.integers(len(functions))](rng)
            ended["ended well"] += 1
        except Exception as why:  # what does not fit is refused in many ways
            ended[f"raised {type(why).__name__}"] += 1
    return ended


def public_functions() -> list[Callable[[np.random.Generator], object]]:
    """Every public way to a compiled loop, given random arguments."""
    from assay import Outcomes, Predictions, metrics
    from assay.calibrators import CALIBRATORS
    from assay.scale import Tally

    def predictions(rng: np.random.Generator) -> Any:
        n, k = (
            int(rng.integers(1, 40)),
            int(rng.choice((2, 3, 5, 8, 9, 17, 1030), p=(0.3, 0.2, 0.2, 0.1, 0.1, 0.09, 0.01))),
        )
        logits = _arranged(rng, 4 * rng.normal(size=(n, k)))
        labels = rng.integers(0, k, n)
        if rng.random() < 0.5:
            return Predictions.from_logits(logits, labels)
        # Past the constructors, which check: anything may stand in the columns.
        odd = _odd(rng, np.array(logits))
        wrong = rng.integers(-3, k + 3, n + int(rng.integers(-1, 2)))
        return Predictions(odd, wrong.astype(rng.choice((np.int64, np.int32))), normalized=bool(rng.random() < 0.5))

    def outcomes(rng: np.random.Generator) -> Any:
        n = int(rng.integers(1, 60))
        confidence = rng.random(n).round(int(rng.integers(1, 9)))
        correct = rng.random(n) < confidence
        if rng.random() < 0.5:
            return Outcomes.from_scores(_arranged(rng, confidence), correct)
        return Outcomes(_odd(rng, confidence), correct[: n - int(rng.integers(0, 2))])

    def ranking(rng: np.random.Generator) -> Any:
        t = int(rng.integers(0, 30))
        lengths = [t, t + 1 + int(rng.integers(-1, 2) * (rng.random() < 0.2)), t + 1]
        return metrics.Ranking(*(_odd(rng, rng.normal(size=max(length, 0)) * 30) for length in lengths))

    def anything(rng: np.random.Generator) -> Any:
        return (predictions, outcomes, ranking)[int(rng.integers(3))](rng)

    def bins(rng: np.random.Generator) -> int:
        return int(rng.choice((-1, 0, 1, 2, 15, 100, 2000)))

    of_anything = [
        *(metrics.ece, metrics.ada_ece, metrics.mce, metrics.debiased_ece, metrics.sweep_ece, metrics.mmce),
        *(metrics.auroc, metrics.aurc, metrics.fpr95, metrics.e_aurc, metrics.augrc, metrics.aupr_error),
        *(
            metrics.isotonic,
            metrics.nll_calibration,
            metrics.brier_calibration,
            metrics.risk_coverage,
            metrics.evaluate,
        ),
    ]
    return [
        *((lambda rng, f=f: f(anything(rng))) for f in of_anything),
        lambda rng: metrics.smooth_ece(anything(rng), grid=64),
        lambda rng: metrics.equal_width(anything(rng), bins(rng)),
        lambda rng: metrics.equal_mass(anything(rng), bins(rng)),
        lambda rng: metrics.mmce(anything(rng), width=float(rng.choice(ODD))),
        lambda rng: metrics.class_bins(predictions(rng), bins(rng), float(rng.choice((0.01, 0.5, *ODD)))),
        lambda rng: metrics.classwise_ece(predictions(rng)),
        lambda rng: metrics.class_bins(predictions(rng)) + metrics.class_bins(predictions(rng)),
        lambda rng: ranking(rng) + ranking(rng),
        lambda rng: predictions(rng).outcomes(),
        lambda rng: Tally.of(anything(rng)),
        lambda rng: Tally.of(outcomes(rng)) + Tally.of(outcomes(rng)),
        lambda rng: Tally.from_bytes(Tally.of(outcomes(rng)).to_bytes()),
        lambda rng: CALIBRATORS["temperature"](predictions(rng)),
        lambda rng: CALIBRATORS["temperature_ece"](predictions(rng), step=0.5),
        lambda rng: CALIBRATORS["isotonic"](anything(rng)),
    ]


def _odd(rng: np.random.Generator, x: Any) -> Any:
    """Some numbers replaced by odd ones."""
    x = x.astype(np.float64).copy()
    for _ in range(int(rng.integers(0, 4)) if x.size else 0):
        x.reshape(-1)[rng.integers(x.size)] = rng.choice(ODD)
    return x


def _arranged(rng: np.random.Generator, x: Any) -> Any:
    """The same numbers in other types and places in memory."""
    how = int(rng.integers(7))
    kinds = (np.float32, np.float64, np.float16, np.dtype(">f8"))
    if how < len(kinds):
        return x.astype(kinds[how])
    if how == 4:
        return np.asfortranarray(x)
    if how == 5:
        return np.repeat(x, 2, axis=-1)[..., ::2]
    return x[::-1][::-1]


if __name__ == "__main__":
    sys.exit(main())
