"""Verdicts: the effect of a claim over seeds and test samples, its interval, and whether it is what was claimed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from math import ceil, hypot, inf, nan, sqrt
from typing import Literal

import numpy as np

from assay._core.arrays import Floats, InputError
from assay.claims._claims import Claim, Side
from assay.claims._evidence import Evidence
from assay.metrics import COMPARED, Tables
from assay.metrics.inference import Estimate, Interval, Withheld, mean_estimate, moderated
from assay.predictions import Outcomes
from assay.study._shifts import MADE, corruption_and_severity

Word = Literal["confirmed", "contradicted", "inconclusive", "not run"]
LEVEL = 0.05  # chance that any interval of a regime misses
LEAST = 3  # seeds: with two, the noise of training is not known well enough to keep that level
PART = "calibration_part"
BY_PART = ("ece", "ece_l2_mass")  # decided by the calibration part, whose difference has a test of known level
OF_COLUMNS = ("overconfidence", "s99")  # means over samples
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


@dataclass(frozen=True)
class _Kept:
    """What is kept of a regime, and how sure its intervals must be to hold together."""

    evidence: Evidence
    level: float

    @cached_property
    def tables(self) -> dict[tuple[Side, int], Tables]:
        return {key: Tables(o) for key, o in self.evidence.samples.items()}

    @property
    def recipes(self) -> list[str]:
        return [*dict.fromkeys(of.recipe for of, _ in self.tables)]


def judge(claims: Sequence[Claim], kept: Mapping[str, Evidence]) -> list[Judged]:
    """Every claim in every regime that is kept; intervals of a regime hold together at 95 % (Bonferroni)."""
    judged = []
    for regime, evidence in kept.items():
        here = [claim for claim in claims if regime in claim.regime]
        together = sum(max(len(claim.others(evidence.recipes)), 1) for claim in here)
        known = _Kept(evidence, 1 - LEVEL / 2 / max(together, 1))
        for claim in here:
            others: list[Side | None] = [*claim.others(evidence.recipes)] or [None]
            judged.append(Judged(claim, regime, tuple(_compared(claim, known, other) for other in others)))
    return judged


def best_or_tied(evidence: Evidence, metric: str) -> list[str]:
    """The recipe of the best mean, and those that are not shown to be worse; together at 95 %, of at least three seeds.

    `metric` has a paired test: auroc, or calibration_part instead of ECE.
    """
    seeds = {recipe: evidence.seeds(Side(recipe)) for recipe in evidence.recipes}
    known = [recipe for recipe, own in seeds.items() if len(own) >= LEAST]
    if len(known) < 2:
        return []
    kept, sign = _Kept(evidence, 1 - LEVEL / (len(known) - 1)), 1 if COMPARED[metric].better == "higher" else -1
    means = {r: sign * float(np.mean([_value(metric, kept.tables[Side(r), s]) for s in seeds[r]])) for r in known}
    best = max(known, key=means.__getitem__)

    def worse(recipe: str) -> bool:
        common = [seed for seed in seeds[recipe] if seed in seeds[best]]
        _, _, interval = _over_seeds(metric, kept, Side(recipe), Side(best), common)
        return interval.high < 0 if sign > 0 else interval.low > 0

    return [best, *(recipe for recipe in known if recipe != best and not worse(recipe))]


def _compared(claim: Claim, kept: _Kept, other: Side | None) -> Comparison:
    name = "0" if other is None else _name(claim.side, other)
    if claim.epochs or claim.split == MADE or claim.metric in OF_SEEDS:
        return _of_numbers(claim, kept, other, name)
    if claim.metric not in (*OF_COLUMNS, *COMPARED):
        raise InputError(f"the claim '{claim.id}' is on '{claim.metric}', which is no metric")
    seeds = kept.evidence.seeds(claim.side)
    if other is not None:
        seeds = [seed for seed in seeds if (other, seed) in kept.tables]
    if len(seeds) < LEAST:
        return Comparison(name, nan, nan, None, "not run", len(seeds))
    if claim.metric in BY_PART:
        return _by_part(claim, kept, other, name, seeds)
    a, b, interval = _over_seeds(claim.metric, kept, claim.side, other, seeds)
    return _decided(claim, name, a, b, interval)


def _name(side: Side, other: Side) -> str:
    """The other side, by what differs."""
    parts = [theirs for own, theirs in zip(side, other, strict=True) if own != theirs]
    return ", ".join(parts) or other.recipe


def _over_seeds(
    metric: str, kept: _Kept, side: Side, other: Side | None, seeds: Sequence[int]
) -> tuple[Floats, Floats, Interval]:
    """The values of the other side and of this one, and the interval of their difference."""

    def values(of: Side) -> dict[int, float]:
        return {seed: _value(metric, kept.tables[of, seed]) for seed in kept.evidence.seeds(of)}

    b = [kept.tables[side, seed] for seed in seeds]
    a = None if other is None else [kept.tables[other, seed] for seed in seeds]
    values_b = np.array([_value(metric, t) for t in b])
    values_a = np.zeros(len(b)) if a is None else np.array([_value(metric, t) for t in a])
    noise = _training(kept.recipes, side, other, seeds, values), _of_samples(metric, a, b)
    return values_a, values_b, _interval(float((values_b - values_a).mean()), noise, kept.level)


def _interval(effect: float, noise: Iterable[Estimate], level: float) -> Interval:
    """Half widths of independent noises add up as their errors do.

    Satterthwaite's degrees of freedom would make less of the one of few degrees than far tails allow: families of 13
    comparisons of methods with unlike noise were wrong up to 10 % of the time, and so at most 5.2 %.
    """
    half = hypot(*(one.half(level) for one in noise))
    return Interval(effect - half, effect + half)


def _value(metric: str, t: Tables) -> float:
    return float(_column(metric, t).mean()) if metric in OF_COLUMNS else t.once(COMPARED[metric].of)


def _of_samples(metric: str, a: Sequence[Tables] | None, b: Sequence[Tables]) -> Estimate:
    """The difference of the means over seeds, with the noise of the samples."""
    if metric in OF_COLUMNS:
        zero: list[Floats] = [np.zeros(1)] * len(b)
        others = zero if a is None else [_column(metric, t) for t in a]
        return mean_estimate(np.mean([_column(metric, y) - x for x, y in zip(others, b, strict=True)], axis=0))
    record = COMPARED[metric]
    if record.paired is None or a is None:
        raise InputError(f"no claim can be made on '{metric}': its difference has no test of known level")
    found = record.paired(a, b)
    if isinstance(found, Withheld):
        raise InputError(f"the claim on {metric} cannot be judged: {found.reason}")
    return found.estimate


def _column(metric: str, t: Tables) -> Floats:
    """Of each sample what the metric is the mean of."""
    outcomes: Outcomes = t.outcomes
    if metric == "s99":
        return (outcomes.confidence >= 0.99).astype(np.float64)
    return outcomes.confidence - outcomes.correct


def _training(
    recipes: Iterable[str],
    side: Side,
    other: Side | None,
    seeds: Sequence[int],
    values: Callable[[Side], Mapping[int, float]],
) -> Estimate:
    """The noise of training in the difference over seeds; variances that borrow from the same ones are not independent.

    The same runs corrected in two ways differ by less than their seeds do.
    """

    def of(kind: Side) -> dict[str, Mapping[int, float]]:
        return {recipe: values(kind._replace(recipe=recipe)) for recipe in recipes}

    if other is None or other.recipe != side.recipe:
        both = [_borrowing(each.recipe, of(each), seeds) for each in (side, other) if each is not None]
        return Estimate(0.0, hypot(*(one.error for one in both)), min(one.degrees for one in both))
    a, b = of(other), of(side)
    change = {
        recipe: {seed: b[recipe][seed] - a[recipe][seed] for seed in a[recipe].keys() & b[recipe]} for recipe in b
    }
    return _borrowing(side.recipe, change, seeds)


def _borrowing(own: str, values: Mapping[str, Mapping[int, float]], seeds: Sequence[int]) -> Estimate:
    """The mean over seeds of a recipe, with a variance between seeds that the other recipes lend strength to."""
    columns = {recipe: np.array([of[seed] for seed in seeds if seed in of]) for recipe, of in values.items()}
    known = {recipe: column for recipe, column in columns.items() if len(column) > 1}
    return dict(zip(known, moderated([*known.values()]), strict=True))[own]


def _by_part(claim: Claim, kept: _Kept, other: Side | None, name: str, seeds: Sequence[int]) -> Comparison:
    """ECE, decided by the calibration part: its interval is turned into one of its root, which has the unit of ECE.

    The noise of training is that of ECE itself. A square varies with its size: on the scale of the part one badly
    calibrated recipe would lend its noise to all others.
    """
    if other is None:
        raise InputError(f"the claim '{claim.id}' compares ECE with nothing: say against what")

    def values(of: Side, metric: str = claim.metric) -> dict[int, float]:
        return {seed: _value(metric, kept.tables[of, seed]) for seed in kept.evidence.seeds(of)}

    there, here = (float(np.mean([values(of, PART)[seed] for seed in seeds])) for of in (other, claim.side))
    runs = ([kept.tables[of, seed] for seed in seeds] for of in (other, claim.side))
    half = _of_samples(PART, *runs).half(kept.level)
    effect, low, high = (_root(here + shift) - _root(there) for shift in (0.0, -half, half))
    noise = _training(kept.recipes, claim.side, other, seeds, values).half(kept.level)
    interval = Interval(max(effect - hypot(effect - low, noise), -_root(there)), effect + hypot(high - effect, noise))
    a, b = (np.array([values(of)[seed] for seed in seeds]) for of in (other, claim.side))
    return _decided(claim, name, a, b, interval)


def _root(part: float) -> float:
    """Of a calibration part, which is unbiased and may be negative."""
    return sqrt(max(part, 0.0))


def _of_numbers(claim: Claim, kept: _Kept, other: Side | None, name: str) -> Comparison:
    """A number that has no samples: the difference over seeds, and the noise of training alone."""
    if claim.metric == "best_strength":
        b, a = _best_strengths(kept.evidence)
    else:
        b = _by_seed(claim, kept.evidence, claim.side)
        a = dict.fromkeys(b, 0.0) if other is None else _by_seed(claim, kept.evidence, other)
    seeds = sorted(a.keys() & b.keys())
    values_a, values_b = (np.array([side[seed] for seed in seeds]) for side in (a, b))
    if len(seeds) < LEAST:
        return Comparison(name, nan, nan, None, "not run", len(seeds))
    if claim.metric == "best_strength":
        training = mean_estimate(values_b - values_a)
    else:
        recipes, read = kept.evidence.recipes, partial(_by_seed, claim, kept.evidence)
        training = _training(recipes, claim.side, other, seeds, read)
    interval = _interval(float((values_b - values_a).mean()), [training], kept.level)
    return _decided(claim, name, values_a, values_b, interval)


def _by_seed(claim: Claim, evidence: Evidence, side: Side) -> dict[int, float]:
    wanted = {"recipe": side.recipe}
    if claim.split == MADE:
        rows = [row for row in evidence.numbers if _fits(row, claim, side)]
        seeds = sorted({row["seed"] for row in rows})
        return {seed: float(np.mean([row["value"] for row in rows if row["seed"] == seed])) for seed in seeds}
    if claim.metric == "temperature_distance":
        if "temperature" not in side.calibrator:
            raise InputError(f"the claim '{claim.id}' is on a temperature: name the calibrator that fits it")
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
        asked = ("ece", size, None, "test")
        rows = [
            row for row in evidence.numbers if tuple(row[k] for k in ("name", "n_train", "epoch", "split")) == asked
        ]
        best = {
            seed: min((row for row in rows if row["seed"] == seed), key=lambda row: row["value"])["method"]
            for seed in {row["seed"] for row in rows}
        }
        found.append({seed: float(str(method).rpartition("=")[2]) for seed, method in best.items()})
    return found[0], found[1]


def _decided(claim: Claim, name: str, a: Floats, b: Floats, interval: Interval) -> Comparison:
    effect = float((b - a).mean())
    word = _word(claim, effect, interval)
    return Comparison(
        name, float(a.mean()), float(b.mean()), interval, word, len(a), _more(claim, effect, interval, word)
    )


def _word(claim: Claim, effect: float, interval: Interval) -> Word:
    """The verdict."""
    effect, low, high = _oriented(claim, effect, interval)
    if claim.expects.startswith("not_"):  # not worse by more than the margin
        return "confirmed" if low > -claim.margin else "contradicted" if high < -claim.margin else "inconclusive"
    if low > 0 and effect >= claim.margin:
        return "confirmed"
    return "contradicted" if high < 0 else "inconclusive"


def _oriented(claim: Claim, effect: float, interval: Interval) -> tuple[float, float, float]:
    """Effect and ends of the interval; a claim that something is lower is one that its negative is higher."""
    if claim.expects in ("lower", "not_higher"):
        return -effect, -interval.high, -interval.low
    return effect, interval.low, interval.high


def _more(claim: Claim, effect: float, interval: Interval, word: Word) -> float:
    """How many times the data would decide at the same effect, as widths fall by the root; infinite if none would."""
    if word != "inconclusive":
        return nan
    effect, low, high = _oriented(claim, effect, interval)
    beyond = effect + claim.margin if claim.expects.startswith("not_") else effect  # of what decides
    reach = effect - low if beyond > 0 else high - effect
    return inf if reach < abs(beyond) or beyond == 0 else float(ceil(10 * (reach / beyond) ** 2) / 10)
