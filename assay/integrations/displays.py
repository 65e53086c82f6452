"""Displays in the manner of scikit-learn: `Display.from_estimator(...)`, `.from_predictions(...)`, `.plot(ax=...)`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from assay._core.lookup import needs
from assay.metrics import Bins, Ranking, tables
from assay.predictions import Predictions
from assay.report import figures, statistics

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class _Display(ABC):
    """What both displays have: the ways to make one, and `ax_` and `figure_` once it is drawn."""

    ax_: Axes
    figure_: Figure

    @classmethod
    @abstractmethod
    def of(cls, predictions: Predictions, name: str | None) -> Self:
        """The display of predictions."""

    @abstractmethod
    def draw(self, ax: Axes) -> None:
        """Draw it."""

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        *,
        labels: ArrayLike | None = None,
        name: str | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw probabilities [n, k], or [n] of the second of two classes.

        `y_true` are class indices, or, with the classes of the columns as `labels`, such classes.
        """
        p = np.asarray(y_prob)
        of_all = np.column_stack([1 - p, p]) if p.ndim == 1 else p
        return cls.of(Predictions.from_probabilities(of_all, y_true, classes=labels), name).plot(ax)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, name: str | None = None, ax: Axes | None = None) -> Self:
        """Draw what a fitted classifier says of labeled samples."""
        return cls.of(Predictions.from_estimator(estimator, X, y), name or type(estimator).__name__).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on the axis, or on a new one."""
        if ax is None:
            ax = needs("matplotlib.pyplot").subplots(layout="constrained")[1]
        assert ax is not None
        self.draw(ax)
        self.ax_, self.figure_ = ax, ax.get_figure(root=True)  # type: ignore[assignment]  # an axis has one
        return self


@dataclass
class ReliabilityDisplay(_Display):
    """Accuracy against confidence in 15 bins, with the gaps that a calibrated model would show.

    >>> display = ReliabilityDisplay.from_predictions([0, 1, 1, 0], [0.2, 0.9, 0.7, 0.4])
    >>> display.ax_.get_ylabel()
    'accuracy'
    """

    bins: Bins
    estimator_name: str | None = None

    @classmethod
    def of(cls, predictions: Predictions, name: str | None) -> Self:
        """The display of predictions."""
        return cls(tables(predictions).width, name)

    def draw(self, ax: Axes) -> None:
        """Draw the diagram."""
        figures.reliability(statistics.reliability(self.bins), ax)
        if self.estimator_name:
            ax.set_title(self.estimator_name)


@dataclass
class RiskCoverageDisplay(_Display):
    """Share of errors among the accepted answers against the share that is accepted.

    >>> display = RiskCoverageDisplay.from_predictions([0, 1, 1, 0], [0.2, 0.9, 0.7, 0.6])
    >>> display.risk_coverage.risk[-1]
    np.float64(0.25)
    """

    ranking: Ranking = field(repr=False)
    estimator_name: str | None = None

    @classmethod
    def of(cls, predictions: Predictions, name: str | None) -> Self:
        """The display of predictions."""
        return cls(tables(predictions).ranking, name)

    @property
    def risk_coverage(self) -> statistics.Selective:
        """The curve."""
        return statistics.selective(self.ranking)

    def draw(self, ax: Axes) -> None:
        """Draw the curve."""
        figures.risk_coverage({self.estimator_name or "model": self.risk_coverage}, ax)
