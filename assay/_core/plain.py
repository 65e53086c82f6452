"""The plain twins of the compiled loops: the same numbers by numpy alone, more slowly.

Rows in single precision are exponentiated by the polynomial of `loops.c` and summed in the same groups, so that the
digits do not depend on whether there was a compiler.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from assay._core.arrays import Array, Floats, InputError, Labels, Mask, row_chunks, single
from assay._core.arrays import log as quiet_log

quiet = np.errstate(over="ignore", invalid="ignore")  # logits may be further apart than their type reaches

TERMS = 8  # that are added up in the type of the scores before the sum goes on in double
FEW = 16  # numbers of bins that `sweep` looks at together
LEAST: dict[int, Any] = {4: np.float32(-86.0), 8: np.float64(-700.0)}  # by bytes a number: from here down a weight is 0


@dataclass(frozen=True, eq=False)
class ClassSums:
    """Sums over rows of each class's probability, in bins where it is above the threshold; filled by `reduce`."""

    upper: Floats  # [b] right edges
    threshold: float
    mass: Floats  # [k, 4] all probabilities of a class, in four sums side by side
    labels: Floats  # [k] how often it was the label
    binned: Floats  # [3, k, b] of probabilities above the threshold: their number, sum, and how many the label's

    @staticmethod
    def empty(n_classes: int, n_bins: int, threshold: float) -> ClassSums:
        if n_bins < 1 or not 0 <= threshold <= 1:
            raise InputError(f"needs at least one bin and a threshold in [0, 1], got {n_bins} and {threshold}")
        upper = np.arange(1, n_bins + 1) / n_bins
        k = n_classes
        return ClassSums(upper, threshold, np.zeros((k, 4)), np.zeros(k), np.zeros((3, k, n_bins)))

    def alike(self) -> ClassSums:
        """Empty ones of the same shape."""
        return ClassSums.empty(len(self.labels), len(self.upper), self.threshold)

    def __iadd__(self, other: ClassSums) -> ClassSums:
        for name in ("mass", "labels", "binned"):
            np.add(getattr(self, name), getattr(other, name), out=getattr(self, name))
        return self


class Grid:
    """Cells of confidence: of odds c / (1 - c), each octave in equal steps, split again where an edge of a bin lies in.

    There are 1,024 steps in the octaves where confidences mostly are, up to 1 - c = 4e-9, and 128 further out.
    """

    # First octave, octaves, and bits of the odds that are left out: exponent and ten or seven bits remain.
    BANDS = ((-20, 12, 45), (-8, 36, 42), (28, 25, 45))
    RAW = 3 + 12 * 128 + 36 * 1024 + 25 * 128  # 0, less than 2^-20, the bands (to the last double below 1), and 1
    BINS = 15  # of equal width
    CELLS = RAW + BINS - 1
    EMPTY, MIXED = np.uint64(2**64 - 1), np.uint64(2**64 - 2)  # instead of the bits of a cell's only confidence
    # Samples with errors times 2^32, the sum of confidence, and the bits of the only one.
    ROW = np.dtype([("counts", np.uint64), ("sum", np.float64), ("only", np.uint64)])

    @staticmethod
    def raw(confidence: Floats) -> Labels:
        """The cell before it is split."""
        with np.errstate(divide="ignore"):
            odds = (confidence / (1 - confidence)).view(np.int64)
        raw = 1 + (odds >= (1023 - 20) << 52).astype(np.int64)
        for first, octaves, shift in Grid.BANDS:
            steps = 1 << (52 - shift)
            raw += ((odds >> shift) - (1023 + first) * steps).clip(0, octaves * steps)
        return np.where(confidence == 0, 0, raw)

    @staticmethod
    def cell(confidence: Floats) -> Labels:
        """The cell: one further for each edge below the confidence."""
        inner = np.arange(1, Grid.BINS) / Grid.BINS
        return np.asarray(Grid.raw(confidence) + inner.searchsorted(confidence))

    @staticmethod
    def empty() -> Array:
        """Cells without samples, [CELLS] of ROW."""
        cells = np.zeros(Grid.CELLS, dtype=Grid.ROW)
        cells["only"] = Grid.EMPTY
        return cells


def add_to_cells(confidence: Floats, correct: Mask, cells: Array) -> None:
    c = confidence + 0.0  # -0 becomes 0
    index = Grid.cell(c)
    wrong = np.bincount(index, ~correct, Grid.CELLS).astype(np.uint64)
    cells["counts"] += np.bincount(index, minlength=Grid.CELLS).astype(np.uint64) + (wrong << np.uint64(32))
    cells["sum"] += np.bincount(index, c, Grid.CELLS)
    order = np.lexsort([c, index])
    last = last_of_runs(index[order])
    first = np.append(0, last[:-1] + 1)
    low, high = c[order[first]].view(np.uint64), c[order[last]].view(np.uint64)
    only = cells["only"][index[order[last]]]
    same = (low == high) & ((only == low) | (only == Grid.EMPTY))
    cells["only"][index[order[last]]] = np.where(same, low, Grid.MIXED)


