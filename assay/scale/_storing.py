"""Tallies as bytes: named arrays in the npz format, with a version."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np

from assay._core.arrays import Array, Floats, InputError, Labels, Mask
from assay._core.plain import Grid
from assay.grouping import Pairs
from assay.metrics import ClassBins
from assay.scale._cells import Cells
from assay.scale._grid import first_cell, lowest
from assay.scale._tally import Tally

VERSION = 7
BELOW = 0.02  # more than NLL and entropy can be below 0: rows of probabilities sum to at most 1.01
LEVELS = 32  # more than there are to join all cells of the grid
_CELL_COLUMNS = ("counts", "steps", "values", "mixed")  # of weighted rows the values are all columns of the table
_BITS = np.uint64  # of a double, as a whole number: nearby values have nearby ones
_CLASS_COLUMNS = ("count", "confidence", "correct", "rest_confidence", "rest_correct")


def to_bytes(tally: Tally) -> bytes:
    """What `from_bytes` reads; that rows have been sorted is left out."""
    stream = BytesIO()
    np.savez_compressed(stream, version=np.array(VERSION), **_arrays(tally))
    return stream.getvalue()


def from_bytes(stored: bytes) -> Tally:
    """The tally that was stored."""
    try:
        with np.load(BytesIO(stored), allow_pickle=False) as archive:
            if int(archive["version"]) != VERSION:
                raise InputError(f"a tally of version {int(archive['version'])}; this release reads {VERSION}")
            return _tally({name: archive[name] for name in archive.files})
    except InputError:
        raise
    except Exception as problem:  # whatever zip, its compressions and numpy raise of other or damaged bytes
        raise InputError("is no stored tally, or is damaged") from problem


def _arrays(tally: Tally, prefix: str = "") -> dict[str, Any]:
    """Everything of a tally as named arrays."""
    cells, bins = tally.cells, tally.class_bins
    found = _packed(cells) | {"flags": np.array([cells.level, tally.is_probability]), "sums": tally.sums}
    if tally.map_digest is not None:
        found["map"] = np.array(tally.map_digest)
    if tally.classes is not None:
        found["class_names"] = np.array(tally.classes)
    if bins is not None:
        found["classes"] = np.array([bins.threshold, bins.n, bins.unit])
        found |= {f"classes_{name}": getattr(bins, name) for name in _CLASS_COLUMNS}
    if tally.of_positive is not None:
        found |= _arrays(tally.of_positive, "positive_")
    if tally.groups:
        found["groups"] = np.array(list(tally.groups))
        if tally.label_groups is not None:
            found["labels"], found["label_groups"] = np.array([*tally.label_groups], str).reshape(-1, 2).T
            found["label_counts"] = np.array([*tally.label_groups.values()], np.int64)
        for i, group in enumerate(tally.groups.values()):
            found |= _arrays(group, f"group_{i}_")
    return {f"{prefix}{name}": array for name, array in found.items()}


def _tally(stored: dict[str, Any], prefix: str = "") -> Tally:
    level, is_probability = stored[f"{prefix}flags"].tolist()
    if is_probability not in (0, 1):
        raise ValueError(f"a flag of {is_probability}")
    bins = None
    if f"{prefix}classes" in stored:
        threshold, n, unit = stored[f"{prefix}classes"].tolist()
        columns = {name: stored[f"{prefix}classes_{name}"] for name in _CLASS_COLUMNS}
        bins = ClassBins(threshold, int(n), unit=unit, **columns)
    positive = _tally(stored, f"{prefix}positive_") if f"{prefix}positive_counts" in stored else None
    sums = stored[f"{prefix}sums"]
    if sums.shape not in ((3, 2, 2), (3, 2, 3)):
        raise ValueError(f"sums of shape {list(sums.shape)}")
    names = stored[f"{prefix}groups"].tolist() if f"{prefix}groups" in stored else []
    groups = {name: _tally(stored, f"{prefix}group_{i}_") for i, name in enumerate(names)}
    labels = _label_groups(stored, prefix) if groups else {}
    unpacked = _unpacked if sums.shape[2] == 2 else _unpacked_weighted
    cells = unpacked(level, *(stored[f"{prefix}{name}"] for name in _CELL_COLUMNS))
    applied = str(stored[f"{prefix}map"]) if f"{prefix}map" in stored else None
    named = tuple(stored[f"{prefix}class_names"].tolist()) if f"{prefix}class_names" in stored else None
    found = Tally(
        *(cells, sums, bins, positive, bool(is_probability), groups, labels), map_digest=applied, classes=named
    )
    _check(found)
    return found


def _label_groups(stored: dict[str, Any], prefix: str) -> Pairs | None:
    if f"{prefix}labels" not in stored:
        return None
    labels, names, counts = (stored[f"{prefix}{x}"].tolist() for x in ("labels", "label_groups", "label_counts"))
    return dict(zip(zip(labels, names, strict=True), counts, strict=True))


def _check(tally: Tally) -> None:
    """Refuse what no rows add up to."""
    cells, bins = tally.cells, tally.class_bins
    samples, errors, value = cells.table.T[:3]
    confidence = np.divide(value, samples, out=value.copy(), where=cells.mixed & (samples > 0))
    rising = cells.place if cells.level else value
    impossible = {
        "counts": not ((samples > 0) & (errors >= 0) & (errors <= samples * (1 + 1e-9))).all(),
        "rows": cells.rows is not None and not 0 <= cells.n_wrong <= cells.n >= len(samples),
        "confidences": not np.isfinite(value).all()
        or (tally.is_probability and (confidence != confidence.clip(0, 1 + 1e-9)).any()),
        "order": bool((np.diff(rising) <= 0).any()),
        "sums": not _are_sums(tally),
        "classes": bins is not None and (bins.n != cells.n or len(tally.classes or bins.count) != len(bins.count)),
    }
    wrong = [name for name, found in impossible.items() if found]
    if wrong:
        raise ValueError(f"{wrong[0]} that no rows have")


def _are_sums(tally: Tally) -> bool:
    """Whether NLL, Brier and entropy of any rows can add up so: all of one are unknown, or only NLL of errors infinite.

    Probabilities that sum to a little more than 1 have an NLL a little below 0.
    """
    sums, cells = tally.sums, tally.cells
    squares = float(cells.squares[0].sum())
    lowest = -BELOW * np.array([cells.weight, squares, 0] if tally.weighted else [cells.weight, 0])
    unknown, finite = np.isnan(sums).all((1, 2), keepdims=True), np.isfinite(sums)
    finite[0, 1] |= sums[0, 1] == np.inf
    return bool((unknown | (finite & (sums >= lowest))).all())


def _packed(cells: Cells) -> dict[str, Any]:
    """The table in few bytes: counts and steps in small types, and of the values first all first bytes, and so on."""
    if cells.rows is None:
        size, errors, value = cells.table.T
        counts, bits = _small(np.stack([size, errors]).astype(np.uint64)), value.copy().view(_BITS)
        least = _least(size, cells.mixed, cells.place) if cells.level else np.append(_BITS(0), bits)[:-1]
        values: Array = (bits - least)[:, None]
    else:
        counts, values = np.array(cells.rows), cells.table
    planes = np.ascontiguousarray(values).view(np.uint8).reshape(len(values), 8 * values.shape[1]).T
    columns = (counts, _small(np.diff(cells.place, prepend=0)), planes, np.packbits(cells.mixed))
    return dict(zip(_CELL_COLUMNS, columns, strict=True))


def _least(size: Floats, mixed: Mask, place: Labels) -> Array:
    """The bits of the least value that each cell of the grid can have: values differ from it in their last bits."""
    return np.asarray(np.where(mixed, size, 1.0) * lowest()[place]).view(_BITS)


def _small(x: Any) -> Any:
    return x.astype(np.min_scalar_type(x.max(initial=0)))


def _unpacked(level: int, counts: Any, steps: Any, values: Any, mixed: Any) -> Cells:
    n = values.shape[1]
    if counts.shape != (2, n) or len(values) != 8:
        raise ValueError(f"cells of shapes {list(counts.shape)} and {list(values.shape)}")
    size, errors = counts.astype(np.float64)
    flags, place = _flags(mixed, n), _places(level, steps, n)
    more = np.ascontiguousarray(values.T).view(_BITS)[:, 0]
    bits = _least(size, flags, place) + more if level else np.cumsum(more, dtype=_BITS)
    return Cells(np.stack([size, errors, bits.view(np.float64)], 1), flags, level, place)


def _unpacked_weighted(level: int, rows: Any, steps: Any, values: Any, mixed: Any) -> Cells:
    n = values.shape[1]
    if values.shape[0] != 40:
        raise ValueError(f"values of shape {list(values.shape)}")
    counted, wrong = map(int, rows)
    table = np.ascontiguousarray(values.T).view(np.float64)
    return Cells(table, _flags(mixed, n), level, _places(level, steps, n), (counted, wrong))


def _flags(mixed: Any, n: int) -> Mask:
    if len(mixed) != (n + 7) // 8:
        raise ValueError(f"{len(mixed)} bytes of flags of {n} cells")
    return np.unpackbits(mixed, count=n).astype(bool)


def _places(level: int, steps: Any, n: int) -> Labels:
    if level not in range(LEVELS):
        raise ValueError(f"level {level}")
    place = np.cumsum(steps, dtype=np.int64)
    if len(place) != (n if level else 0) or (place >= Grid.CELLS).any():
        raise ValueError(f"{len(place)} places of {n} cells")
    if level and (first_cell(level)[place] != place).any():
        raise ValueError(f"places that level {level} does not have")
    return np.asarray(place)
