"""Loops that numpy and torch cannot express well, in C (`loops.c`), compiled when the package is installed.

Where no C compiler was found then, `AVAILABLE` is false, and the callers do the same in numpy and torch. The library is
named after the digest of its source, so that none but that of this very source is ever loaded.
"""

from __future__ import annotations

import warnings
from ctypes import CDLL, c_char, c_double, c_float, c_int64, c_void_p
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from assay._core.arrays import InputError

Floats = NDArray[np.float64]
MOST_CLASSES = 1024


def _load() -> CDLL | None:
    source = Path(__file__).with_name("loops.c")
    try:
        library = source.with_name(f"loops-{sha256(source.read_bytes()).hexdigest()[:12]}.so")
    except OSError:  # in an archive, or without its sources
        return None
    if not library.exists():
        return None
    try:
        return _typed(CDLL(str(library)))
    except (OSError, AttributeError) as error:
        warnings.warn(f"the compiled loops are not used, for {library} cannot be loaded: {error}", stacklevel=2)
        return None


def _typed(c: CDLL) -> CDLL:
    """What each function takes and returns; an address is an array's, or none."""
    p, n, x = c_void_p, c_int64, c_double
    c.assay_reduce_logits.argtypes, c.assay_reduce_logits.restype = (p, p, n, n, p, n, p, p), n
    c.assay_tally.argtypes, c.assay_tally.restype = (p, p, n, n, p, n, c_float, p, p), n
    c.assay_runs.argtypes, c.assay_runs.restype = (p, n, p, n, p, p, p), n
    c.assay_spread.argtypes, c.assay_spread.restype = (p, p, p, n, p, p, p, p, p), None
    c.assay_risks.argtypes, c.assay_risks.restype = (p, p, n), x
    c.assay_log_likelihood.argtypes, c.assay_log_likelihood.restype = (p, p, p, n), x
    c.assay_majorant.argtypes, c.assay_majorant.restype = (p, p, n, p), n
    c.assay_laplacian.argtypes, c.assay_laplacian.restype = (p, p, p, n, x), x
    c.assay_sweep.argtypes, c.assay_sweep.restype = (p, p, n, n, n), n
    return c


_c: Any = _load()
AVAILABLE = _c is not None
_at: Any = (c_char * 0).from_buffer  # the address of an array, several times as fast as its `ctypes`


def takes(logits: Tensor) -> bool:
    """Not too many classes, in single precision or less and in the CPU's memory: what `reduce_logits` is for."""
    fits = logits.shape[1] <= MOST_CLASSES
    return AVAILABLE and fits and logits.element_size() <= 4 and logits.device.type == "cpu"


def reduce_logits(
    logits: Tensor, labels: Tensor, columns: Floats, correct: NDArray[np.bool_], *, keep: bool
) -> Tensor | None:
    """Write confidence, NLL, Brier, entropy [4, m] and correctness [m]; `keep` returns the probabilities, [m, k]."""
    z, y = logits.float().contiguous(), _indices(labels, len(logits))
    p = torch.empty_like(z) if keep else None
    stride = columns.strides[0] // columns.itemsize
    into = _at(columns[0]), stride, _at(correct), None if p is None else p.data_ptr()
    _refuse(_c.assay_reduce_logits(z.data_ptr(), y.data_ptr(), *z.shape, *into), y)
    return p


def tally(
    probabilities: Tensor, labels: Tensor, upper: Tensor, threshold: float, columns: Tensor, binned: Tensor
) -> None:
    """Add rows of probabilities to the sums of each class [2, k], and above the threshold of each bin [3, k b]."""
    p, y = probabilities.contiguous(), _indices(labels, len(probabilities))
    bins = upper.data_ptr(), len(upper), threshold
    _refuse(_c.assay_tally(p.data_ptr(), y.data_ptr(), *p.shape, *bins, columns.data_ptr(), binned.data_ptr()), y)


def _indices(labels: Tensor, n: int) -> Tensor:
    """Labels as the library reads them."""
    if len(labels) != n:
        raise InputError(f"{n} rows of predictions but {len(labels)} labels")
    return labels.long().contiguous()


def _refuse(row: int, labels: Tensor) -> None:
    """Raise on the row at which the library stopped, unless it is the end."""
    if row < len(labels):
        raise InputError(f"row {row}: label {int(labels[row])} is no class")


def runs(negated: Floats, errors: Floats) -> tuple[Floats, Floats, Floats]:
    """A ranking's three columns from ascending negated scores, and those of them that were errors."""
    n = len(negated)
    score, kept, wrong = np.empty(n), np.empty(n + 1), np.empty(n + 1)
    t = _c.assay_runs(_at(negated), n, _at(errors), len(errors), _at(score), _at(kept), _at(wrong))
    return score[:t], kept[: t + 1], wrong[: t + 1]


def risks(kept: Floats, wrong: Floats) -> float:
    """Sum over k of the error rate to expect among the k most confident of a ranking, where ties come in any order."""
    return float(_c.assay_risks(_at(kept), _at(wrong), len(kept) - 1))


def spread(score: Floats, kept: Floats, wrong: Floats) -> tuple[Floats, ...]:
    """Of a ranking: right answers and claims among the kept [t + 1]; size, errors and right answers of a score [t]."""
    t = len(score)
    right, claimed, size, misses, hits = np.empty(t + 1), np.empty(t + 1), np.empty(t), np.empty(t), np.empty(t)
    into = _at(right), _at(claimed), _at(size), _at(misses), _at(hits)
    _c.assay_spread(_at(score), _at(kept), _at(wrong), t, *into)
    return right, claimed, size, misses, hits


def majorant(x: Floats, y: Floats) -> NDArray[np.int64]:
    """Corners of the least concave function above the points, x rising: their indices, the two ends among them."""
    corner = np.empty(len(x), dtype=np.int64)
    return corner[: _c.assay_majorant(_at(x), _at(y), len(x), _at(corner))]


def laplacian(score: Floats, size: Floats, hits: Floats, width: float) -> float:
    """sum_ij d_i d_j exp(-|c_i - c_j| / width) over samples in descending order of c, with d = correct - c."""
    return float(_c.assay_laplacian(_at(score), _at(size), _at(hits), len(score), width))


def log_likelihood(score: Floats, hits: Floats, misses: Floats) -> float:
    """sum of hits log c + misses log(1 - c) over descending scores c, the least of them a normal number."""
    return float(_c.assay_log_likelihood(_at(score), _at(hits), _at(misses), len(score)))


def sweep(kept: Floats, right: Floats, first: int, last: int) -> int:
    """The most bins, tried from `first` to `last`, up to which accuracies of equal-mass bins are all in order."""
    return int(_c.assay_sweep(_at(kept), _at(right), len(kept) - 1, first, last))
