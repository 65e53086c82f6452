"""Loops that numpy expresses badly, in C (`loops.c`), with a plain twin of each (`plain.py`).

The library is compiled when the package is installed. Where there is none, or ASSAY_PURE=1 is set, the twins do the
same; digits agree to 1e-12. C works without Python's lock, so rows are cut into parts that run on `n_threads()`
threads; the parts depend on the shape alone, and so do the results.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from ctypes import CDLL, Structure, addressof, c_bool, c_char, c_double, c_int64, c_void_p
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from assay._core import arrays, plain
from assay._core.arrays import Array, Floats, InputError, Labels, Mask, single
from assay._core.library import library
from assay._core.plain import Areas, ClassSums, Grid

T = TypeVar("T")

LANES = 16  # rows that C works on side by side, at most
PART = 2**18  # elements of the least part that is worth a thread of its own
MOST_PARTS = 16
MOST_SAMPLES = 2**40  # of a ranking: times a number of bins, C still counts them
ROOM = 2**22  # numbers that the classwise sums of all parts may take together


def _load() -> CDLL | None:
    if os.environ.get("ASSAY_PURE") == "1":
        return None
    try:
        file = library(Path(__file__).parent)
    except OSError:  # in an archive, or without its sources
        return None
    if not file.exists():
        return None
    try:
        return _typed(CDLL(str(file)))
    except (OSError, AttributeError) as error:
        warnings.warn(f"the compiled loops are not used, for {file} cannot be loaded: {error}", stacklevel=2)
        return None


def _typed(c: CDLL) -> CDLL:
    """What each function takes and returns; an address is an array's, or none."""
    p, n, x = c_void_p, c_int64, c_double
    c.assay_wider.argtypes, c.assay_wider.restype = (), c_bool
    for kind in {"float", _floats(c), "double"}:
        for rows in ("logits", "probabilities"):
            function = getattr(c, f"assay_{rows}_{kind}")
            function.argtypes, function.restype = (p, p, n, n, p, n, p, p, p), n
        finite = getattr(c, f"assay_finite_{kind}")
        finite.argtypes, finite.restype = (p, n), c_bool
        moments, confidence = getattr(c, f"assay_moments_{kind}"), getattr(c, f"assay_confidence_{kind}")
        moments.argtypes, moments.restype = (p, p, n, n, x, p, p), n
        confidence.argtypes, confidence.restype = (p, n, n, x, p, p), n
    c.assay_runs.argtypes, c.assay_runs.restype = (p, n, p, n, p, p, p), n
    c.assay_width_bins.argtypes, c.assay_width_bins.restype = (p, p, n, p, n, p), None
    c.assay_areas.argtypes, c.assay_areas.restype = (p, p, p, n, p), None
    c.assay_between.argtypes, c.assay_between.restype = (p, p, p, n, p, n, p), n
    c.assay_tally.argtypes, c.assay_tally.restype = (p, p, n, n, x, p), n
    c.assay_log_likelihood.argtypes, c.assay_log_likelihood.restype = (p, p, p, n), x
    c.assay_majorant.argtypes, c.assay_majorant.restype = (p, p, n, p), n
    c.assay_laplacian.argtypes, c.assay_laplacian.restype = (p, p, p, n, x), x
    c.assay_residuals.argtypes, c.assay_residuals.restype = (p, p, p, n, n, p), None
    c.assay_sweep.argtypes, c.assay_sweep.restype = (p, p, n, n, n), n
    return c


def _floats(c: Any) -> str:
    """What C calls functions of single precision for this processor."""
    return "wider" if c.assay_wider() else "float"


_c: Any = _load()
AVAILABLE = _c is not None
SINGLE = _floats(_c) if AVAILABLE else ""
_at: Any = (c_char * 0).from_buffer  # the address of an array, several times as fast as its `ctypes`

_threads: int | None = None


def _address(x: Array) -> int:
    """Where an array begins, also one that may not be written, for which `_at` does not work."""
    return int(x.__array_interface__["data"][0])


def n_threads() -> int:
    """Number of threads: set by `threads`, else OMP_NUM_THREADS, else the number of cores."""
    said = os.environ.get("OMP_NUM_THREADS", "")
    return _threads or (int(said) if said.isdecimal() and int(said) else os.cpu_count() or 1)


@contextmanager
def threads(n: int | None) -> Iterator[None]:
    """Use `n` threads inside the block; None changes nothing."""
    global _threads
    if n is not None and n < 1:
        raise InputError(f"threads must be at least 1, got {n}")
    before, _threads = _threads, n or _threads
    try:
        yield
    finally:
        _threads = before


