"""Tallies as bytes: named arrays in the npz format, with a version."""

from __future__ import annotations

from io import BytesIO
from typing import Any
from zipfile import BadZipFile

import numpy as np

from assay._core.arrays import InputError
from assay._core.plain import Grid
from assay.metrics import ClassBins
from assay.scale._cells import Cells
from assay.scale._tally import Tally

VERSION = 2
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
    except (BadZipFile, KeyError, OSError, ValueError, EOFError) as problem:
        if isinstance(problem, InputError):
            raise
        raise InputError("is no stored tally, or is damaged") from problem


def _arrays(tally: Tally, prefix: str = "") -> dict[str, Any]:
    """Everything of a tally as named arrays."""
    cells, bins = tally.cells, tally.class_bins
    flags = np.array([cells.on_grid, tally.is_probability])
    found = {"cells": cells.table, "mixed": np.packbits(cells.mixed), "flags": flags, "sums": tally.sums}
    if bins is not None:
        found["classes"] = np.array([bins.threshold, bins.n])
        found |= {f"classes_{name}": getattr(bins, name) for name in _CLASS_COLUMNS}
    if tally.of_positive is not None:
        found |= _arrays(tally.of_positive, "positive_")
    if tally.groups:
        labels = sorted(tally.label_groups)
        found["groups"], found["labels"] = np.array(list(tally.groups)), np.array([label for label, _ in labels], int)
        found["label_groups"] = np.array([name for _, name in labels], str)
        for i, group in enumerate(tally.groups.values()):
            found |= _arrays(group, f"group_{i}_")
    return {f"{prefix}{name}": array for name, array in found.items()}


def _tally(stored: dict[str, Any], prefix: str = "") -> Tally:
    on_grid, is_probability = map(bool, stored[f"{prefix}flags"])
    bins = None
    if f"{prefix}classes" in stored:
        threshold, n = stored[f"{prefix}classes"].tolist()
        bins = ClassBins(threshold, int(n), *(stored[f"{prefix}classes_{name}"] for name in _CLASS_COLUMNS))
    positive = _tally(stored, f"{prefix}positive_") if f"{prefix}positive_cells" in stored else None
    table, sums = stored[f"{prefix}cells"], stored[f"{prefix}sums"]
    if table.ndim != 2 or table.shape[1] != 3 or sums.shape != (3, 2, 2) or (on_grid and len(table) != Grid.CELLS):
        raise ValueError(f"cells of shape {list(table.shape)}")
    mixed = np.unpackbits(stored[f"{prefix}mixed"], count=len(table)).astype(bool)
    names = stored[f"{prefix}groups"].tolist() if f"{prefix}groups" in stored else []
    groups = {name: _tally(stored, f"{prefix}group_{i}_") for i, name in enumerate(names)}
    pairs = [stored[f"{prefix}{name}"].tolist() for name in ("labels", "label_groups")] if groups else [[], []]
    labels = frozenset(zip(*pairs, strict=True))
    return Tally(Cells(table, mixed, on_grid), sums, bins, positive, is_probability, groups, labels)
