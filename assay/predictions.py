"""Predictions of a model on a data set, and the outcome of each answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from importlib import import_module
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from assay._core import arrays, loops
from assay._core.arrays import Array, Floats, InputError, Labels, Mask, Rows, Tags
from assay._core.plain import ClassSums
from assay._core.showing import Library, data_frame, html_table

TAGS = ("ids", "group", "weights", "cluster")  # columns that predictions hand on to their outcomes


@dataclass(frozen=True, eq=False)
class Predictions:
    """Scores for every class and the true labels, of one model on one split.

    The caller says what the numbers are, by the constructor; nothing is guessed. `values` are kept as they came:
    logits, or probabilities where `normalized`.

    >>> p = Predictions.from_logits([[2.0, 0.0, -1.0], [0.5, 1.5, 0.0]], [0, 2])
    >>> p
    Predictions(n=2, k=3, logits)
    >>> p.outcomes().confidence
    array([0.84379473, 0.62853172])
    """

    values: Array  # [n, k]
    labels: Labels  # [n]
    normalized: bool = False
    ids: Tags | None = None  # [n] what tells one row from another, to match it across models
    group: Tags | None = None  # [n] what the audit is broken down by
    features: Array | None = None  # [n, d] penultimate activations, for scores that need them
    classes: tuple[str, ...] | None = None  # [k] what the classes are called, where they are
    weights: Floats | None = None  # [n] how much each row counts, in any unit; without them all count alike
    cluster: Tags | None = None  # [n] rows of one cluster (a patient, a video, a prompt) are not independent
    map_digest: str | None = ""  # `maps.digest` of the maps that were applied; None where rows differ in it

    @staticmethod
    def from_logits(
        logits: ArrayLike,
        labels: ArrayLike,
        *,
        ids: ArrayLike | None = None,
        group: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        cluster: ArrayLike | None = None,
        features: ArrayLike | None = None,
        classes: ArrayLike | None = None,
    ) -> Predictions:
        """From logits [n, k], k >= 2, all finite.

        Labels are class indices, or, with the names of the columns as `classes`, such names.
        """
        z = arrays.floats(logits, name="logits", ndim=2)
        _two_classes(z, "logits", "from_binary_logits")
        if not loops.all_finite(z):
            arrays.refuse(z, ~np.isfinite(z), "logit is {}")
        return Predictions(z, **_columns(z, labels, ids, group, weights, cluster, features, classes))

    @staticmethod
    def from_probabilities(
        probabilities: ArrayLike,
        labels: ArrayLike,
        *,
        ids: ArrayLike | None = None,
        group: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        cluster: ArrayLike | None = None,
        features: ArrayLike | None = None,
        classes: ArrayLike | None = None,
    ) -> Predictions:
        """From probabilities [n, k], k >= 2, none negative, whose rows sum to 1 within .001 (half precision .01).

        Labels are class indices, or, with the names of the columns as `classes`, such names.

        >>> Predictions.from_probabilities([[0.9, 0.1], [0.4, 0.6]], ["cat", "dog"], classes=["cat", "dog"]).labels
        array([0, 1])
        """
        p = arrays.floats(probabilities, name="probabilities", ndim=2)
        _two_classes(p, "probabilities", "from_binary_probabilities")
        tolerance = 1e-2 if _half(probabilities, p) else 1e-3
        for rows in arrays.row_chunks(*p.shape):
            total = p[rows].sum(1, dtype=np.float64)
            if not (p[rows].min() >= 0 and (np.abs(total - 1) <= tolerance).all()):
                arrays.refuse(p, ~(p >= 0), "probability is {}" + "; these look like logits" * bool((p < 0).any()))
                totals = p.sum(1, dtype=np.float64)
                wrong = ~(np.abs(totals - 1) <= tolerance)
                arrays.refuse(totals, wrong, "probabilities sum to {:.6g}, not 1; " + _why_not_one(p, totals))
        return Predictions(p, normalized=True, **_columns(p, labels, ids, group, weights, cluster, features, classes))

    @staticmethod
    def from_binary_logits(
        logits: ArrayLike,
        labels: ArrayLike,
        *,
        ids: ArrayLike | None = None,
        group: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        cluster: ArrayLike | None = None,
        features: ArrayLike | None = None,
    ) -> Predictions:
        """From one logit a row, that of class 1 against class 0; labels are 0 or 1."""
        z = arrays.floats(logits, name="logits", ndim=1)
        pair = np.stack([np.zeros_like(z), z], 1)
        tags = {"ids": ids, "group": group, "weights": weights, "cluster": cluster}
        return Predictions.from_logits(pair, labels, features=features, **tags)

    @staticmethod
    def from_binary_probabilities(
        probabilities: ArrayLike,
        labels: ArrayLike,
        *,
        ids: ArrayLike | None = None,
        group: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        cluster: ArrayLike | None = None,
        features: ArrayLike | None = None,
    ) -> Predictions:
        """From one probability a row, that of class 1; labels are 0 or 1."""
        p = arrays.floats(probabilities, name="probabilities", ndim=1)
        hint = (
            "divide per cents by 100, or say --percent" if (p > 1.5).any() else "a logit is given by from_binary_logits"
        )
        arrays.refuse(p, ~((p >= 0) & (p <= 1)), f"probability {{}} is outside [0, 1]; {hint}")
        pair = np.stack([1 - p, p], 1)
        tags = {"ids": ids, "group": group, "weights": weights, "cluster": cluster}
        return Predictions.from_probabilities(pair, labels, features=features, **tags)

    @staticmethod
    def from_dataframe(frame: Any, **columns: str | bool) -> Predictions | Outcomes:
        """From a data frame of pandas or polars, with the names of its columns as in `assay.files.Columns`.

        `from_dataframe(df, label="y", probabilities="p_*")` takes one column a class; with `confidence` and `correct`
        it gives `Outcomes`.
        """
        made: Predictions | Outcomes = import_module("assay.files").from_dataframe(frame, **columns)
        return made

    @staticmethod
    def from_estimator(estimator: Any, X: Any, y: Any) -> Predictions:
        """From a fitted scikit-learn classifier: `assay.sklearn.from_estimator`."""
        made: Predictions = import_module("assay.sklearn").from_estimator(estimator, X, y)
        return made

    def __add__(self, other: Predictions) -> Predictions:
        """Put two sets of rows together; a column that one of them lacks is dropped."""
        if (self.normalized, self.n_classes, self.classes) != (other.normalized, other.n_classes, other.classes):
            raise InputError(f"{self} and {other} do not have the same classes and kind of numbers")
        joined: dict[str, Any] = {
            name: _join(getattr(self, name), getattr(other, name)) for name in (*TAGS, "features")
        }
        return replace(
            self,
            values=np.concatenate([self.values, other.values]),
            labels=np.concatenate([self.labels, other.labels]),
            map_digest=self.map_digest if self.map_digest == other.map_digest else None,
            **joined,
        )

    def to_frame(self, library: Library = "pandas") -> Any:
        """A data frame with one row a sample: label, answer, confidence, whether it is right, nll."""
        o = self.outcomes()
        columns = {"label": self.labels, "answer": self.values.argmax(1)}
        columns |= {"confidence": o.confidence, "correct": o.correct, "nll": o.nll}
        columns |= {name: x for name in ("ids", "group") if (x := getattr(self, name)) is not None}
        return data_frame(columns, library)

    def _repr_html_(self) -> str:
        kind = "probabilities" if self.normalized else "logits"
        return html_table("Predictions", ["samples", "classes", "kind"], [[len(self), self.n_classes, kind]])

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"Predictions(n={len(self)}, k={self.n_classes}, {'probabilities' if self.normalized else 'logits'})"

    def __getitem__(self, rows: Rows) -> Predictions:
        """Pick rows, by slice, indices or a mask."""
        return _pick(self, rows)

    @property
    def n_classes(self) -> int:
        return int(self.values.shape[1])

    @property
    def logits(self) -> Array:
        """Logits [n, k]; of probabilities their logarithms, -inf for 0."""
        return arrays.log(arrays.single(self.values)) if self.normalized else self.values

    @property
    def probabilities(self) -> Array:
        """Probabilities [n, k]."""
        return self.values if self.normalized else arrays.softmax(self.values)

    def in_order(self, classes: tuple[str, ...]) -> Predictions:
        """The same predictions with their classes in this order of the same names.

        >>> p = Predictions.from_logits([[2.0, 0.0, -1.0]], [0])
        >>> replace(p, classes=("dog", "eel", "fox")).in_order(("fox", "dog", "eel")).values
        array([[-1.,  2.,  0.]])
        """
        own = self.classes or ()
        if sorted(own) != sorted(classes):
            raise InputError(f"the classes are not the same: only one of the two has '{min({*own} ^ {*classes})}'")
        order = np.array([own.index(name) for name in classes])
        return replace(self, values=self.values[:, order], labels=order.argsort()[self.labels], classes=classes)

    def outcomes(self, sums: ClassSums | None = None) -> Outcomes:
        """Reduce k classes to five numbers a sample, in one pass over the rows.

        Of classes tied for the highest score the first is the predicted one. `sums` of the classes are filled in the
        same pass.
        """
        columns, correct = loops.reduce(self.values, self.labels, normalized=self.normalized, sums=sums)
        confidence, nll, brier, entropy = columns
        tags = {name: getattr(self, name) for name in TAGS}
        return Outcomes(
            confidence, correct, nll, brier, entropy, **tags, labels=self.labels, map_digest=self.map_digest
        )

    def with_prior(self, prior: ArrayLike | Mapping[str, float]) -> Predictions:
        """The same rows weighted so that the true classes have these shares, in the order of the classes or by name.

        For a test set in which a class was enriched, or whose classes are rarer where the model is used. The rows of a
        class must be drawn like those that it will meet.

        >>> p = Predictions.from_binary_probabilities([0.9, 0.2, 0.6, 0.3], [1, 0, 1, 0])
        >>> p.with_prior([0.9, 0.1]).weights
        array([0.2, 1.8, 0.2, 1.8])
        """
        listed = self._by_name(prior) if isinstance(prior, Mapping) else prior
        share = arrays.floats(listed, name="prior", ndim=1).astype(np.float64)
        if len(share) != self.n_classes or not (share >= 0).all() or abs(share.sum() - 1) > 1e-6:
            given = ", ".join(f"{x:g}" for x in share.tolist())
            raise InputError(f"prior must be {self.n_classes} shares that sum to 1, got {given}")
        own = np.ones(len(self)) if self.weights is None else self.weights
        seen = np.bincount(self.labels, own, self.n_classes) / own.sum()
        absent = (seen > 0) != (share > 0)
        if absent.any():
            where, of = ("prior", "rows") if seen[absent.argmax()] > 0 else ("rows", "prior")
            raise InputError(f"class {int(absent.argmax())} has a share of 0 in the {where} but not in the {of}")
        factor = np.divide(share, seen, out=np.zeros_like(share), where=seen > 0)
        return replace(self, weights=own * factor[self.labels])

    def _by_name(self, prior: Mapping[str, float]) -> list[float]:
        names = self.classes or tuple(map(str, range(self.n_classes)))
        if sorted(prior) != sorted(names):
            raise InputError(f"prior names the classes {', '.join(prior)}; the predictions have {', '.join(names)}")
        return [prior[name] for name in names]


@dataclass(frozen=True, eq=False)
class Outcomes:
    """One row a sample: how confident, and was it right. Feeds every top-label metric, interval and test.

    >>> a = Outcomes.from_scores([0.9, 0.6], [True, False])
    >>> a + a[:1]
    Outcomes(n=3, errors=1)
    """

    confidence: Floats  # [n]
    correct: Mask  # [n]
    nll: Floats | None = None  # [n] -log p of the true class
    brier: Floats | None = None  # [n] squared distance of the probabilities from the one-hot label
    entropy: Floats | None = None  # [n] in nats
    ids: Tags | None = None
    group: Tags | None = None
    weights: Floats | None = None
    cluster: Tags | None = None
    labels: Tags | None = None  # what the right answer was, where it is known; files of outcomes do not keep it
    is_probability: bool = True  # else the confidence only ranks, and metrics that read it as a chance are absent
    map_digest: str | None = ""  # `maps.digest` of the maps that were applied; None where rows differ in it

    def __post_init__(self) -> None:
        for name in ("correct", "nll", "brier", "entropy", *TAGS, "labels"):
            column = getattr(self, name)
            if column is not None and len(column) != len(self.confidence):
                raise InputError(f"{len(self.confidence)} rows of confidence but {len(column)} of {name}")

    @staticmethod
    def from_scores(
        confidence: ArrayLike,
        correct: ArrayLike,
        *,
        is_probability: bool = True,
        ids: ArrayLike | None = None,
        group: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        cluster: ArrayLike | None = None,
        labels: ArrayLike | None = None,
    ) -> Outcomes:
        """From a confidence in [0, 1] and whether the answer was right.

        `labels` say what the right answer was: an audit then knows groups that are chosen by it.

        With `is_probability=False` any finite score will do (energy, margin, distance); it is then only ranked.
        """
        c = np.ascontiguousarray(arrays.floats(confidence, name="confidence", ndim=1), dtype=np.float64)
        within = c.min() >= 0 and c.max() <= 1  # and no nan
        if not within:
            arrays.refuse(c, ~np.isfinite(c), "confidence is {}")
        if is_probability and not within:
            hint = "; a score that is no probability needs is_probability=False, per cents a division by 100"
            arrays.refuse(c, (c < 0) | (c > 1), "confidence {} is outside [0, 1]" + hint)
        return Outcomes(
            confidence=c,
            correct=arrays.booleans(correct, name="correct", n=len(c)),
            labels=arrays.tags(labels, name="labels", n=len(c)),
            is_probability=is_probability,
            **_tags(len(c), ids, group, weights, cluster),
        )

    def outcomes(self) -> Outcomes:
        """Return itself, so that functions of `Predictions` take `Outcomes` too."""
        return self

    def __len__(self) -> int:
        return len(self.confidence)

    def __repr__(self) -> str:
        return f"Outcomes(n={len(self)}, errors={int((~self.correct).sum())})"

    def __getitem__(self, rows: Rows) -> Outcomes:
        """Pick rows, by slice, indices or a mask."""
        return _pick(self, rows)

    def __add__(self, other: Outcomes) -> Outcomes:
        """Put two sets of rows together; a column that one of them lacks is dropped."""
        if self.is_probability != other.is_probability:
            raise ValueError("a probability and a mere score do not add up to one column")
        optional = ("nll", "brier", "entropy", *TAGS, "labels")
        joined: dict[str, Any] = {name: _join(getattr(self, name), getattr(other, name)) for name in optional}
        return Outcomes(
            confidence=np.concatenate([self.confidence, other.confidence]),
            correct=np.concatenate([self.correct, other.correct]),
            is_probability=self.is_probability,
            map_digest=self.map_digest if self.map_digest == other.map_digest else None,
            **joined,
        )


def unknown_source(given: object) -> InputError:
    """What to say to somebody who gives anything else: a data frame, an array, the output of a model."""
    made = "make them by Predictions.from_logits, from_probabilities or from_dataframe"
    return InputError(f"expected Predictions or Outcomes, got {type(given).__name__}; {made}")


Sample = TypeVar("Sample", Predictions, Outcomes)


def _pick(sample: Sample, rows: Rows) -> Sample:
    columns = {f.name: getattr(sample, f.name) for f in fields(sample)}
    picked: dict[str, Any] = {name: c[rows] for name, c in columns.items() if isinstance(c, np.ndarray)}
    return replace(sample, **picked)


def _join(a: Array | None, b: Array | None) -> Array | None:
    return None if a is None or b is None else np.concatenate([a, b])


def _half(given: object, p: Array) -> bool:
    """Whether numbers came in half precision; bfloat16 has become single by now."""
    return p.itemsize < 4 or "bfloat16" in str(getattr(given, "dtype", ""))


def _why_not_one(p: Array, totals: Floats) -> str:
    """What rows that do not sum to 1 may be."""
    if (p > 1.5).any():
        return "divide per cents by 100, or say --percent; give logits as such"
    if np.abs(totals - 1).max() <= 0.1:
        return "rounded ones need --normalize, or a division by their sum"
    if p.max() <= 1:
        return "of several labels a row, audit each as two classes, by from_binary_probabilities or --positive"
    return "give logits as such"


def _two_classes(values: Array, name: str, instead: str) -> None:
    if values.shape[1] < 2:
        raise InputError(f"{name} must have at least two columns, got {values.shape[1]}; for one use {instead}")


def _columns(
    values: Array,
    labels: ArrayLike,
    ids: ArrayLike | None,
    group: ArrayLike | None,
    weights: ArrayLike | None,
    cluster: ArrayLike | None,
    features: ArrayLike | None,
    classes: ArrayLike | None = None,
) -> dict[str, Any]:
    """Check the other columns of `Predictions`."""
    n, k = values.shape
    given = None if features is None else arrays.floats(features, name="features", ndim=2)
    if given is not None and len(given) != n:
        raise InputError(f"{n} rows of predictions but {len(given)} of features")
    names = None if classes is None else np.asarray(classes).tolist()
    if names is not None:
        labels = _indices(labels, names, k)
    checked = arrays.labels(labels, n_classes=k, n=n)
    named = {} if names is None else {"classes": tuple(map(str, names))}
    return {"labels": checked, "features": given, **named, **_tags(n, ids, group, weights, cluster)}


def _indices(labels: ArrayLike, names: list[Any], k: int) -> Labels:
    """The column of each label."""
    if len(names) != k or len(set(names)) < k:
        raise InputError(f"classes must name each of the {k} columns once, got {', '.join(map(str, names))}")
    place = {name: i for i, name in enumerate(names)}
    given = np.asarray(labels).tolist()
    unknown = next((row for row, label in enumerate(given) if label not in place), None)
    if unknown is not None:
        raise InputError(f"row {unknown}: label {given[unknown]!r} is none of the classes {', '.join(map(str, names))}")
    return np.array([place[label] for label in given], dtype=np.int64)


def _tags(
    n: int,
    ids: ArrayLike | None,
    group: ArrayLike | None,
    weights: ArrayLike | None,
    cluster: ArrayLike | None,
) -> dict[str, Any]:
    """Check the columns that predictions and outcomes have in common."""
    return {
        "ids": arrays.unique_tags(ids, name="ids", n=n),
        "group": arrays.tags(group, name="group", n=n),
        "weights": arrays.weights(weights, n=n),
        "cluster": arrays.tags(cluster, name="cluster", n=n),
    }
