"""Numbers, truths and labels as people write them, where a flag or the words themselves leave no doubt."""

from __future__ import annotations

from warnings import warn

import numpy as np

from assay._core.arrays import Array, Floats, InputError, Mask
from assay.files._classes import listed

NO, YES = ("no", "false", "n", "f", "wrong", "incorrect"), ("yes", "true", "y", "t", "right", "correct")
NO_PER_CENT = 0.015  # all per cents of a column are below this only if they are shares
ROUNDING = 0.1  # how far from 1 the sum of rounded probabilities may be


def numbers(column: Array, name: str, *, percent: bool, decimal: str) -> Array:
    """Numbers [n] or [n, k]; text is read with this decimal mark, and per cents are divided by 100 where asked."""
    found = _from_text(column, name, percent, decimal) if column.dtype.kind in "UO" and column.size else column
    return np.asarray(found / 100) if percent and found.dtype.kind in "biuf" else found


def refuse_shares(of_per_cents: Array) -> None:
    """Refuse per cents, already divided by 100, of which none is above 1.5."""
    if of_per_cents.dtype.kind in "biuf" and of_per_cents.size and not (of_per_cents > NO_PER_CENT).any():
        raise InputError(f"there are no per cents: the largest is {100 * of_per_cents.max():.4g}; leave out --percent")


def _from_text(column: Array, name: str, percent: bool, decimal: str) -> Array:
    if len(decimal) != 1:
        raise InputError(f"--decimal must be one character, as in --decimal ',', got '{decimal}'")
    texts = np.char.strip(column.astype(str))
    plain = np.char.replace(np.char.rstrip(texts, "% ") if percent else texts, decimal, ".")
    try:
        return plain.astype(np.float64)
    except ValueError:
        pass
    for row, text in enumerate(texts.reshape(-1).tolist()):
        for flag, written in (("--percent", text.endswith("%")), ("--decimal ,", _is_number(text.replace(",", ".")))):
            if written and not _is_number(text):
                row //= max(1, texts.size // len(texts))
                raise InputError(f"column '{name}', row {row}: '{text}' is read by {flag}")
    return column


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def truths(column: Array) -> Array:
    """Whether each is true, written as yes or no, true or false, right or wrong; anything else as it came."""
    if column.dtype.kind not in "UO":
        return column
    words = np.char.lower(np.char.strip(column.astype(str)))
    if np.isin(words, (*NO, "0", *YES, "1")).all():
        return np.isin(words, (*YES, "1"))
    return column


def two_labels(labels: Array, positive_label: str | None) -> tuple[Array, tuple[str, str] | None]:
    """Labels 0 and 1 of two classes, and what these are called."""
    if positive_label is None:
        told = truths(labels)
        if labels.dtype.kind == "b" or told is not labels:
            names = np.unique(labels.astype(str)).tolist()
            pair = [next((n for n in names if (n.strip().lower() in YES) == is_yes), None) for is_yes in (False, True)]
            named = (pair[0], pair[1]) if pair[0] and pair[1] and not any(n.isdecimal() for n in names) else None
            return told.astype(np.int64), named
        if labels.dtype.kind not in "UO":
            return labels, None
    names = np.unique(labels.astype(str)).tolist()
    if positive_label is None:
        raise InputError(
            f"labels are {listed(names)}; say which of them is class 1, as in --positive-label {names[-1]}"
        )
    if len(names) > 2 or positive_label not in names:
        raise InputError(
            f"--positive-label {positive_label}, but labels are {listed(names)}: two are needed, one of them this"
        )
    other = next((name for name in names if name != positive_label), f"not {positive_label}")
    return (labels.astype(str) == positive_label).astype(np.int64), (other, positive_label)


def indices(labels: Array, classes: tuple[str, ...]) -> Array:
    """The place of each label among the named classes; numbers are places already."""
    if labels.dtype.kind not in "UO":
        return labels
    place = {name: i for i, name in enumerate(classes)}
    for row, name in enumerate(labels.astype(str).tolist()):
        if name not in place:
            raise InputError(f"row {row}: label '{name}' is none of the classes {listed(classes)}")
    return np.array([place[name] for name in labels.astype(str).tolist()])


def normalized(p: Array, where: str) -> Array:
    """Rows divided by their sums, which is said; more than rounding is refused."""
    if p.ndim != 2:
        return p
    sums: Floats = p.sum(1, dtype=np.float64)
    off = np.abs(sums - 1)
    if off.max() > ROUNDING:
        row = int(off.argmax())
        raise InputError(
            f"row {row}: probabilities sum to {sums[row]:.4g}, which is more than rounding; --normalize is for that"
        )
    seen = f"{where}: rows of probabilities sum to {sums.min():.4g} to {sums.max():.4g}" if where else "rounded rows"
    warn(f"{seen}; they are divided by their sum", stacklevel=5)
    return np.asarray(p / sums[:, None])


def refuse_probabilities(z: Array) -> None:
    """Refuse logits that look like probabilities."""
    if look_like_probabilities(z):
        raise InputError(
            "these look like probabilities, each row sums to 1; say --probabilities, or --yes if they are logits"
        )


def look_like_probabilities(z: Array) -> bool:
    """Whether every row, of ten at least, is non-negative and sums to 1."""
    if z.ndim != 2 or len(z) < 10 or z.dtype.kind != "f" or abs(float(z[0].sum()) - 1) > 1e-3:
        return False
    return bool(z.min() >= 0 and (np.abs(z.sum(1, dtype=np.float64) - 1) <= 1e-3).all())


def ignored(labels: Array, label: str) -> Mask:
    """Rows whose label is the one to ignore, written as a number or a name."""
    if labels.dtype.kind in "biuf" and _is_number(label):
        return np.asarray(labels == float(label))
    return np.asarray(labels.astype(str) == label)
