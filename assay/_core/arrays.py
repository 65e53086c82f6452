"""The one door through which numpy, lists and tensors enter the library, and the checks that stand at it."""

import warnings
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

ArrayLike = Tensor | NDArray[np.generic] | Sequence[object]
Tags = NDArray[np.generic]  # ids and groups: numbers or strings, compared and never calculated with


class InputError(ValueError):
    """The data that came in are wrong; the message says what, where and what to do."""


def tensor(values: ArrayLike, *, name: str) -> Tensor:
    """View `values` as a tensor, sharing memory where it can; lists of floats become float64."""
    if isinstance(values, Tensor):
        return values.detach().resolve_neg()  # a view that only notes its sign would be read without it
    try:
        array = np.asarray(values)
    except ValueError:
        raise InputError(f"{name}: rows differ in length") from None
    if array.dtype.kind not in "fiub":
        _refuse_text(array, name)
    if not array.dtype.isnative or array.dtype.itemsize > 8 or any(stride < 0 for stride in array.strides):
        array = np.ascontiguousarray(array, "f8" if array.dtype.itemsize > 8 else array.dtype.newbyteorder("="))
    with warnings.catch_warnings():
        # torch warns of read-only memory, which nothing here writes to.
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.as_tensor(array)


def floats(values: ArrayLike, *, name: str, ndim: int) -> Tensor:
    """View `values` as a floating tensor of `ndim` dimensions with at least one row."""
    x = tensor(values, name=name)
    if x.ndim != ndim:
        shape = "[n]" if ndim == 1 else "[n, k]"
        raise InputError(f"{name} must have shape {shape}, got {list(x.shape)}")
    if len(x) == 0:
        raise InputError(f"{name}: no rows")
    return x if x.is_floating_point() else x.double()


def labels(values: ArrayLike, *, n_classes: int, n: int) -> Tensor:
    """View `values` as `n` int64 class indices in [0, n_classes)."""
    y = tensor(values, name="labels")
    if y.ndim == 2:
        raise InputError(f"labels have shape {list(y.shape)}, not [n]; of one-hot rows give labels.argmax(1)")
    if y.is_floating_point() and len(y):
        raise InputError(f"labels must be integer class indices, got {_dtype(y)} (row 0 is {y.reshape(-1)[0].item()})")
    if y.shape != (n,):
        raise InputError(f"{n} rows of predictions but labels of shape {list(y.shape)}")
    y = y.long()
    least, most = map(int, y.aminmax())
    if least < 0 or most >= n_classes:
        hint = "; classes count from 0, so take 1 off each label" if (least, most) == (1, n_classes) else ""
        refuse(y, (y < 0) | (y >= n_classes), f"label {{}} is outside 0..{n_classes - 1}{hint}")
    return y


def booleans(values: ArrayLike, *, name: str, n: int) -> Tensor:
    """View `values` as `n` booleans; 0 and 1 of any number type will do."""
    x = tensor(values, name=name)
    if x.shape != (n,):
        raise InputError(f"{n} rows of confidence but {name} of shape {list(x.shape)}")
    refuse(x, (x != 0) & (x != 1), f"{name} must be 0 or 1, got {{}}")
    return x.bool()


def tags(values: ArrayLike | None, *, name: str, n: int) -> Tags | None:
    """View `values` as `n` numbers or strings."""
    if values is None:
        return None
    array = np.asarray(values.cpu() if isinstance(values, Tensor) else values)
    if array.dtype == object:
        array = array.astype(str)
    if array.shape != (n,):
        raise InputError(f"{n} rows of predictions but {name} of shape {list(array.shape)}")
    return array


def unique_tags(values: ArrayLike | None, *, name: str, n: int) -> Tags | None:
    """As `tags`, none twice: they tell one row from another."""
    array = tags(values, name=name, n=n)
    if array is not None:
        seen, first, count = np.unique(array, return_index=True, return_counts=True)
        if len(seen) < n:
            raise InputError(f"{name} must be unique: {seen[count.argmax()]} (row {first[count.argmax()]}) is repeated")
    return array


def refuse(x: Tensor, wrong: Tensor, message: str) -> None:
    """Raise on the first element of `x` marked `wrong`; `{}` in the message stands for its value."""
    if wrong.any():
        place = wrong.nonzero()[0].tolist()
        where = f"row {place[0]}" + (f", class {place[1]}" if len(place) == 2 else "")
        raise InputError(f"{where}: {message.format(x[tuple(place)].item())}")


def row_chunks(n: int, row: int, *, device: torch.device) -> list[slice]:
    """Cut `n` rows of `row` elements into runs that stay in a core's cache (on a GPU: in its memory)."""
    size = max(1, (2**17 if device.type == "cpu" else 2**26) // max(row, 1))
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def laid_out(chunk: Tensor) -> tuple[Tensor, int]:
    """A chunk [m, k] in the layout that is fastest to sum over classes, and the axis of these.

    A few neighbors do not fill the registers of a CPU, so few classes are better kept as rows.
    """
    chunk = chunk.float() if chunk.element_size() < 4 else chunk
    if chunk.shape[1] >= 32 or chunk.device.type != "cpu":
        return chunk, 1
    return torch.from_numpy(np.array(chunk.numpy().T, order="C")), 0  # twice as fast as torch's own copy


def cumsum(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cumulative sums, in place and by torch: it keeps the sum in a register, numpy stores and reloads it."""
    return torch.from_numpy(x).cumsum_(0).numpy()


def exp(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """exp, in place and by torch: its vector code is two to three times as fast as numpy's without AVX-512."""
    return torch.from_numpy(x).exp_().numpy()


def log(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """log, by torch for the same reason."""
    return torch.from_numpy(x).log().numpy()


def _refuse_text(array: NDArray[np.generic], name: str) -> None:
    """Raise on the first value that is no number."""
    for row, value in enumerate(array.reshape(-1).tolist()):
        if not _is_number(value):
            raise InputError(f"row {row // max(array[0].size, 1)}: {name} must be numbers, got '{value}'")
    raise InputError(f"{name} must be numbers, got {array.dtype}")


def _is_number(value: object) -> bool:
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True


def _dtype(x: Tensor) -> str:
    return str(x.dtype).removeprefix("torch.")
