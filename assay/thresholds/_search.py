"""Which thresholds keep a promise: tests at places chosen beforehand, which share the probability of being wrong."""

from __future__ import annotations

from math import ceil, inf, log, log1p

import numpy as np

from assay._core.arrays import Floats
from assay.metrics import Ranking
from assay.thresholds._evidence import Evidence, Looks

STEP = 1.003  # looks are at least .3 % of samples or errors apart
APART = 10  # a chain of tests starts at the fewest samples that can pass, and again at about each factor of this
SPREAD = 0.4  # share of the doubt for starts at equal distances
MOST = 20  # of those starts
ERRORS = 10  # that the risk allows between two of more than two of them, and in all, at least
FIXED = np.append([0.01, 0.02], np.arange(1, MOST + 1) / MOST)  # shares of the samples whose bounds hold together


def fewest(risk: float, doubt: float) -> int:
    """How many samples it takes to promise a risk if none is an error."""
    return ceil(log(doubt) / log1p(-risk))


def widest(seen: Evidence, risk: float, doubt: float) -> int | None:
    """The last row of the ranking that a chain of tests reaches, if any: samples up to there have at most that risk.

    Tests go from the strictest threshold to the most lenient. One that passes hands its doubt to the next (the
    fallback procedure of Wiens, 2003); after one that fails, the next start begins with its own share.
    """
    r, (units, shares) = seen.shares, _starts(seen.units, risk, doubt)
    sizes = units * r.n / seen.units  # by weight
    looks = _looks(seen, risk, shares[0], ceil(sizes[0] - 1e-6))
    starts = np.searchsorted(r.kept[looks], sizes - 0.5).clip(max=len(looks) - 1)
    own = np.bincount(starts, shares, len(looks))
    chance = seen.chance(looks, risk, doubt)
    best, carried = None, 0.0
    for look, p, share in zip(looks.tolist(), chance.tolist(), own.tolist(), strict=True):
        carried = carried + share if p <= carried + share else 0.0
        best = look if carried > 0 else best
    return best


def first_look(seen: Evidence, risk: float, doubt: float) -> int:
    """The row of the ranking at which the tests for a risk begin; the last where there are too few for any."""
    least = fewest(risk, doubt)
    units = least if seen.units < least else float(_starts(seen.units, risk, doubt)[0][0])
    return min(int(np.searchsorted(seen.shares.kept, units * seen.shares.n / seen.units)), len(seen.shares.score))


def counting(seen: Evidence) -> str:
    """For a message: how much rows tell that do not count as single ones."""
    alone = seen.units == seen.ranking.n
    return "" if alone else f", which count for {seen.units:.3g} by their weights and clusters"


def _starts(n: float, risk: float, doubt: float) -> tuple[Floats, Floats]:
    """Numbers of accepted samples at which a chain of tests starts, and their shares of the doubt.

    Most of the doubt starts where the fewest samples can pass; some at equal distances, so that errors among the
    surest answers do not end the search. Where the risk allows too few errors, those could pass nothing.
    """
    n_chains = 1 + int(log(n / fewest(risk, doubt)) / log(APART))
    equal = _equal_distances(n, risk)
    spread = SPREAD * doubt if len(equal) else 0.0
    first = fewest(risk, (doubt - spread) / n_chains)
    sizes = [first * (n / first) ** (np.arange(n_chains) / n_chains)]
    shares = [np.full(n_chains, (doubt - spread) / n_chains)]
    if spread:
        earlier = np.arange(1, len(equal) + 1) ** -0.5  # what starts earlier hands on its doubt to more tests
        sizes.append(equal)
        shares.append(spread * earlier / earlier.sum())
    return np.concatenate(sizes), np.concatenate(shares)


def _equal_distances(n: float, risk: float) -> Floats:
    """Numbers of samples at equal distances, up to n; none where the risk allows too few errors."""
    number = min(MOST, max(2, int(n * risk / ERRORS))) if n * risk >= ERRORS * (1 - 1e-9) else 0
    return n * np.arange(1, number + 1) / max(number, 1)


def looks_from(r: Ranking, first: int, step: float) -> Looks:
    """Rows of the ranking that accept `first` samples and then each time `step` as many, to all; ties move together."""
    n_steps = max(ceil(log(r.n / first) / log(step)), 0) if first < r.n else 0
    sizes = np.append(np.floor(first * step ** np.arange(n_steps)), r.n)
    return np.unique(np.searchsorted(r.kept, sizes))


def _looks(seen: Evidence, risk: float, share: float, first: int) -> Looks:
    """The rows of a chain of tests.

    Independent samples are looked at where one more error is allowed: between two of these places an error would end
    the chain although the next few samples may make up for it. Where so few errors are allowed that these places are
    far apart, and where bets and not errors are counted, all are looked at.
    """
    r, equal = seen.shares, _equal_distances(seen.units, risk)
    if seen.units < r.n or not len(equal):
        return looks_from(r, first, STEP)
    sizes = np.append(_allowing(r.n, risk, share), equal)
    return np.unique(_rows(r, sizes[sizes >= min(first, r.n)]))


def _allowing(n: int, risk: float, share: float) -> Floats:
    """The fewest samples, up to n, among which 0, 1, 2 and so on errors still exclude the risk."""
    from scipy.special import bdtr

    steps = np.arange(1 + ceil(log(max(n * risk, 2)) / log(STEP)))
    errors = np.unique(np.floor(STEP**steps)) - 1
    low, high = errors, np.full(len(errors), float(n))  # too few, and enough if any are
    while (high - low > 1).any():
        middle = np.floor((low + high) / 2)
        enough = bdtr(errors, middle.astype(int), risk) <= share
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return high


def _rows(r: Ranking, sizes: Floats) -> Looks:
    """Rows of the ranking that accept at least so many samples each; ties move together."""
    return np.searchsorted(r.kept, sizes - 1e-6).clip(max=len(r.score))


def safest(seen: Evidence, doubt: float, sizes: Floats | None = None) -> tuple[int, float] | None:
    """The row of the ranking with the smallest bound of the risk among a few chosen beforehand, and that bound.

    The bounds at all `sizes`, by default at the `FIXED` shares of the samples, hold together, so any may be chosen.
    """
    r = seen.ranking
    looks = np.unique(_rows(r, r.n * FIXED if sizes is None else sizes))
    bounds = np.array([seen.bound(look, doubt / len(looks)) for look in looks.tolist()])
    best = int(bounds.argmin())
    return (int(looks[best]), float(bounds[best])) if bounds[best] < 1 else None


def midway(r: Ranking, row: int) -> float:
    """The threshold that accepts the samples up to a row of the ranking: midway to the next score, -inf at the end."""
    if row == len(r.score):
        return -inf
    value = float(r.score[row - 1] + r.score[row]) / 2
    # Two neighboring doubles have none between them, and their mean may be the lower one.
    return value if value > r.score[row] else float(r.score[row - 1])