@quiet
def reduce(
    values: Array, labels: Labels, normalized: bool, columns: Floats, correct: Mask, sums: ClassSums | None
) -> None:
    """Write confidence, NLL, Brier, entropy [4, n] and correctness [n]; add probabilities to `sums`."""
    _refuse(labels, values.shape[1])
    for rows in row_chunks(*values.shape):
        one = _probabilities if normalized else _logits
        p = one(single(values[rows]), labels[rows], columns[:, rows], correct[rows])
        if sums is not None:
            _tally(p, labels[rows], sums)


def _logits(z: Array, labels: Labels, columns: Floats, correct: Mask) -> Floats:
    top = z.max(1, keepdims=True)
    below, weight = _weights(z - top)
    at_top = below >= 0
    n_tops = at_top.sum(1)
    rest = np.where(at_top, z.dtype.type(0), weight)
    total = _sum(rest) + n_tops
    large = np.where(below <= LEAST[z.itemsize] / 2, z.dtype.type(0), rest)
    moment, squares = _sum(below * rest), _sum(large * large) + n_tops
    label_below = np.take_along_axis(z, labels[:, None], 1)[:, 0].astype(np.float64) - top[:, 0]
    confidence, nll, brier, entropy = columns
    np.divide(1, total, out=confidence)
    log_total = np.log(total)
    np.subtract(log_total, label_below, out=nll)
    label_weight = np.take_along_axis(weight, labels[:, None], 1)[:, 0].astype(np.float64)
    np.maximum((squares * confidence - 2 * label_weight) * confidence + 1, 0, out=brier)
    np.subtract(log_total, moment * confidence, out=entropy)
    np.equal(label_below, 0, out=correct)
    _settle_ties(z, labels, correct, n_tops > 1)
    return np.asarray(weight * confidence[:, None])


def _probabilities(p: Array, labels: Labels, columns: Floats, correct: Mask) -> Floats:
    top, label_p = p.max(1), np.take_along_axis(p, labels[:, None], 1)[:, 0].astype(np.float64)
    wide = p.astype(np.float64)
    confidence, nll, brier, entropy = columns
    np.minimum(top, 1, out=confidence)
    np.negative(quiet_log(label_p), out=nll)
    np.maximum((wide * wide).sum(1) - 2 * label_p + 1, 0, out=brier)
    some = np.where(wide < np.finfo(np.float64).tiny, 1, wide)
    entropy[:] = -(some * np.log(some)).sum(1)
    np.equal(label_p, top, out=correct)
    _settle_ties(p, labels, correct, (p >= top[:, None]).sum(1) > 1)
    return wide


def _settle_ties(scores: Array, labels: Labels, correct: Mask, tied: Mask) -> None:
    """Of classes tied at the top the first is the answer."""
    rows = np.flatnonzero(correct & tied)
    correct[rows] = scores[rows].argmax(1) == labels[rows]


def _tally(p: Floats, labels: Labels, sums: ClassSums) -> None:
    k, b = sums.binned.shape[1:]
    row, column = np.nonzero(p > sums.threshold)
    value = p[row, column]
    index = column * b + np.searchsorted(sums.upper[:-1], value)
    hit = (labels[row] == column).astype(np.float64)
    for total, weight in zip(sums.binned.reshape(3, -1), (None, value, hit), strict=True):
        total += np.bincount(index, weight, minlength=k * b)
    sums.mass[:, 0] += p.sum(0)
    sums.labels[:] += np.bincount(labels, minlength=k)


@quiet
def finite(values: Array) -> bool:
    """A sum is infinite or nan if any term is, and is cheaper than a test of each; a sum may overflow too."""
    return bool(np.isfinite(values.sum(dtype=single(values[:0]).dtype))) or bool(np.isfinite(values).all())


