"""Populations whose every metric is known, and how often intervals of samples drawn from them hold the truth.

A population is a set of equally frequent confidences, each right with a known chance. As weighted outcomes, right and
wrong at each confidence in proportion, it gives the true value of every metric. Run as a script it prints the coverage
of all intervals as a table: `python tests/populations.py --draws 600`.
"""

from __future__ import annotations

import argparse
import os
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit
from scipy.stats import binom, norm

from assay import Outcomes, examples, files
from assay._core.arrays import Floats
from assay.metrics import METRICS, Tables
from assay.metrics.inference import Interval

SIZES = (100, 200, 500, 2000, 10_000)
FINE = (np.arange(20_000) + 0.5) / 20_000


@dataclass(frozen=True, eq=False)
class Population:
    """Confidences that are all equally frequent, and the chance that an answer is right at each."""

    confidence: Floats
    chance: Floats

    def draw(self, rng: np.random.Generator, n: int) -> Outcomes:
        row = rng.integers(0, len(self.confidence), n)
        return _scored(self.confidence[row], rng.random(n) < self.chance[row])

    def everybody(self) -> Outcomes:
        c, chance = np.tile(self.confidence, 2), np.append(self.chance, 1 - self.chance)
        correct = np.arange(len(c)) < len(self.chance)
        some = chance > 0
        return replace(_scored(c[some], correct[some]), weights=chance[some])

    def errors(self, n: int) -> float:
        """Errors, or right answers if those are fewer, that a sample of n has on average."""
        rate = float(self.chance.mean())
        return n * min(rate, 1 - rate)


def _scored(c: Floats, correct: np.ndarray) -> Outcomes:
    """As of two classes: the answer has probability c, the other 1 - c."""
    with np.errstate(divide="ignore"):
        nll = -np.log(np.where(correct, c, 1 - c))
    return Outcomes(c, correct, nll=nll, brier=2 * np.where(correct, 1 - c, c) ** 2)


Law = Callable[[int], Population]


def at_any_size(population: Population) -> Law:
    return lambda n: population


def of_accuracy(accuracy: float, confidence: Floats) -> Population:
    """Log-odds of being right that are half as large as stated, but for what gives this accuracy."""
    odds = logit(confidence.clip(1e-12, 1 - 1e-12)) / 2
    shift = brentq(lambda s: float(expit(odds + s).mean()) - accuracy, -20, 20)
    return Population(confidence, expit(odds + shift))


def near_one(errors: float) -> Law:
    """Confidences in [.9999, 1], and so many errors among n on average, rather where confidence is lower."""
    return lambda n: Population(0.9999 + 0.0001 * FINE, 1 - errors / n * (1.5 - FINE))


def steps(values: Iterable[float], shares: Iterable[float], chances: Iterable[float]) -> Population:
    """A few distinct confidences."""
    count = np.round(1000 * np.array(list(shares))).astype(int)
    return Population(np.repeat(list(values), count), np.repeat(list(chances), count))


def _crowded(power: float, least: float = 0.4) -> Floats:
    """Confidences crowded towards 1."""
    return 1 - (1 - least) * FINE**power


def _wavy() -> Population:
    c = _crowded(2)
    sign = np.where(np.ceil(c * 15) % 2 == 0, 1, -1)
    return Population(c, (c - 0.05 * np.where(c > 14 / 15, 1, -sign)).clip(0, 1))


def _rare(shift: float) -> Population:
    """The probability of a class of 1.2 %, its log-odds wrong by `shift`."""
    z = 1.5 * np.sqrt(2) * _normal_quantile(FINE)
    center = brentq(lambda m: float(expit(z + m).mean()) - 0.012, -20, 5)
    return Population(expit(z + center + shift), expit(z + center))


def _normal_quantile(u: Floats) -> Floats:
    from scipy.special import ndtri

    return np.asarray(ndtri(u))


def _example() -> Floats:
    return np.asarray(examples.load().outcomes().confidence)


