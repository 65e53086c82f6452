"""Maps fitted on, and applied to, more rows than fit into memory."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from math import inf, nan, sqrt
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from assay import maps
from assay._core import loops
from assay._core.arrays import Floats, InputError, NoRows
from assay.calibrators._temperature import SPAN, Optimum, least_nll, logits_of, refuse_impossible, spread
from assay.calibrators._top_label import bin_values, pooled_points
from assay.files import Columns, read_rows, write_chunks
from assay.maps import Curve, Fit, Map, Steps, Temperature
from assay.metrics import Ranking, Summary
from assay.predictions import Outcomes, Predictions
from assay.scale import shards

STANDARD = Columns()
AT_ONCE = 16  # temperatures of a grid, in one pass
NEAR = 1e-4  # of b: convergence is cubic, after such a step the error left is below the resolution of doubles
Fitted = TypeVar("Fitted", Curve, Steps)
Chunks = Callable[[], Iterable[Predictions | Outcomes]]


def streamed_temperature(chunks: Chunks) -> Temperature:
    """The temperature of least NLL, in a few passes over chunks of logits, each a sum of moments.

    `chunks` starts a pass. The first chunk gives a start, from which two passes do if it is like the others. If
    not, a pass looks at many temperatures at once and brackets the best, so that four or five are enough.
    Without a finite optimum, the bound that is returned depends on the first chunk.

    >>> import assay.examples
    >>> rows = assay.examples.load(split="held_out")
    >>> parts = [rows[start : start + 1000] for start in range(0, len(rows), 1000)]
    >>> round(streamed_temperature(lambda: parts).t, 3)
    2.744
    """
    first = _with_classes(next(iter(chunks()), None), None)
    z, labels = logits_of(first), first.labels
    unit, rows = 1 / spread(z), 0
    start = least_nll(lambda b: loops.moments(z, labels, b), z.dtype, unit, unit).b

    def moments(at: Floats) -> Floats:
        nonlocal rows
        sums, rows = np.zeros((len(at), 4)), 0
        for chunk in (_with_classes(some, first.n_classes) for some in chunks()):
            own = logits_of(chunk)
            sums += len(chunk) * np.array([loops.moments(own, chunk.labels, b) for b in at.tolist()])
            rows += len(chunk)
        return sums / rows

    before, found = _least_in_passes(moments, z.dtype, start, unit)
    if found.at_bound:
        warnings.warn("no finite temperature is best for these predictions; the bound is returned", stacklevel=2)
    fit = Fit("NLL", before, found.nll, found.iterations, rows, found.at_bound)
    return Temperature(fit, 1 / found.b, first.n_classes)


def _least_in_passes(
    moments: Callable[[Floats], Floats], of: np.dtype[Any], start: float, unit: float
) -> tuple[float, Optimum]:
    """NLL as it is, and where it is least, as `least_nll` finds it; `moments` takes several b = 1 / t in one pass.

    NLL changes its shape with log b alone, so where Newton's step is at most a tenth of b, Halley's is nearly exact;
    elsewhere a grid makes the bracket a seventeenth as wide in log b.
    """
    known: dict[float, list[float]] = {}  # by b, NLL and its three derivatives
    at, close = np.array([1.0, start, unit / SPAN, unit * SPAN]), 1 + sqrt(np.finfo(of).eps)
    for passes in range(1, 60):
        at = np.unique(at.astype(of)).astype(np.float64)  # the numbers that the logits are multiplied by
        known |= zip(at.tolist(), moments(at).tolist(), strict=True)
        low = max((b for b in known if known[b][1] <= 0), default=0.0)
        high = min((b for b in known if known[b][1] > 0), default=inf)
        b = min((b for b in (low, high) if b in known), key=lambda b: abs(_newton_step(known[b])) / b)
        nll, first, second, third = known[b]
        step = _newton_step(known[b])
        if low and high < inf and abs(step) <= b / 10:
            step /= 1 + step * third / (2 * second)
            if abs(step) <= NEAR * b:
                return known[1.0][0], Optimum(b + step, nll + first * step / 2, passes, False)
            at = np.array([b + step])
        elif low and low * close < high < inf:
            at = np.geomspace(low, high, AT_ONCE + 2)[1:-1]
        else:
            return known[1.0][0], Optimum(low or high, known[low or high][0], passes, True)
    raise AssertionError("a bracket that became narrower sixty times")


def _newton_step(moments: list[float]) -> float:
    _, first, second, _ = moments
    return -first / second if second > 0 else inf


def _with_classes(chunk: Predictions | Outcomes | None, n_classes: int | None) -> Predictions:
    if chunk is None:
        raise NoRows("no rows")
    if not isinstance(chunk, Predictions):
        raise InputError("a temperature needs the logits of all classes; confidences allow isotonic and histogram")
    if chunk.weights is not None:
        raise InputError("a temperature in passes counts every row alike; weighted rows must be in memory")
    if n_classes not in (None, chunk.n_classes):
        raise InputError(
            f"one temperature is for one number of classes; these rows have {n_classes} and {chunk.n_classes}"
        )
    refuse_impossible(chunk)
    return chunk


def summary_isotonic(summary: Summary) -> Curve:
    """`isotonic` from a summary of the rows; scores of one cell of its grid count as their mean."""
    r = summary.ranking
    x, y = pooled_points(r, sure=False)
    return _fitted(r, Curve(_unjudged(r), x, y))


def summary_histogram(summary: Summary) -> Steps:
    """`histogram` with 15 bins of equal width, which a summary knows exactly."""
    if not summary.is_probability:
        raise InputError("bins of equal width need a confidence in [0, 1]")
    bins, r = summary.width, summary.ranking
    return _fitted(r, Steps(_unjudged(r), bins.upper, bin_values(bins)))


def _unjudged(r: Ranking) -> Fit:
    return Fit("top-label Brier", None, nan, 1, r.n)


def _fitted(r: Ranking, mapping: Fitted) -> Fitted:
    before, after = (float((1 - c) ** 2 @ r.hits + c**2 @ r.misses) / r.n for c in (r.score, mapping(r.score)))
    return replace(mapping, fit=replace(mapping.fit, before=before, after=after))


def apply_to_files(mapping: Map, source: str | Path, folder: Path, columns: Columns = STANDARD) -> int:
    """Write calibrated predictions, a Parquet file for each file of a folder or a pattern; how many rows there were.

    Each file is read and written chunk by chunk, and appears whole or not at all; one without rows is left out. Files
    of subfolders are written to subfolders of the same names.
    """
    files, base = [Path(file) for file in shards(source)], Path(source)
    places = [file.relative_to(base) if base.is_dir() else Path(file.name) for file in files]
    targets = [(folder / place).with_name(f"{place.stem}.parquet") for place in places]
    inside = base.is_dir() and folder.resolve().is_relative_to(base.resolve())
    if inside or len(set(targets)) < len(targets) or {x.resolve() for x in targets} & {x.resolve() for x in files}:
        raise InputError(f"{folder}: two files would get one name, or one that is read; give a folder of its own")
    folder.mkdir(parents=True, exist_ok=True)
    written = 0
    for file, target in zip(files, targets, strict=True):
        chunks = calibrated_chunks(mapping, file, columns)
        for first in chunks:  # if there is any
            target.parent.mkdir(parents=True, exist_ok=True)
            written += write_chunks(chain([first], chunks), target)
    return written


def calibrated_chunks(mapping: Map, file: Path | str, columns: Columns = STANDARD) -> Iterator[Predictions | Outcomes]:
    """The rows of a file under a map, chunk by chunk; none of a file without rows."""
    with suppress(NoRows):
        for chunk in read_rows(file, columns):
            yield maps.apply(mapping, chunk)
