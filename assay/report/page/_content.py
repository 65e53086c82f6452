"""What the charts of a page draw: curves thinned to what the eye can see, thresholds to what a slider can reach."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
from numpy.typing import NDArray

from assay import metrics
from assay.metrics import Floats, Ranking
from assay.predictions import Outcomes, Predictions
from assay.report import statistics
from assay.report.page._mistakes import said
from assay.report.page._thresholds import written
from assay.thresholds import Threshold, risk_bound

Content = dict[str, object]
STEPS = 200  # of the slider, each half a per cent of the samples or more
CONFIDENCE = 0.95  # of the bound on the risk at a step
CURVE = 150  # points of a curve that has no slider
MOST_CLASSES = 20  # whose confusion fits on a page


def curves(outcomes: Outcomes) -> Content:
    """Reliability, risk-coverage curve and densities."""
    r = metrics.ranking(outcomes)
    return {
        "selective": _short(asdict(statistics.selective(r))),
        "densities": _short(asdict(statistics.densities(outcomes))),
        "reliability": _reliability(r) if outcomes.is_probability else None,
    }


def positive(predictions: Predictions | Outcomes) -> Content:
    """Reliability of the probability of class 1, where there are two."""
    if isinstance(predictions, Outcomes) or predictions.n_classes != 2:
        return {"positive": None}
    return {"positive": _reliability(metrics.ranking(metrics.positive_class(predictions)))}


def _reliability(r: Ranking) -> Content:
    found = statistics.reliability(metrics.equal_width(r))
    columns = {name: getattr(found, name) for name in ("lower", "confidence", "low", "high")}
    columns |= {name: getattr(found.bins, name) for name in ("upper", "accuracy", "weight")}
    return _short(columns) | {"count": found.bins.count.astype(int).tolist(), "few": found.few.tolist()}


def told_apart(outcomes: Outcomes) -> Content:
    """ROC of telling right answers from wrong ones, and precision against recall of either kind."""
    r = metrics.ranking(outcomes)
    roc = statistics.rates(r)
    found = (statistics.precision_of_right(r), statistics.precision_of_wrong(r))
    return {
        "rates": {"auroc": roc.auroc} | _thinned({"wrong": roc.wrong, "right": roc.right}),
        "precision": [
            {"positive": curve.positive, "average": curve.average, "base": curve.base}
            | _thinned({"recall": curve.recall, "precision": curve.precision})
            for curve in found
        ],
    }


def decisions(
    predictions: Predictions | Outcomes, outcomes: Outcomes, r: Ranking, promises: list[Threshold]
) -> Content:
    """What is accepted at each step of the slider, from the most confident answers to all; promises are steps too."""
    sizes = [*np.linspace(0, r.n, STEPS + 1)[1:], *(promise.accepted for promise in promises if promise.accepted)]
    rows = np.unique(np.searchsorted(r.kept, sizes))
    kept, wrong = r.kept[rows], r.wrong[rows]
    curve = statistics.selective(r)
    accepted = curve.coverage * r.n
    start = next((promise.accepted for promise in promises if promise.accepted), r.n)
    return {
        "n": r.n,
        "threshold": [written(r, size) for size in kept],
        "kept": kept.astype(int).tolist(),
        "wrong": wrong.astype(int).tolist(),
        "bound": short(risk_bound(wrong, kept, CONFIDENCE)),
        "boundOfCurve": short(risk_bound(curve.risk * accepted, accepted, CONFIDENCE)),
        "start": int(np.searchsorted(kept, start)),
        "confusion": _confusion(predictions, outcomes, r, rows),
    }


def _confusion(p: Predictions | Outcomes, outcomes: Outcomes, r: Ranking, rows: NDArray[np.int64]) -> Content | None:
    """By how much each step adds to which cell (true class times k plus class said): cell, count, cell, count, ..."""
    if isinstance(p, Outcomes) or p.n_classes > MOST_CLASSES:
        return None
    k = p.n_classes
    step = np.searchsorted(-r.score[rows - 1], -outcomes.confidence.cpu().numpy())
    cell = step * k * k + p.labels.cpu().numpy() * k + said(p)
    added = np.bincount(cell, minlength=len(rows) * k * k).reshape(len(rows), k * k)
    steps = [np.stack([np.flatnonzero(counts), counts[counts > 0]], 1).ravel().tolist() for counts in added]
    return {"k": k, "steps": steps}


def _thinned(curve: dict[str, Floats]) -> Content:
    """To what a chart of a few hundred pixels shows."""
    x, y = curve.values()
    rows = statistics.thin(x, y, CURVE)
    return _short({name: column[rows] for name, column in curve.items()})


def short(column: Floats, digits: int = 5) -> list[float]:
    """Five digits are more than a pixel."""
    return [float(f"{value:.{digits}g}") for value in column.tolist()]


def _short(columns: dict[str, Floats]) -> Content:
    return {name: short(column) for name, column in columns.items()}