class _Classes(Structure):
    """`ClassSums` as C reads them."""

    _fields_ = (
        ("upper", c_void_p),
        ("bins", c_int64),
        ("threshold", c_double),
        ("mass", c_void_p),
        ("labels", c_void_p),
        ("binned", c_void_p),
    )


def reduce(values: Array, labels: Labels, *, normalized: bool, sums: ClassSums | None = None) -> tuple[Floats, Mask]:
    """Confidence, NLL, Brier, entropy [4, n] and correctness [n] of logits, or of probabilities where `normalized`.

    Of classes tied for the highest score the first is the answer. `sums` are filled on the way.
    """
    (n, k), labels = values.shape, _matching(values, labels)
    if sums is not None and sums.binned.shape != (3, k, len(sums.upper)):
        raise InputError(f"sums of {len(sums.labels)} classes but {k} columns of predictions")
    columns, correct = np.empty((4, n)), np.empty(n, dtype=np.bool_)
    call = _reduce if AVAILABLE else plain.reduce
    room = 0 if sums is None else sums.mass.size + sums.binned.size

    def part(rows: slice, own: ClassSums | None) -> None:
        call(values[rows], labels[rows], normalized, columns[:, rows], correct[rows], own)

    _in_parts(n, k, part, sums, room)
    return columns, correct


def all_finite(values: Array) -> bool:
    """Whether all values are finite."""
    n, k = values.shape
    found: list[bool] = []

    def part(rows: slice, _: None) -> None:
        found.append((_finite if AVAILABLE else plain.finite)(values[rows]))

    _in_parts(n, k, part, None, 0)
    return all(found)


def moments(logits: Array, labels: Labels, b: float) -> Floats:
    """Of softmax(b z): the mean NLL and its first three derivatives by b, [4]."""
    (n, k), labels = logits.shape, _matching(logits, labels)
    found: dict[int, Floats] = {}

    def part(rows: slice, _: None) -> None:
        found[rows.start] = (_moments if AVAILABLE else plain.moments)(logits[rows], labels[rows], b)

    _in_parts(n, k, part, None, 0)
    mean: Floats = sum((found[start] for start in sorted(found)), np.zeros(4)) / n
    return mean


def confidence_at(logits: Array, b: float, out: Floats) -> None:
    """The highest probability of softmax(b z) of each row, [n]."""
    n, k = logits.shape

    def part(rows: slice, _: None) -> None:
        (_confidence if AVAILABLE else plain.confidence)(logits[rows], b, out[rows])

    _in_parts(n, k, part, None, 0)


def _matching(values: Array, labels: Labels) -> Labels:
    """Labels as C reads them, as many as rows."""
    if len(labels) != len(values):
        raise InputError(f"{len(values)} rows of predictions but {len(labels)} labels")
    return np.ascontiguousarray(labels, dtype=np.int64)


