"""A summary of any number of rows in a table of fixed size; two of them add up."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from math import isfinite, nan
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from assay._core.arrays import Floats, InputError, Mask
from assay._core.plain import from_zero
from assay._core.writing import replacing
from assay.metrics import METRICS, Bins, ClassBins, Moments, Ranking, Tables, equal_width
from assay.predictions import Outcomes, Predictions
from assay.scale._bounds import bounds
from assay.scale._grid import CELLS, add_rows, cell_of, lowest, width_of

DISTINCT = 10_240  # scores up to which a tally keeps every one of them, so that nothing is approximated
VERSION = 1
MEANS = ("nll", "brier", "entropy")


@dataclass(frozen=True, eq=False)
class Tally:
    """How many answers were given with which confidence, and how many were wrong; `+` adds rows to rows.

    Up to 10,240 distinct scores each is kept, and every metric is exact. Beyond, confidences are counted in the cells
    of a fixed grid: accuracy, NLL, Brier, ECE and classwise ECE stay exact, `bounds` says how far the metrics of the
    ranking can be from their values on the rows. Any split of the rows, in any order, adds up to the same tally.

    >>> from assay import Outcomes, evaluate
    >>> a = Tally.of(Outcomes.from_scores([0.9, 0.8], [True, True]))
    >>> b = Tally.of(Outcomes.from_scores([0.7, 0.6], [False, True]))
    >>> {key: round(value, 3) for key, value in evaluate(a + b, ["ece", "auroc"]).items()}
    {'ece': 0.35, 'auroc': 0.667}
    """

    cells: Floats  # [t, 3] samples, errors, and the score; on the grid the sum of confidence instead of the score
    on_grid: bool
    sums: Floats  # [3, 2, 2] of NLL, Brier and entropy, of right answers and errors, and of squares; nan where unknown
    class_bins: ClassBins | None = None
    of_positive: Tally | None = None  # of two classes, the tally of the probability of class 1
    is_probability: bool = True

    @staticmethod
    def of(rows: Predictions | Outcomes) -> Tally:
        """The tally of rows in memory."""
        if rows.weights is not None:
            raise InputError("a tally counts every row alike; weighted rows must be evaluated in memory")
        t = Tables(rows)
        o = t.outcomes
        sums = np.array([_sums(getattr(o, name), o.correct) for name in MEANS])
        classes = t.class_bins if t.n_classes else None
        positive = Tally.of(t.positive.outcomes) if t.n_classes == 2 else None
        if o.is_probability and _many(o.confidence):
            cells = np.zeros((CELLS, 3))
            add_rows(o.confidence, o.correct, cells)
            return Tally(cells, True, sums, classes, positive)
        score, place = np.unique(o.confidence, return_inverse=True)
        cells = np.stack([np.bincount(place), np.bincount(place, ~o.correct), score], 1)
        return _fitting(Tally(cells, False, sums, classes, positive, o.is_probability))

    def __add__(self, other: Tally) -> Tally:
        if self.is_probability != other.is_probability:
            raise InputError("a probability and a score that is none do not add up to one tally")
        on_grid = self.on_grid or other.on_grid
        cells = _gridded(self) + _gridded(other) if on_grid else _merged(self.cells, other.cells)
        classes = None
        if self.class_bins is not None and other.class_bins is not None:
            classes = self.class_bins + other.class_bins
        positive = None
        if self.of_positive is not None and other.of_positive is not None:
            positive = self.of_positive + other.of_positive
        return _fitting(Tally(cells, on_grid, self.sums + other.sums, classes, positive, self.is_probability))

    def __len__(self) -> int:
        """How many rows it has counted."""
        return int(self.cells[:, 0].sum())

    def __repr__(self) -> str:
        return f"Tally(n={len(self)}, errors={int(self.cells[:, 1].sum())}, {'grid' if self.on_grid else 'exact'})"

    @property
    def n_classes(self) -> int:
        return 0 if self.class_bins is None else len(self.class_bins.count)

    @cached_property
    def ranking(self) -> Ranking:
        """The ranking by confidence; a cell ranks as one score, the mean of its confidences."""
        size, misses, score = self.cells[self.cells[:, 0] > 0][::-1].T
        return Ranking(score / size if self.on_grid else score, from_zero(size), from_zero(misses))

    @cached_property
    def thresholds(self) -> Ranking:
        """The same counts at the lowest confidence of each cell: exactly so many samples have at least that."""
        r = self.ranking
        return Ranking(lowest()[self.cells[:, 0] > 0][::-1], r.kept, r.wrong) if self.on_grid else r

    @cached_property
    def width(self) -> Bins:
        """Bins of equal width."""
        return width_of(self.cells) if self.on_grid else equal_width(self.ranking)

    def moments(self, name: str) -> tuple[Moments, Moments] | None:
        """Of NLL, Brier or entropy, the mean and variance for right answers and for errors; None if unknown."""
        sums, n_wrong = self.sums[MEANS.index(name)], int(self.cells[:, 1].sum())
        if np.isnan(sums).any():
            return None
        return _moments(len(self) - n_wrong, *sums[0].tolist()), _moments(n_wrong, *sums[1].tolist())

    def bounds(self) -> dict[str, float]:
        """By metric, how far it can be from its value on the rows; of absent metrics no bound is known."""
        found = bounds(self.cells) if self.on_grid else dict.fromkeys(METRICS, 0.0)
        of_class_1 = {} if self.of_positive is None else self.of_positive.bounds()
        same = {"roc_auc": "auroc", "average_precision": "aupr_success"}
        return found | {key: of_class_1[other] for key, other in same.items() if other in of_class_1}

    def to_bytes(self) -> bytes:
        """As bytes, in the npz format."""
        stream = BytesIO()
        np.savez_compressed(stream, version=np.array(VERSION), **_arrays(self))
        return stream.getvalue()

    @staticmethod
    def from_bytes(stored: bytes) -> Tally:
        try:
            with np.load(BytesIO(stored), allow_pickle=False) as archive:
                if int(archive["version"]) != VERSION:
                    raise InputError(f"a tally of version {int(archive['version'])}; this release reads {VERSION}")
                return _tally({name: archive[name] for name in archive.files})
        except (BadZipFile, KeyError, OSError, ValueError, EOFError) as problem:
            if isinstance(problem, InputError):
                raise
            raise InputError("is no stored tally, or is damaged") from problem

    def save(self, file: str | Path) -> None:
        """Write it to a file, which appears whole or not at all."""
        with replacing(Path(file)) as stream:
            stream.write(self.to_bytes())

    @staticmethod
    def load(file: str | Path) -> Tally:
        try:
            return Tally.from_bytes(Path(file).read_bytes())
        except (OSError, InputError) as problem:
            reason = problem.strerror if isinstance(problem, OSError) else problem
            raise InputError(f"{file}: {reason}") from problem


def _sums(column: Floats | None, correct: Mask) -> Floats:
    """Sums over right answers and over errors, and of the squares."""
    if column is None:
        return np.full((2, 2), np.nan)
    return np.array([[part.sum(), part @ part] for part in (column[correct], column[~correct])])


def _moments(n: int, total: float, squares: float) -> Moments:
    mean = total / max(n, 1)
    spread = max(squares - n * mean * mean, 0.0) if isfinite(total) else nan
    return Moments(n, mean, spread / max(n - 1, 1))


def _many(confidence: Floats) -> bool:
    """Whether more than `DISTINCT` scores are seen at once, by the first rows: else all rows are sorted to tell."""
    return len(confidence) > DISTINCT and len(np.unique(confidence[: 2 * DISTINCT])) > DISTINCT


def _fitting(tally: Tally) -> Tally:
    """The same on the grid, if it has more distinct scores than are kept."""
    if tally.on_grid or len(tally.cells) <= DISTINCT:
        return tally
    if not tally.is_probability:
        raise InputError(
            f"more than {DISTINCT:,} distinct scores: of scores that are no probabilities no tally can be made"
        )
    return Tally(_gridded(tally), True, tally.sums, tally.class_bins, tally.of_positive)


def _gridded(tally: Tally) -> Floats:
    if tally.on_grid:
        return tally.cells
    size, misses, score = tally.cells.T
    index = cell_of(np.ascontiguousarray(score))
    return np.stack([np.bincount(index, x, CELLS) for x in (size, misses, score * size)], 1)


def _merged(a: Floats, b: Floats) -> Floats:
    """Cells of distinct scores, in ascending order."""
    both = np.concatenate([a, b])
    score, place = np.unique(both[:, 2], return_inverse=True)
    return np.stack([np.bincount(place, both[:, 0]), np.bincount(place, both[:, 1]), score], 1)


_CLASS_COLUMNS = ("count", "confidence", "correct", "rest_confidence", "rest_correct")


def _arrays(tally: Tally, prefix: str = "") -> dict[str, Any]:
    """Everything of a tally as named arrays."""
    flags = np.array([tally.on_grid, tally.is_probability])
    found = {f"{prefix}cells": tally.cells, f"{prefix}flags": flags, f"{prefix}sums": tally.sums}
    bins = tally.class_bins
    if bins is not None:
        found[f"{prefix}classes"] = np.array([bins.threshold, bins.n])
        found |= {f"{prefix}classes_{name}": getattr(bins, name) for name in _CLASS_COLUMNS}
    if tally.of_positive is not None:
        found |= _arrays(tally.of_positive, f"{prefix}positive_")
    return found


def _tally(stored: dict[str, Any], prefix: str = "") -> Tally:
    on_grid, is_probability = map(bool, stored[f"{prefix}flags"])
    bins = None
    if f"{prefix}classes" in stored:
        threshold, n = stored[f"{prefix}classes"].tolist()
        bins = ClassBins(threshold, int(n), *(stored[f"{prefix}classes_{name}"] for name in _CLASS_COLUMNS))
    positive = _tally(stored, f"{prefix}positive_") if f"{prefix}positive_cells" in stored else None
    cells, sums = stored[f"{prefix}cells"], stored[f"{prefix}sums"]
    if cells.ndim != 2 or cells.shape[1] != 3 or sums.shape != (3, 2, 2) or (on_grid and len(cells) != CELLS):
        raise ValueError(f"cells of shape {list(cells.shape)}")
    return Tally(cells, on_grid, sums, bins, positive, is_probability)
