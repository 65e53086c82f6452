"""Maps fitted on, and applied to, more rows than fit into memory."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from math import nan
from pathlib import Path
from typing import TypeVar

import numpy as np

from assay import maps
from assay._core import loops
from assay._core.arrays import Floats, InputError, NoRows
from assay.calibrators._temperature import least_nll, logits_of, spread
from assay.calibrators._top_label import bin_values, pooled_points
from assay.files import Columns, read_rows, write_chunks
from assay.maps import Curve, Fit, Map, Steps, Temperature
from assay.metrics import Ranking, Summary
from assay.predictions import Outcomes, Predictions
from assay.scale import shards

STANDARD = Columns()
Fitted = TypeVar("Fitted", Curve, Steps)
Chunks = Callable[[], Iterable[Predictions | Outcomes]]


def streamed_temperature(chunks: Chunks) -> Temperature:
    """The temperature of least NLL, in a few passes over chunks of logits, each a sum of moments.

    `chunks` starts a pass. The first chunk gives the start, which is so near that two or three passes do.

    >>> import assay.examples
    >>> rows = assay.examples.load(split="held_out")
    >>> parts = [rows[start : start + 1000] for start in range(0, len(rows), 1000)]
    >>> round(streamed_temperature(lambda: parts).t, 3)
    2.744
    """
    first = _with_classes(next(iter(chunks()), None), None)
    z, labels = logits_of(first), first.labels
    start = least_nll(lambda b: loops.moments(z, labels, b), z.dtype, 1 / spread(z), 1 / spread(z)).b

    def moments(b: float) -> Floats:
        sums, n = np.zeros(4), 0
        for chunk in (_with_classes(rows, first.n_classes) for rows in chunks()):
            sums += len(chunk) * loops.moments(logits_of(chunk), chunk.labels, b)
            n += len(chunk)
        rows[b] = n
        return sums / n

    rows: dict[float, int] = {}
    found = least_nll(moments, z.dtype, start, 1 / spread(z))
    if found.at_bound:
        warnings.warn("no finite temperature is best for these predictions; the bound is returned", stacklevel=2)
    before = float(moments(1.0)[0])
    fit = Fit("NLL", before, found.nll, found.iterations, rows[1.0], found.at_bound)
    return Temperature(fit, 1 / found.b, first.n_classes)


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