def _in_parts(n: int, k: int, work: Callable[[slice, Any], None], sums: ClassSums | None, room: int) -> None:
    """Work on parts of the rows, on as many threads as there are; sums of the parts are added up in their order."""
    count = max(min(n * k // PART, MOST_PARTS, ROOM // max(room, 1)), 1)
    if count == 1:
        work(slice(0, n), sums)
        return
    ends = [LANES * (n * i // (count * LANES)) for i in range(count)] + [n]
    own: dict[int, ClassSums] = {}

    def part(rows: slice) -> None:
        some = None if sums is None else own.setdefault(rows.start, sums.alike())
        work(rows, some)

    on_threads(part, [slice(start, stop) for start, stop in pairwise(ends)])
    if sums is not None:
        for start in sorted(own):
            sums += own[start]


def on_threads(work: Callable[[T], None], jobs: list[T]) -> None:
    """Do each job, on as many threads as there are; this one takes part, as starting others takes time."""
    others = min(n_threads(), len(jobs)) - 1
    queue = iter(jobs)

    def drain() -> None:
        for job in queue:
            work(job)

    if others == 0:
        drain()
        return
    with ThreadPoolExecutor(others) as pool:
        helping = [pool.submit(drain) for _ in range(others)]
        drain()
        for each in helping:
            each.result()


def _scores(values: Array) -> tuple[Array, str]:
    """Scores as C reads them, and what it calls their type; half precision becomes single."""
    x = np.ascontiguousarray(single(values))
    return x, SINGLE if x.dtype == np.float32 else "double"


def _scratch(x: Array) -> tuple[int, Array]:
    """Room for LANES rows, at an address that vectors like, and the array that holds it."""
    room = np.empty(LANES * x.shape[1] + 16, dtype=x.dtype)
    address = _address(room)
    return address + -address % 64, room


def _reduce(
    values: Array, labels: Labels, normalized: bool, columns: Floats, correct: Mask, sums: ClassSums | None
) -> None:
    x, kind = _scores(values)
    y = _checked(labels, np.int64, len(x))
    scratch, _room = _scratch(x)
    classes = None if sums is None else _Classes(*_classes(sums))
    function = getattr(_c, f"assay_{'probabilities' if normalized else 'logits'}_{kind}")
    stride = columns.strides[0] // columns.itemsize
    into = _address(columns), stride, _address(correct), scratch, None if classes is None else addressof(classes)
    _refuse(function(_address(x), _address(y), *x.shape, *into), y)


def _classes(sums: ClassSums) -> tuple[object, ...]:
    b, k = len(sums.upper), len(sums.labels)
    sizes = ((sums.upper, b), (sums.mass, 4 * k), (sums.labels, k), (sums.binned, 3 * k * b))
    upper, *rest = (_address(_checked(x.reshape(-1), np.float64, size)) for x, size in sizes)
    return upper, b, sums.threshold, *rest


def _finite(values: Array) -> bool:
    x, kind = _scores(values)
    return bool(getattr(_c, f"assay_finite_{kind}")(_address(x), x.size))


def _moments(logits: Array, labels: Labels, b: float) -> Floats:
    x, kind = _scores(logits)
    y = _checked(labels, np.int64, len(x))
    scratch, _room = _scratch(x)
    sums = np.zeros(4)
    function = getattr(_c, f"assay_moments_{kind}")
    _refuse(function(_address(x), _address(y), *x.shape, b, scratch, _address(sums)), y)
    return sums


def _confidence(logits: Array, b: float, out: Floats) -> None:
    x, kind = _scores(logits)
    scratch, _room = _scratch(x)
    into = _address(_checked(out, np.float64, len(x)))
    getattr(_c, f"assay_confidence_{kind}")(_address(x), *x.shape, b, scratch, into)


def _checked(x: Array, dtype: Any, size: int) -> Array:
    """An array that C may read or write: of this type and size, in one piece."""
    if x.dtype != dtype or x.shape != (size,) or not x.flags.c_contiguous:
        raise InputError(f"an array of {size} {np.dtype(dtype)} in one piece is needed, got {x.dtype} {list(x.shape)}")
    return x


def _refuse(row: int, labels: Labels) -> None:
    """Raise on the row at which the library stopped, unless it is the end."""
    if row != len(labels):
        raise InputError(f"row {row}: label {int(labels[row])} is no class")


def _columns(length: int, *columns: Floats) -> list[Any]:
    """What C takes for columns of this many doubles."""
    return [_at(_checked(column, np.float64, length)) for column in columns]


def runs(negated: Floats, errors: Floats) -> tuple[Floats, Floats, Floats]:
    """A ranking's three columns from ascending negated scores, whose memory is reused, and those that were errors."""
    if not AVAILABLE:
        return plain.runs(negated, errors)
    n, m = len(negated), len(errors)
    kept, wrong = np.empty(n + 1), np.empty(n + 1)
    [address] = _columns(n, negated)
    t = _c.assay_runs(address, n, *_columns(m, errors), m, address, _at(kept), _at(wrong))
    return negated[:t], kept[: t + 1], wrong[: t + 1]


def areas(score: Floats, kept: Floats, wrong: Floats) -> Areas:
    """Sums that the metrics of a ranking share."""
    if not AVAILABLE:
        return plain.areas(score, kept, wrong)
    t, out = len(score), np.empty(8)
    _c.assay_areas(*_ranked(score, kept, wrong), t, _at(out))
    return Areas(*out.tolist())


def between(score: Floats, kept: Floats, wrong: Floats, start: Labels) -> Floats:
    """Of bins of a ranking, bin b its rows start[b + 1] to start[b]: sums over its samples, [5, b].

    They are the number of samples, the sum of confidence, the number of right answers, and the sums of the distance of
    confidence from the accuracy of the bin, and of the square of that.
    """
    if not AVAILABLE:
        return plain.between(score, kept, wrong, start)
    bins = len(start) - 1
    out, y = np.empty((5, bins)), np.ascontiguousarray(start, dtype=np.int64)
    if _c.assay_between(*_ranked(score, kept, wrong), len(score), _at(y), bins, _at(out)) != bins:
        raise InputError(f"bins of {len(score)} rows start at {y.tolist()}")
    return out


def _ranked(score: Floats, kept: Floats, wrong: Floats) -> list[Any]:
    """What C takes for the columns of a ranking."""
    return [*_columns(len(score), score), *_columns(len(score) + 1, kept, wrong)]


def width_bins(confidence: Floats, correct: Mask, upper: Floats) -> Floats:
    """Of bins of equal width that end with `upper`: how many samples, the sum of their confidence and of their hits."""
    if not AVAILABLE:
        return plain.width_bins(confidence, correct, upper)
    n, bins, out = len(confidence), len(upper), np.zeros((4, len(upper), 4))
    c, hits = np.ascontiguousarray(confidence), np.ascontiguousarray(correct)
    addresses = _address(_checked(c, np.float64, n)), _address(_checked(hits, np.bool_, n))
    _c.assay_width_bins(*addresses, n, *_columns(bins, upper), bins, _at(out))
    return np.asarray(out[0].T[:3])


def add_to_cells(confidence: Floats, correct: Mask, cells: Array) -> None:
    """Add samples with confidences in [0, 1] to cells of `Grid`; fewer than 2^32 in all."""
    if AVAILABLE:
        hits = np.ascontiguousarray(correct)
        _add_to_cells(confidence, _checked(hits, np.bool_, len(confidence)), -1, cells)
    else:
        plain.add_to_cells(confidence, correct, cells)


def add_bits_to_cells(confidence: Floats, correct: Array, first: int, cells: Array) -> None:
    """The same with a bit a sample, as arrow keeps booleans: bytes, and where in them the first bit is.

    A confidence outside [0, 1] is an error, after which some of the rows before it have been counted.
    """
    n = len(confidence)
    if correct.dtype != np.uint8 or correct.ndim != 1 or first < 0 or 8 * len(correct) < first + n:
        raise InputError(f"{n} bits are needed from bit {first} on, got {correct.dtype} {list(correct.shape)}")
    if AVAILABLE:
        _add_to_cells(confidence, np.ascontiguousarray(correct), first, cells)
    else:
        hits = np.unpackbits(correct, count=first + n, bitorder="little")[first:].astype(np.bool_)
        arrays.refuse(confidence, ~((confidence >= 0) & (confidence <= 1)), "confidence {} is outside [0, 1]")
        plain.add_to_cells(confidence, hits, cells)


def _add_to_cells(confidence: Floats, correct: Array, first: int, cells: Array) -> None:
    if cells.shape != (Grid.CELLS,) or cells.dtype != Grid.ROW or not cells.flags.c_contiguous:
        raise InputError(f"cells of a grid are needed, got {list(cells.shape)} of {cells.dtype}")
    n, c = len(confidence), np.ascontiguousarray(confidence)
    addresses = _address(_checked(c, np.float64, n)), _address(correct)
    row = _c.assay_tally(*addresses, first, n, Grid.BINS, _address(cells))
    if row != n:
        raise InputError(f"row {row}: confidence {c[row]} is outside [0, 1]")


def majorant(x: Floats, y: Floats) -> Labels:
    """Corners of the least concave function above the points, x rising: their indices, the two ends among them."""
    if len(x) < 2:
        raise InputError(f"a majorant needs at least two points, got {len(x)}")
    if not AVAILABLE:
        return plain.majorant(x, y)
    corner = np.empty(len(x), dtype=np.int64)
    return corner[: _c.assay_majorant(*_columns(len(x), x, y), len(x), _at(corner))]


def laplacian(score: Floats, kept: Floats, wrong: Floats, width: float) -> float:
    """sum_ij d_i d_j exp(-|c_i - c_j| / width) over the samples of a ranking with confidence c; d = correct - c."""
    if not AVAILABLE:
        return plain.laplacian(score, kept, wrong, width)
    return float(_c.assay_laplacian(*_ranked(score, kept, wrong), len(score), width))


def residuals(score: Floats, kept: Floats, wrong: Floats, cells: int) -> Floats:
    """Sums of confidence less correctness over the samples of a ranking in cells of equal width of [0, 1]."""
    if not AVAILABLE or score[-1] < 0:
        return plain.residuals(score, kept, wrong, cells)
    out = np.zeros(cells)
    _c.assay_residuals(*_ranked(score, kept, wrong), len(score), cells, _at(out))
    return out


def log_likelihood(score: Floats, kept: Floats, wrong: Floats) -> float:
    """sum of hits log c + misses log(1 - c) over a ranking's scores c; no error has c = 1, no hit c = 0."""
    if not AVAILABLE or not np.finfo(np.float64).tiny <= score[-1] or score[0] > 1:
        return plain.log_likelihood(score, kept, wrong)
    return float(_c.assay_log_likelihood(*_ranked(score, kept, wrong), len(score)))


def sweep(kept: Floats, right: Floats, first: int, last: int) -> int:
    """The most bins, tried from `first` to `last`, up to which accuracies of equal-mass bins are all in order."""
    if not AVAILABLE:
        return plain.sweep(kept, right, first, last)
    if not 0 <= kept[-1] < MOST_SAMPLES:
        raise InputError(f"a ranking of {kept[-1]} samples")
    return int(_c.assay_sweep(*_columns(len(kept), kept, right), len(kept) - 1, first, last))
