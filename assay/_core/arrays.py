"""The one place where arrays enter the library, whichever library made them, and where they are checked.

Inside, everything is a numpy array. Lists, numpy, torch, jax, pandas, polars, pyarrow and whatever else follows
`__array__` or DLPack come in through `array`; memory is shared where it can be.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[Any]
Floats = NDArray[np.float64]
Labels = NDArray[np.int64]
Mask = NDArray[np.bool_]
Tags = NDArray[Any]  # ids and groups: numbers or strings, compared and never calculated with
Rows = slice | Sequence[int] | NDArray[np.integer[Any]] | Mask  # which rows: a slice, indices or a mask

CHUNK = 2**17  # elements of a chunk that stays in a core's cache
LIGHTEST = 1e-100  # weight; sums of squares of such and of its inverse stay finite


class InputError(ValueError):
    """The input is wrong; the message says what, where and what to do."""


class NoRows(InputError):
    """Rows are needed and there are none."""


def array(values: ArrayLike, *, name: str) -> Array:
    """View `values` as a numpy array of numbers, sharing memory where it can; lists of floats become float64."""
    x = _foreign(values, name)
    if x.ndim == 0:
        raise InputError(f"{name} must be an array, got {type(values).__name__}")
    if x.dtype.kind == "O":
        x = _of_objects(x, name)
    elif x.dtype.itemsize == 2 and x.dtype.name == "bfloat16":  # of jax, by way of ml_dtypes: numpy has no such type
        x = x.astype(np.float32)
    if x.dtype.kind not in "fiub":
        _refuse_text(x, name)
    if not x.dtype.isnative or x.dtype.itemsize > 8:
        x = x.astype(np.float64 if x.dtype.itemsize > 8 else x.dtype.newbyteorder("="))
    return x


def floats(values: ArrayLike, *, name: str, ndim: int) -> Array:
    """View `values` as a floating array of `ndim` dimensions with at least one row."""
    x = array(values, name=name)
    if x.ndim != ndim:
        shape = "[n]" if ndim == 1 else "[n, k]"
        raise InputError(f"{name} must have shape {shape}, got {list(x.shape)}")
    if len(x) == 0:
        raise NoRows(f"{name}: no rows")
    return x if x.dtype.kind == "f" else x.astype(np.float64)


def labels(values: ArrayLike, *, n_classes: int, n: int) -> Labels:
    """View `values` as `n` int64 class indices in [0, n_classes)."""
    y = array(values, name="labels")
    if y.ndim == 2:
        several = y.shape[0] == n and y.size and not (y.sum(1) == 1).all()
        instead = (
            "of rows with several labels audit each as two classes"
            if several
            else "of one-hot rows give labels.argmax(1)"
        )
        raise InputError(f"labels have shape {list(y.shape)}, not [n]; {instead}")
    if y.dtype.kind == "f" and y.size and not (np.isfinite(y).all() and (y == np.rint(y)).all()):
        raise InputError(f"labels must be integer class indices, got {y.dtype} (row 0 is {y.reshape(-1)[0]})")
    if y.shape != (n,):
        turned = "; they seem transposed: one row a sample is needed" if y.shape == (n_classes,) else ""
        raise InputError(f"{n} rows of predictions but labels of shape {list(y.shape)}{turned}")
    y = np.ascontiguousarray(y, dtype=np.int64)
    least, most = int(y.min()), int(y.max())
    if least < 0 or most >= n_classes:
        hint = "; classes count from 0, so take 1 off each label" if (least, most) == (1, n_classes) else ""
        hint = f"; rows labelled {least} are left out by --ignore {least}" if least < 0 <= most < n_classes else hint
        refuse(y, (y < 0) | (y >= n_classes), f"label {{}} is outside 0..{n_classes - 1}{hint}")
    return y


def booleans(values: ArrayLike, *, name: str, n: int) -> Mask:
    """View `values` as `n` booleans; 0 and 1 of any number type will do."""
    x = array(values, name=name)
    if x.shape != (n,):
        raise InputError(f"{n} rows of confidence but {name} of shape {list(x.shape)}")
    if x.dtype != np.bool_:
        refuse(x, (x != 0) & (x != 1), f"{name} must be 0 or 1, got {{}}")
    return np.ascontiguousarray(x, dtype=np.bool_)


def tags(values: ArrayLike | None, *, name: str, n: int) -> Tags | None:
    """View `values` as `n` numbers or strings."""
    if values is None:
        return None
    x = _foreign(values, name)
    if x.shape != (n,):
        raise InputError(f"{n} rows of predictions but {name} of shape {list(x.shape)}")
    if x.dtype.kind in "fMm":
        refuse(x.astype(str), x != x, f"{name} is {{}}; give every row one")
    elif isinstance(values, (list, tuple)) or x.dtype.kind in "OT":  # numpy makes a string of a NaN among strings
        given = list(values) if isinstance(values, (list, tuple)) else x.tolist()
        missing = [row for row, value in enumerate(given) if _is_missing(value)]
        if missing:
            raise InputError(f"row {missing[0]}: {name} is {given[missing[0]]}; give every row one")
    return x.astype(str) if x.dtype.kind in "OT" else x


def _is_missing(value: object) -> bool:
    """Whether it is None, or not equal to itself: NaN, NaT, or NA, whose comparisons are neither true nor false."""
    try:
        return value is None or bool(value != value)
    except TypeError:
        return True


def unique_tags(values: ArrayLike | None, *, name: str, n: int) -> Tags | None:
    """As `tags`, none twice: they tell one row from another."""
    x = tags(values, name=name, n=n)
    if x is not None:
        seen, first, count = np.unique(x, return_index=True, return_counts=True)
        if len(seen) < n:
            twice = f"{seen[count.argmax()]} (row {first[count.argmax()]}) is repeated"
            raise InputError(
                f"{name} must be unique: {twice}; what rows share, a patient or a prompt, is their cluster"
            )
    return x


def weights(values: ArrayLike | None, *, n: int) -> Floats | None:
    """View `values` as `n` positive numbers: how much each row counts."""
    if values is None:
        return None
    x = array(values, name="weights")
    if x.shape != (n,):
        raise InputError(f"{n} rows of predictions but weights of shape {list(x.shape)}")
    refuse(
        x, ~(np.isfinite(x) & (x > 0)), "weight is {}; weights must be positive, so leave out rows that do not count"
    )
    refuse(
        x, (x < LIGHTEST) | (x > 1 / LIGHTEST), f"weight is {{}}; weights must lie from {LIGHTEST} to {1 / LIGHTEST}"
    )
    return np.ascontiguousarray(x, dtype=np.float64)


def refuse(x: Array, wrong: Array, message: str) -> None:
    """Raise on the first element of `x` marked `wrong`; `{}` in the message stands for its value."""
    if wrong.any():
        place = np.argwhere(wrong)[0].tolist()
        where = f"row {place[0]}" + (f", class {place[1]}" if len(place) == 2 else "")
        value = x[tuple(place)]
        raise InputError(f"{where}: {message.format(value.item() if isinstance(value, np.generic) else value)}")


def row_chunks(n: int, row: int) -> list[slice]:
    """Cut `n` rows of `row` elements into runs that stay in a core's cache."""
    size = max(1, CHUNK // max(row, 1))
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def single(x: Array) -> Array:
    """Half precision as float32, anything else as it is: numpy calculates slowly in half precision."""
    return x.astype(np.float32) if x.dtype.itemsize < 4 else x


def softmax(z: Array) -> Array:
    """Probabilities [n, k] of logits [n, k], in their precision, at least float32."""
    p: Array = np.exp(_below_highest(z))
    p /= p.sum(1, keepdims=True, dtype=np.float64)
    return p


def _below_highest(z: Array) -> Array:
    """How far each logit is above the highest of its row; -inf where its precision does not reach."""
    with np.errstate(over="ignore"):
        below: Array = single(z) - z.max(1, keepdims=True)
    return below


def log_softmax(z: Array) -> Array:
    """Log-probabilities [n, k] of logits [n, k]; -inf stays -inf."""
    below = _below_highest(z)
    below -= np.log(np.exp(below).sum(1, keepdims=True, dtype=np.float64)).astype(below.dtype)
    return below


def log(x: Array) -> Array:
    """Logarithm, -inf of 0 without a warning."""
    with np.errstate(divide="ignore"):
        return np.log(x)


def _foreign(values: Any, name: str) -> Array:
    """Anything as a numpy array, by the protocol that it follows."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        refuse(values.data, np.ma.getmaskarray(values), f"{name} is missing")
    if isinstance(values, np.ndarray):
        return np.asarray(values)
    if type(values).__module__.partition(".")[0] == "torch" or hasattr(values, "resolve_neg"):
        return _of_torch(values, name)
    for part, other in (("logits", "logits"), ("predictions", "label_ids")):  # what models of Hugging Face return
        if hasattr(values, part) and hasattr(values, other):
            raise InputError(f"{name} must be an array, got {type(values).__name__}; give its .{part}")
    if hasattr(values, "__dlpack__") and not hasattr(values, "__array__"):
        return _of_dlpack(values, name)
    try:
        return np.asarray(values)
    except ValueError:
        raise InputError(f"{name}: rows differ in length") from None
    except TypeError as problem:  # as cupy, which refuses to leave its device unasked
        if hasattr(values, "__dlpack__"):
            return _of_dlpack(values, name)
        raise InputError(f"{name} cannot be read as an array: {problem}") from None


def _of_torch(tensor: Any, name: str) -> Array:
    """A tensor on whatever device, with or without gradient; numpy has no bfloat16."""
    try:
        plain = tensor.detach().resolve_neg().resolve_conj().cpu()
        x: Array = (plain.float() if str(plain.dtype) == "torch.bfloat16" else plain).numpy()
    except (NotImplementedError, RuntimeError, TypeError) as problem:
        raise InputError(f"{name} cannot be read as an array: {problem}") from None
    return x


def _of_dlpack(values: Any, name: str) -> Array:
    try:
        return np.from_dlpack(values, device="cpu") if values.__dlpack_device__()[0] != 1 else np.from_dlpack(values)
    except (BufferError, RuntimeError, TypeError, ValueError) as problem:
        raise InputError(f"{name} cannot be read from its device: {problem}; copy it to the CPU first") from None


def _of_objects(x: Array, name: str) -> Array:
    """Columns of lists or arrays become rows; objects that are numbers become floats."""
    items = x.tolist()
    if x.ndim == 1 and x.size and hasattr(items[0], "__len__") and not isinstance(items[0], str | bytes):
        rows = [np.asarray(item) for item in items]
        if len({row.shape for row in rows}) > 1:
            odd = next(i for i, row in enumerate(rows) if row.shape != rows[0].shape)
            raise InputError(f"{name}: rows differ in length, row {odd} has {rows[odd].size} and row 0 {rows[0].size}")
        return np.stack(rows)
    flat = x.reshape(-1).tolist()
    if not all(map(_is_number, flat)):
        return x
    return x.astype(np.int64 if all(isinstance(item, int | np.integer) for item in flat) else np.float64)


def _refuse_text(x: Array, name: str) -> None:
    """Raise on the first value that is no number."""
    for row, value in enumerate(x.reshape(-1).tolist()):
        if not _is_number(value):
            hint = "; number the classes from 0 in the order of the columns" if name == "labels" else ""
            raise InputError(f"row {row // max(x[0].size, 1)}: {name} must be numbers, got '{value}'{hint}")
    raise InputError(f"{name} must be numbers, got {x.dtype}")


def _is_number(value: object) -> bool:
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True
