"""Which thresholds keep a promise: tests at places chosen beforehand, which share the probability of being wrong."""

from __future__ import annotations

from math import ceil, inf, log, log1p

import numpy as np

from assay._core.arrays import Floats
from assay.metrics import Ranking
from assay.thresholds._evidence import Evidence, Looks

STEP = 1.005  # each look takes in .5 % more samples than the last
APART = 10  # a chain of tests starts at the fewest samples that can pass, and again at about each factor of this
SPREAD = 0.25  # share of the doubt for starts at equal distances
MOST = 20  # of those starts
ERRORS = 10  # that the risk allows between two of more than two of them, and in all, at least


def fewest(risk: float, doubt: float) -> int:
    """How many samples it takes to promise a risk if none is an error."""
    return ceil(log(doubt) / log1p(-risk))


def widest(seen: Evidence, risk: float, doubt: float) -> int | None:
    """The last row of the ranking that a chain of tests reaches, if any: samples up to there have at most that risk.

    Tests go from the strictest threshold to the most lenient. One that passes hands its doubt to the next (the
    fallback procedure of Wiens, 2003); after one that fails, the next start begins with its own share.
    """
    r, (units, shares) = seen.ranking, _starts(seen.units, risk, doubt)
    sizes = units * r.n / seen.units
    looks = looks_from(r, ceil(sizes[0] - 1e-6), STEP)
    own = np.zeros(len(looks))
    np.add.at(own, np.minimum(np.searchsorted(r.kept[looks], sizes - 0.5), len(looks) - 1), shares)
    chance = seen.chance(looks, risk, doubt)
    best, carried = None, 0.0
    for look, p, share in zip(looks.tolist(), chance.tolist(), own.tolist(), strict=True):
        carried = carried + share if p <= carried + share else 0.0
        best = look if carried > 0 else best
    return best


def _starts(n: float, risk: float, doubt: float) -> tuple[Floats, Floats]:
    """Numbers of accepted samples at which a chain of tests starts, and their shares of the doubt.

    Most of the doubt starts where the fewest samples can pass; some at equal distances, so that errors among the
    surest answers do not end the search. Where the risk allows too few errors, those could pass nothing.
    """
    n_chains = 1 + int(log(n / fewest(risk, doubt)) / log(APART))
    n_spread = min(MOST, max(2, int(n * risk / ERRORS))) if n * risk >= ERRORS * (1 - 1e-9) else 0
    spread = SPREAD * doubt if n_spread else 0.0
    first = fewest(risk, (doubt - spread) / n_chains)
    sizes = [first * (n / first) ** (np.arange(n_chains) / n_chains)]
    shares = [np.full(n_chains, (doubt - spread) / n_chains)]
    if spread:
        sizes.append(n * np.arange(1, n_spread + 1) / n_spread)
        shares.append(np.full(n_spread, spread / n_spread))
    return np.concatenate(sizes), np.concatenate(shares)


def looks_from(r: Ranking, first: int, step: float) -> Looks:
    """Rows of the ranking that accept `first` samples and then each time `step` as many, to all; ties move together."""
    n_steps = max(ceil(log(r.n / first) / log(step)), 0) if first < r.n else 0
    sizes = np.append(np.floor(first * step ** np.arange(n_steps)), r.n)
    return np.unique(np.searchsorted(r.kept, sizes))


def safest(seen: Evidence, above: float, doubt: float, sizes: Floats | None = None) -> tuple[int, float] | None:
    """The row of the ranking with the smallest risk above a given one that can be promised, and that risk.

    The bounds at all `sizes`, by default twenty at equal distances, hold together, so any of them may be chosen.
    """
    r = seen.ranking
    sizes = r.n * np.arange(1, MOST + 1) / MOST if sizes is None else sizes
    looks = np.unique(np.searchsorted(r.kept, sizes - 1e-9).clip(max=len(r.score)))
    bounds = np.array([seen.bound(look, doubt / len(looks)) for look in looks.tolist()])
    possible = np.flatnonzero((bounds > above) & (bounds < 1))
    if not len(possible):
        return None
    best = possible[bounds[possible].argmin()]
    return int(looks[best]), float(bounds[best])


def midway(r: Ranking, row: int) -> float:
    """The threshold that accepts the samples up to a row of the ranking: midway to the next score, -inf at the end."""
    if row == len(r.score):
        return -inf
    value = float(r.score[row - 1] + r.score[row]) / 2
    # Two neighboring doubles have none between them, and their mean may be the lower one.
    return value if value > r.score[row] else float(r.score[row - 1])