@quiet
def moments(logits: Array, labels: Labels, b: float) -> Floats:
    """Of softmax(b z), summed over rows: NLL and its first three derivatives by b, [4]."""
    _refuse(labels, logits.shape[1])
    sums = np.zeros(4)
    for rows in row_chunks(*logits.shape):
        z = single(logits[rows])
        top = z.max(1, keepdims=True)
        below = np.maximum(z - top, z.dtype.type(-1e30))
        _, weight = _weights(below * z.dtype.type(b))
        share, distance = weight.astype(np.float64), below.astype(np.float64)
        total = share.sum(1)
        m1, m2, m3 = ((share := share * distance).sum(1) / total for _ in range(3))
        label_below = np.take_along_axis(z, labels[rows, None], 1)[:, 0].astype(np.float64) - top[:, 0]
        variance = m2 - m1 * m1
        sums += [
            float((np.log(total) - b * label_below).sum()),
            float((m1 - label_below).sum()),
            float(variance.sum()),
            float((m3 - m1 * (m2 + 2 * variance)).sum()),
        ]
    return sums


@quiet
def confidence(logits: Array, b: float, out: Floats) -> None:
    """The highest probability of softmax(b z) of each row."""
    for rows in row_chunks(*logits.shape):
        z = single(logits[rows])
        x, weight = _weights((z - z.max(1, keepdims=True)) * z.dtype.type(b))
        at_top = x >= 0
        rest = np.where(at_top, z.dtype.type(0), weight)
        out[rows] = 1 / (rest.sum(1, dtype=np.float64) + at_top.sum(1))


def _weights(x: Array) -> tuple[Array, Array]:
    """x, no lower than LEAST, and exp(x), 0 there."""
    least = LEAST[x.itemsize]
    too_low = x <= least
    x = np.where(too_low, least, x)
    weight = _exp(x) if x.dtype == np.float32 else np.exp(x)
    return x, np.where(too_low, x.dtype.type(0), weight)


def _exp(x: Array) -> Array:
    """exp of float32 in [-86, 0], operation by operation as in `loops.c`."""
    one, magic = np.float32, np.float32(12582912.0)  # 1.5 2^23: rounds to an integer
    shifted = x * one(1.44269504) + magic
    m = shifted - magic
    r = x - m * one(0.693359375) + m * one(2.12194440e-4)
    rr = r * r
    third = one(1.3981999507e-3) + one(1.9875691500e-4) * r
    second = one(4.1665795894e-2) + one(8.3334519073e-3) * r + third * rr
    first = one(5.0000001201e-1) + one(1.6666665459e-1) * r + second * rr
    power = (shifted.view(np.int32) + np.int32(127 - 0x4B400000)) << np.int32(23)
    return np.asarray((one(1) + r + first * rr) * power.view(np.float32))


def _sum(x: Array) -> Floats:
    """Sums of rows: of TERMS neighbors in their own type, and of these in double."""
    k = x.shape[1]
    if k % TERMS:
        x = np.concatenate([x, np.zeros((len(x), -k % TERMS), dtype=x.dtype)], 1)
    groups = x[:, ::TERMS].copy()
    for i in range(1, TERMS):
        groups += x[:, i::TERMS]
    return np.asarray(groups.sum(1, dtype=np.float64))


def _refuse(labels: Labels, k: int) -> None:
    wrong = (labels < 0) | (labels >= k)
    if wrong.any():
        raise InputError(f"row {wrong.argmax()}: label {labels[wrong.argmax()]} is no class")


def runs(negated: Floats, errors: Floats) -> tuple[Floats, Floats, Floats]:
    """The distinct scores, and how many samples and errors have at least each; the counts begin with 0."""
    last = last_of_runs(negated)
    distinct = negated.take(last)
    misses = np.bincount(distinct.searchsorted(errors), minlength=len(distinct))
    return -distinct, np.append(0.0, last + 1), from_zero(misses)


def width_bins(confidence: Floats, correct: Mask, upper: Floats) -> Floats:
    index = upper[:-1].searchsorted(confidence)
    return np.stack([np.bincount(index, weight, len(upper)) for weight in (None, confidence, correct)])


def last_of_runs(values: Array) -> Labels:
    """Where each run of equal neighbors ends."""
    return np.flatnonzero(np.append(values[1:] != values[:-1], True))


def from_zero(steps: Array) -> Floats:
    """Cumulative sums, with the empty one in front."""
    out = np.empty(len(steps) + 1)
    out[0] = 0
    np.cumsum(steps, out=out[1:])
    return out


class Areas(NamedTuple):
    """Sums over the scores of a ranking, most confident first, that its metrics share."""

    outranked: float  # pairs of a right answer and an error with less confidence, ties counting half
    precision_of_hits: float  # accuracy of the kept samples, at each right answer
    precision: float  # the same at each sample
    precision_of_misses: float  # share of errors among the samples at and below each error
    accepted_errors: float  # errors among the kept samples, at each sample
    claims_of_hits: float  # confidence of right answers
    claims_of_misses: float  # confidence of errors
    squared_claims: float  # squared confidence


