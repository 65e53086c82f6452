"""Verdicts: the effect of a claim over seeds and test samples, its interval, and whether it is what was claimed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, inf, nan, sqrt
from typing import Literal

import numpy as np

from assay._core.arrays import Floats, InputError
from assay.claims._claims import Claim, Side
from assay.claims._evidence import Evidence
from assay.metrics import COMPARED, Tables
from assay.metrics.inference import Change, Estimate, Interval, mean_estimate, of_runs
from assay.predictions import Outcomes
from assay.study._shifts import MADE, corruption_and_severity

Word = Literal["confirmed", "contradicted", "inconclusive", "not run"]
LEVEL = 0.05  # chance that any interval of a regime misses
BY_PART = ("ece", "ece_l2_mass")  # decided by the calibration part, whose difference has a test of known level
OF_SEEDS = ("temperature_distance", "learned_epoch_spread", "best_strength")  # numbers without samples


@dataclass(frozen=True)
class Comparison:
    """A claim against one other side: the difference, its interval and the verdict."""

    against: str
    a: float  # the other side's value, mean over seeds
    b: float  # the method's
    interval: Interval | None  # of what decides: of b - a, or of the root of the calibration part
    word: Word
    seeds: int
    more: float = nan  # of an inconclusive one, how many times the samples and seeds would decide at this effect

    @property
    def effect(self) -> float:
        return self.b - self.a


@dataclass(frozen=True)
class Judged:
    """A claim in one regime."""

    claim: Claim
    regime: str
    comparisons: tuple[Comparison, ...]

    @property
    def word(self) -> Word:
        """Confirmed against each, contradicted against any, else inconclusive."""
        words = {comparison.word for comparison in self.comparisons}
        if "not run" in words:
            return "not run"
        if words == {"confirmed"}:
            return "confirmed"
        return "contradicted" if "contradicted" in words else "inconclusive"

    @property
    def weakest(self) -> Comparison:
        """The comparison that supports the claim least."""
        order: list[Word] = ["not run", "contradicted", "inconclusive", "confirmed"]
        sign = 1 if self.claim.expects in ("higher", "not_lower") else -1
        return min(self.comparisons, key=lambda c: (order.index(c.word), sign * c.effect))


def judge(claims: Sequence[Claim], kept: Mapping[str, Evidence]) -> list[Judged]:
    """Every claim in every regime that is kept; intervals of a regime hold together at 95 % (Bonferroni)."""
    judged = []
    for regime, evidence in kept.items():
        here = [claim for claim in claims if regime in claim.regime]
        level = 1 - LEVEL / 2 / max(sum(max(len(claim.others(evidence.recipes)), 1) for claim in here), 1)
        for claim in here:
            others: list[Side | None] = [*claim.others(evidence.recipes)] or [None]
            comparisons = tuple(_compared(claim, evidence, other, level) for other in others)
            judged.append(Judged(claim, regime, comparisons))
    return judged


def _compared(claim: Claim, evidence: Evidence, other: Side | None, level: float) -> Comparison:
    name = "0" if other is None else _name(claim.side, other)
    if claim.epochs or claim.split == MADE or claim.metric in OF_SEEDS:
        return _of_numbers(claim, evidence, other, name, level)
    seeds = evidence.seeds(claim.side)
    if other is not None:
        seeds = [seed for seed in seeds if (other, seed) in evidence.samples]
    b = [Tables(evidence.samples[claim.side, seed]) for seed in seeds]
    a = [None if other is None else Tables(evidence.samples[other, seed]) for seed in seeds]
    if len(seeds) < 2:
        return Comparison(name, nan, nan, None, "not run", len(seeds))
    if claim.metric in BY_PART:
        return _by_part(claim, other, [x for x in a if x is not None], b, level)
    values_a, values_b, estimates = _of_samples(claim.metric, a, b)
    estimate = _over_seeds(values_a, values_b, estimates, same_runs=other is not None and other.recipe == claim.method)
    return _comparison(claim, name, values_a, values_b, estimate, level)


def _over_seeds(a: Floats, b: Floats, estimates: list[Estimate], *, same_runs: bool) -> Estimate:
    """The difference over seeds and samples; the same runs corrected in two ways differ by less than their seeds do."""
    return of_runs(np.zeros_like(b), b - a, estimates) if same_runs else of_runs(a, b, estimates)


def _name(side: Side, other: Side) -> str:
    """The other side, by what differs."""
    parts = [theirs for own, theirs in zip(side, other, strict=True) if own != theirs]
    return ", ".join(parts) or other.recipe


def _of_samples(metric: str, a: Sequence[Tables | None], b: Sequence[Tables]) -> tuple[Floats, Floats, list[Estimate]]:
    """Values of both sides and the paired estimate of each seed."""
    if metric in ("overconfidence", "s99"):
        columns = [_column(metric, y) - (0.0 if x is None else _column(metric, x)) for x, y in zip(a, b, strict=True)]
        values_a = np.array([0.0 if x is None else _column(metric, x).mean() for x in a])
        return values_a, np.array([_column(metric, y).mean() for y in b]), [mean_estimate(c) for c in columns]
    record = COMPARED.get(metric)
    if record is None or record.paired is None or None in a:
        raise InputError(f"no claim can be made on '{metric}': its difference has no test of known level")
    pairs = [(x, y) for x, y in zip(a, b, strict=True) if x is not None]
    changes = [record.paired(x, y) for x, y in pairs]
    withheld = [change for change in changes if not isinstance(change, Change)]
    if withheld:
        raise InputError(f"the claim on {metric} cannot be judged: {withheld[0].reason}")
    values = [np.array([pair[side].once(record.of) for pair in pairs]) for side in (0, 1)]
    return values[0], values[1], [change.estimate for change in changes if isinstance(change, Change)]


def _column(metric: str, t: Tables) -> Floats:
    """Of each sample what the metric is the mean of."""
    outcomes: Outcomes = t.outcomes
    if metric == "s99":
        return (outcomes.confidence >= 0.99).astype(np.float64)
    return outcomes.confidence - outcomes.correct


def _by_part(claim: Claim, other: Side | None, a: Sequence[Tables], b: Sequence[Tables], level: float) -> Comparison:
    """ECE, decided by the calibration part: its interval is turned into one of its root, which has the unit of ECE."""
    if other is None:
        raise InputError(f"the claim '{claim.id}' compares ECE with nothing: say against what")
    values_a, values_b = (np.array([x.once(COMPARED[claim.metric].of) for x in side]) for side in (a, b))
    parts_a, parts_b, estimates = _of_samples("calibration_part", a, b)
    estimate = _over_seeds(parts_a, parts_b, estimates, same_runs=other.recipe == claim.method)
    there = max(float(parts_a.mean()), 0.0)

    def root(difference: float) -> float:
        return sqrt(max(there + difference, 0.0)) - sqrt(there)

    interval = estimate.interval(level)
    found = Interval(root(interval.low), root(interval.high))
    effect = float(values_b.mean() - values_a.mean())
    word = _word(claim, effect, found)
    more = _more(claim, effect, found, word)
    name = _name(claim.side, other)
    return Comparison(name, float(values_a.mean()), float(values_b.mean()), found, word, len(a), more)


def _of_numbers(claim: Claim, evidence: Evidence, other: Side | None, name: str, level: float) -> Comparison:
    """A number that has no samples: the difference of each seed, and the variance of seeds alone."""
    if claim.metric == "best_strength":
        b, a = _best_strengths(evidence)
    else:
        b = _by_seed(claim, evidence, claim.side)
        a = dict.fromkeys(b, 0.0) if other is None else _by_seed(claim, evidence, other)
    seeds = sorted(a.keys() & b.keys())
    values_a, values_b = (np.array([side[seed] for seed in seeds]) for side in (a, b))
    if len(seeds) < 2:
        return Comparison(name, nan, nan, None, "not run", len(seeds))
    return _comparison(claim, name, values_a, values_b, mean_estimate(values_b - values_a), level)


def _by_seed(claim: Claim, evidence: Evidence, side: Side) -> dict[int, float]:
    wanted = {"recipe": side.recipe}
    if claim.split == MADE:
        rows = [row for row in evidence.numbers if _fits(row, claim, side)]
        seeds = sorted({row["seed"] for row in rows})
        return {seed: float(np.mean([row["value"] for row in rows if row["seed"] == seed])) for seed in seeds}
    if claim.metric == "temperature_distance":
        found = evidence.number(claim.metric, calibrator=side.calibrator, **wanted)
    elif claim.epochs is None or claim.metric == "weight_norm":
        found = evidence.number(claim.metric, **wanted)
    else:
        found = evidence.number(f"test_{claim.metric}", **wanted)
    return {seed: _of_epochs(claim, values) for seed, values in found.items()}


def _fits(row: dict[str, object], claim: Claim, side: Side) -> bool:
    corrupted = corruption_and_severity(str(row["split"]))[0] is not None
    own = (row["name"], row["recipe"], row["calibrator"]) == (claim.metric, side.recipe, side.calibrator)
    return corrupted and own


def _of_epochs(claim: Claim, values: Floats) -> float:
    """What a claim on epochs reads from the values of all epochs."""
    last, half = float(values[-1]), len(values) // 2
    if claim.epochs == "last_less_middle":
        return last - float(values[half - 1])
    if claim.epochs == "last_less_best":  # of the last quarter, after the last drop of the rate
        return last - float(values[3 * len(values) // 4 :].max())
    return float(values[max(len(values) // 8 - 1, 0)]) if claim.epochs == "eighth" else last


def _best_strengths(evidence: Evidence) -> tuple[dict[int, float], dict[int, float]]:
    """By seed, the strength of least ECE with the most and with the fewest training samples."""
    sizes = sorted({row["n_train"] for row in evidence.numbers})
    if len(sizes) < 2:
        return {}, {}
    found: list[dict[int, float]] = []
    for size in (sizes[-1], sizes[0]):
        rows = [row for row in evidence.numbers if (row["name"], row["n_train"], row["epoch"]) == ("ece", size, None)]
        best = {
            seed: min((row for row in rows if row["seed"] == seed), key=lambda row: row["value"])["method"]
            for seed in {row["seed"] for row in rows}
        }
        found.append({seed: float(str(method).rpartition("=")[2]) for seed, method in best.items()})
    return found[0], found[1]


def _comparison(claim: Claim, name: str, a: Floats, b: Floats, estimate: Estimate, level: float) -> Comparison:
    interval = estimate.interval(level)
    word = _word(claim, estimate.value, interval)
    more = _more(claim, estimate.value, interval, word)
    return Comparison(name, float(a.mean()), float(b.mean()), interval, word, len(a), more)


def _word(claim: Claim, effect: float, interval: Interval) -> Word:
    """The verdict; a claim that something is lower is one that its negative is higher."""
    low, high = interval.low, interval.high
    if claim.expects in ("lower", "not_higher"):
        effect, low, high = -effect, -high, -low
    if claim.expects.startswith("not_"):  # not worse by more than the margin
        return "confirmed" if low > -claim.margin else "contradicted" if high < -claim.margin else "inconclusive"
    if low > 0 and effect >= claim.margin:
        return "confirmed"
    return "contradicted" if high < 0 else "inconclusive"


def _more(claim: Claim, effect: float, interval: Interval, word: Word) -> float:
    """How many times the data an interval around the same effect would need to decide; its width falls by the root."""
    if word != "inconclusive":
        return nan
    sign = -1 if claim.expects in ("lower", "not_higher") else 1
    border = -claim.margin if claim.expects.startswith("not_") else 0.0
    distance = abs(sign * effect - border)
    return float(ceil(10 * ((interval.high - interval.low) / 2 / distance) ** 2) / 10) if distance > 0 else inf