LAWS: dict[str, Law] = {
    "calibrated, spread evenly": at_any_size(Population(0.3 + 0.7 * FINE, 0.3 + 0.7 * FINE)),
    "5 points over-confident": at_any_size(Population(0.3 + 0.7 * FINE, 0.25 + 0.7 * FINE)),
    "over and under by turns": at_any_size(_wavy()),
    "under-confident": at_any_size(Population(0.2 + 0.6 * FINE, np.sqrt(0.2 + 0.6 * FINE))),
    "a network, calibrated": lambda n: Population(_example(), _example()),
    "a network, accuracy .77": lambda n: of_accuracy(0.77, _example()),
    "near 1, accuracy .92": at_any_size(of_accuracy(0.92, _crowded(12, 0.3))),
    "accuracy .995": at_any_size(of_accuracy(0.995, _crowded(20, 0.5))),
    "accuracy .2": at_any_size(Population(0.1 + 0.8 * FINE, 0.05 + 0.3 * FINE)),
    "3 distinct values": at_any_size(steps([0.99, 0.9, 0.6], [0.6, 0.3, 0.1], [0.95, 0.8, 0.5])),
    # Of these right answers 95.1 % are at .4 or above.
    "10 distinct values": at_any_size(
        steps(np.arange(1, 11) / 10, [0.1] * 10, [0.03, 0.06, 0.1, 0.04, 0.2, 0.3, 0.5, 0.8, 0.9, 0.95])
    ),
    "stated by a language model": at_any_size(
        steps([1.0, 0.95, 0.9, 0.8, 0.5], [0.3, 0.35, 0.2, 0.1, 0.05], [0.85, 0.75, 0.6, 0.5, 0.35])
    ),
    "1.2 % positive, too low": at_any_size(_rare(-1.0)),
    "1.2 % positive, too high": at_any_size(_rare(0.7)),
    **{f"near 1, {k} error{'s' * (k > 1)} of n": near_one(k) for k in (1, 3, 5, 10, 15, 20, 40)},
}
FOLDER = Path(os.environ.get("ASSAY_DATA", "")) / "predictions"


def real_laws() -> dict[str, Law]:
    """Confidences of public networks, and the accuracy that they have."""
    found: dict[str, Law] = {}
    for name in ("cifar10_resnet20_clean", "cifar10_resnet56_clean", "imagenet_effnet_lite0_5000"):
        file = FOLDER / f"{name}.npz"
        if os.environ.get("ASSAY_DATA") and file.exists():
            o = files.read(file).outcomes()
            found[name] = at_any_size(of_accuracy(float(o.correct.mean()), o.confidence.clip(max=1 - 1e-7)))
    return found


@dataclass
class Count:
    """How often an interval was shown and held the truth, and its median width."""

    shown: int = 0
    covered: int = 0
    low: int = 0  # times the truth was below the interval
    width: float = float("nan")

    @property
    def share(self) -> float:
        return self.covered / self.shown if self.shown else float("nan")


def coverage(law: Law, n: int, draws: int, seed: int = 0, keys: Iterable[str] | None = None) -> dict[str, Count]:
    """Coverage of each metric's interval over samples of n.

    One that is shown in less than a hundredth of the samples counts as not shown there.
    """
    rng, population = np.random.default_rng([seed, n]), law(n)
    whole = Tables(population.everybody())
    rules = {key: METRICS[key] for key in (keys or METRICS) if METRICS[key].interval and METRICS[key].needs(whole)}
    truth = {key: metric.of(whole) for key, metric in rules.items()}
    counts, widths = {key: Count() for key in rules}, defaultdict(list)
    for draw in range(draws):
        t = Tables(population.draw(rng, n), draws=200, seed=draw)
        for key, metric in rules.items():
            interval = metric.interval(t)
            if isinstance(interval, Interval):
                counts[key].shown += 1
                counts[key].covered += truth[key] in interval
                counts[key].low += truth[key] < interval.low
                widths[key].append(interval.high - interval.low)
    for key, found in widths.items():
        counts[key].width = float(np.median(found))
    return {key: count if count.shown >= draws / 100 else Count() for key, count in counts.items()}


def too_low(count: Count, least: float = 0.92) -> bool:
    """Whether so few covered cannot be a coverage of `least`: the chance of that is below that of 2 standard errors."""
    return bool(binom.cdf(count.covered, count.shown, least) < norm.cdf(-2)) if count.shown else False


Table = dict[tuple[str, int], dict[str, Count]]


def summary(table: Table) -> str:
    """The lowest coverage of each interval over all laws, by n, in Markdown; of intervals shown in a tenth of draws."""
    sizes = sorted({n for _, n in table})
    keys = [key for key in METRICS if any(key in counts for counts in table.values())]
    lines = [f"| interval | {' | '.join(f'n = {n:,}' for n in sizes)} |", f"|---{'|---' * len(sizes)}|"]
    for key in keys:
        lines.append(f"| `{key}` | {' | '.join(_lowest(table, key, n) for n in sizes)} |")
    return "\n".join(lines)


def _lowest(table: Table, key: str, n: int) -> str:
    found = [counts[key] for (_, size), counts in table.items() if size == n and key in counts]
    often = [count.share for count in found if count.shown >= max(count.shown for count in found) / 10]
    return f"{100 * min(often):.0f}" if often and max(count.shown for count in found) else "–"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=600)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--laws", default="", help="only laws whose name contains this")
    given = parser.parse_args()
    found: Table = {}
    for name, law in (LAWS | real_laws()).items():
        for n in given.sizes if given.laws in name else ():
            found[name, n] = coverage(law, n, given.draws)
            low = {key: round(count.share, 3) for key, count in found[name, n].items() if too_low(count)}
            print(f"{name:30s} {n:6d} {law(n).errors(n):7.1f}", low or "holds", flush=True)
    print(summary(found))