def areas(score: Floats, kept: Floats, wrong: Floats) -> Areas:
    return areas_of(score, kept, wrong, kept[-1], wrong[-1])


def areas_of(score: Floats, kept: Floats, wrong: Floats, n: float, n_wrong: float) -> Areas:
    """The sums over some scores of a ranking of n samples, of which n_wrong are errors."""
    size, misses, right = np.diff(kept), np.diff(wrong), kept - wrong
    hits, precision = size - misses, right[1:] / kept[1:]
    below = (n_wrong - wrong[:-1]) / (n - kept[:-1])
    return Areas(
        outranked=float((right[:-1] + hits / 2) @ misses),
        precision_of_hits=float(precision @ hits),
        precision=float(precision @ size),
        precision_of_misses=float(below @ misses),
        accepted_errors=float((wrong[:-1] + misses / 2) @ size),
        claims_of_hits=float(score @ hits),
        claims_of_misses=float(score @ misses),
        squared_claims=float(score**2 @ size),
    )


def between(score: Floats, kept: Floats, wrong: Floats, start: Labels) -> Floats:
    size, rows, count = np.diff(kept), start[:-1] - start[1:], kept[start[:-1]] - kept[start[1:]]
    errors = wrong[start[:-1]] - wrong[start[1:]]
    accuracy = 1 - errors / np.where(count > 0, count, 1)
    index = np.repeat(np.arange(len(rows))[::-1], rows[::-1])
    gap = np.abs(score - accuracy[index])
    claims, gaps, squares = (np.bincount(index, weight * size, len(rows)) for weight in (score, gap, gap * gap))
    return np.stack([count, claims, np.maximum(count - errors, 0), gaps, squares])


def majorant(x: Floats, y: Floats) -> Labels:
    """Corners of the concave majorant, where pooled runs begin, and the end of the last."""
    from scipy.optimize import isotonic_regression

    slope = np.diff(y) / np.diff(x)
    # Neighbors of equal slope are pooled in any case; without them there is far less to fit.
    ends = np.append(0, last_of_runs(slope) + 1)
    fit = isotonic_regression(slope[ends[1:] - 1], weights=np.diff(x[ends]), increasing=False)
    return np.asarray(ends[fit.blocks])


def residuals(score: Floats, kept: Floats, wrong: Floats, cells: int) -> Floats:
    size = np.diff(kept)
    hits = np.maximum(size - np.diff(wrong), 0)
    cell = np.clip((score * cells).astype(np.int64), 0, cells - 1)
    return np.bincount(cell, score * size - hits, minlength=cells).astype(np.float64, copy=False)


def laplacian(score: Floats, kept: Floats, wrong: Floats, width: float) -> float:
    excess, decay = (1 - score) * np.diff(kept) - np.diff(wrong), np.exp(score * (-1 / width))
    above = np.cumsum(excess * decay)
    above /= decay
    return 2 * float(excess @ above) - float(excess @ excess)


def log_likelihood(score: Floats, kept: Floats, wrong: Floats) -> float:
    """Of right answers log c, of errors log(1 - c)."""
    misses = np.diff(wrong)
    hits = np.diff(kept) - misses
    some, missed = len(score) - int(score[-1] == 0), misses > 0
    return float(np.log(score[:some]) @ hits[:some] + np.log1p(-score[missed]) @ misses[missed])


def sweep(kept: Floats, right: Floats, first: int, last: int) -> int:
    """The number of bins, from `first` to `last`, before the first whose accuracies fall somewhere; else `last`."""
    while first <= last:
        # Whole runs of bin numbers at once: at few samples each number alone is all overhead.
        at_once = max(min(first + FEW, 2**15 // (first + FEW)), 1)
        numbers = np.arange(first, min(first + at_once - 1, last) + 1)
        monotone = _monotone(kept, right, numbers)
        if not monotone.all():
            return first - 1 + int(monotone.argmin())
        first = int(numbers[-1]) + 1
    return last


def _monotone(kept: Floats, right: Floats, numbers: Labels) -> Mask:
    """For each number of bins: do their accuracies, empty bins aside, never fall?"""
    n = int(kept[-1])
    b, j = numbers[:, None], np.arange(numbers[-1] + 1)  # a number's bins beyond its own are empty
    start = np.searchsorted(kept[1:], np.maximum(b - j, 0) * n // b, side="right")
    below, hits_below = kept[start], right[start]
    count, hits = below[:, :-1] - below[:, 1:], hits_below[:, :-1] - hits_below[:, 1:]
    accuracy = hits / np.maximum(count, 1)
    return np.asarray(((accuracy >= np.maximum.accumulate(accuracy, axis=1)) | (count == 0)).all(1))
