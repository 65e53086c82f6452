"""How fast maps are fitted, and how well: ratios against other libraries in one run on one thread.

    python benchmarks/correct.py [temperature] [grid] [affine] [histogram]

Exits with an error where a bound is missed.
"""

from __future__ import annotations

import contextlib
import io
import sys
import warnings

import numpy as np
import torch
from measure import data
from timing import seconds, timed
from torch import Tensor

from assay import Predictions, maps
from assay.calibrators import dirichlet, histogram_one_vs_rest, temperature, temperature_by_ece, vector

missed: list[str] = []


def line(what: str, value: float, bound: float, *, at_least: bool = False) -> None:
    held = value >= bound if at_least else value <= bound
    sign = ">=" if at_least else "<="
    print(f"  {what:58s} {value:10.3g}   must be {sign} {bound:g}{'' if held else '   MISSED'}", flush=True)
    if not held:
        missed.append(what)


def nll(logits: Tensor, labels: Tensor) -> float:
    return sum(
        float((z.double().logsumexp(1) - z.double().gather(1, y[:, None]).squeeze(1)).sum())
        for z, y in zip(logits.split(10_000), labels.split(10_000), strict=True)
    ) / len(labels)


def temperature_bench() -> None:
    """scikit-learn is the fastest peer that reaches the optimum."""
    from sklearn.calibration import _TemperatureScaling

    for n, k, m in ((50_000, 1000, 4.5), (1_000_000, 100, 3.8)):
        logits, labels = data(n, k, m)
        held_out = Predictions.from_logits(logits, labels)
        (ours,) = seconds(lambda h=held_out: temperature(h), repeats=3)
        theirs, fitted = timed(lambda z=logits, y=labels: _TemperatureScaling().fit(z.numpy(), y.numpy()))
        t, beta = temperature(held_out).t, float(fitted.beta_)
        print(f"temperature by NLL, ({n}, {k}): {ours:.2f} s, scikit-learn {theirs:.2f} s")
        line("times faster than scikit-learn", theirs / ours, 15, at_least=True)
        line("NLL above scikit-learn's", nll(logits / t, labels) - nll(logits * beta, labels), 1e-9)


def grid_bench() -> None:
    logits, labels = data(10_000, 10, 3.0)
    held_out = Predictions.from_logits(logits, labels)
    ours, plain = seconds(
        lambda: temperature_by_ece(held_out),
        lambda: [(logits / t).softmax(1) for t in np.arange(1, 1001) / 100],
        repeats=3,
    )
    print(f"1,000 temperatures by ECE, (10000, 10): {ours:.2f} s, of which softmax alone takes {plain:.2f} s")
    line("ECE grid / 1,000 softmax(z / t)", ours / plain, 1.5)


def affine_bench() -> None:
    from probmetrics.calibrators import SMSCalibrator, SVSCalibrator, VectorScalingCalibrator
    from probmetrics.distributions import CategoricalLogits

    (z, y), n = data(20_000, 100, 3.8), 10_000
    held_out, test = Predictions.from_logits(z[:n], y[:n]), Predictions.from_logits(z[n:], y[n:])
    peers = {"vector": VectorScalingCalibrator, "SVS (vector)": SVSCalibrator, "SMS (matrix)": SMSCalibrator}
    for calibrator, names in ((vector, ("vector", "SVS (vector)")), (dirichlet, ("SMS (matrix)",))):
        (ours,) = seconds(lambda f=calibrator: f(held_out), repeats=3)
        found = float(maps.apply(calibrator(held_out), test).outcomes().nll.mean())
        print(f"{calibrator.__name__}, (10000, 100): {ours:.2f} s, held-out NLL {found:.4f}")
        for name in names:
            with contextlib.redirect_stdout(io.StringIO()):
                peer = peers[name]()
                theirs, _ = timed(lambda p=peer: p.fit_torch(CategoricalLogits(z[:n]), y[:n]))
                logits = peer.predict_proba_torch(CategoricalLogits(z[n:])).get_logits()
            loss = nll(logits.detach(), y[n:])
            print(f"  probmetrics {name}: {theirs:.2f} s, held-out NLL {loss:.4f}")
            line(f"{calibrator.__name__} / {name}, time", ours / theirs, 1)
            line(f"{calibrator.__name__} - {name}, held-out NLL", found - loss, 0)


def histogram_bench() -> None:
    from netcal.binning import HistogramBinning

    logits, labels = data(50_000, 1000, 4.5)
    held_out = Predictions.from_logits(logits, labels)
    (ours,) = seconds(lambda: histogram_one_vs_rest(held_out), repeats=3)
    p = logits.softmax(1).numpy()
    theirs, _ = timed(lambda: HistogramBinning(bins=15).fit(p, labels.numpy()))
    print(f"one-vs-rest histogram, (50000, 1000): {ours:.2f} s, netcal {theirs:.2f} s")
    line("times faster than netcal", theirs / ours, 4, at_least=True)


BENCHES = {
    "temperature": temperature_bench,
    "grid": grid_bench,
    "affine": affine_bench,
    "histogram": histogram_bench,
}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    for name in sys.argv[1:] or BENCHES:
        BENCHES[name]()
    sys.exit(f"missed: {'; '.join(missed)}" if missed else 0)
