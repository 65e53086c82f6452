"""The data of a page's charts: curves thinned to a few hundred points, thresholds to the steps of a slider."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np

from assay._core.arrays import Floats, Labels
from assay.metrics import Bins, Ranking, Tables
from assay.predictions import Predictions
from assay.report import statistics
from assay.report.page._mistakes import answers
from assay.report.page._thresholds import steps, written
from assay.report.quantities import named_number
from assay.report.summaries import promisable
from assay.thresholds import Counts, Evidence, Threshold, evidence_of, risk_bound

Content = dict[str, object]
STEPS = 200  # of the slider, each half a per cent of the samples or more
FEWER_STEPS = 40  # where a bound takes longer
CONFIDENCE = 0.95  # of the bound on the risk at a step
CROWDED = 0.6  # share of the rows in one bin from which on the others are hard to see
CURVE = 150  # points of a curve that has no slider
MOST_CLASSES = 20  # of a confusion matrix on a page


def curves(t: Tables) -> Content:
    """Reliability, risk-coverage curve and densities."""
    return {
        "selective": _short(asdict(statistics.selective(t.ranking))),
        "densities": _short(asdict(statistics.densities(t))),
        "densitiesInOdds": _short(asdict(statistics.densities_in_odds(t))) if t.is_probability else None,
        "reliability": _reliability(t.width) if t.is_probability else None,
        "reliabilityByMass": _reliability(t.mass) if t.is_probability else None,
        "axis": _best_axis(t.width),
    }


def _best_axis(bins: Bins) -> str:
    """The axis of confidence that shows most: where one bin of equal width has most of the rows, the log-odds."""
    return "log-odds" if float(bins.weight.max()) > CROWDED else "equal width"


def positive(t: Tables) -> Content:
    """Reliability of the probability of class 1, if there are two classes."""
    if t.n_classes != 2:
        return {"positive": None, "positiveByMass": None}
    return {"positive": _reliability(t.positive.width), "positiveByMass": _reliability(t.positive.mass)}


def _reliability(bins: Bins) -> Content:
    found = statistics.reliability(bins)
    columns = {name: getattr(found, name) for name in ("lower", "confidence", "low", "high")}
    columns |= {name: getattr(found.bins, name) for name in ("upper", "accuracy", "weight")}
    return _short(columns) | {"count": found.bins.count.astype(int).tolist(), "few": found.few.tolist()}


def separation(r: Ranking) -> Content:
    """ROC of right against wrong answers, and precision against recall of either kind."""
    roc = statistics.rates(r)
    found = (statistics.precision_of_right(r), statistics.precision_of_wrong(r))
    return {
        "rates": {"auroc": roc.auroc, "label": named_number("auroc", roc.auroc)}
        | _thinned({"wrong": roc.wrong, "right": roc.right}),
        "precision": [
            {"positive": curve.positive, "average": curve.average, "base": curve.base, "label": _average(curve)}
            | _thinned({"recall": curve.recall, "precision": curve.precision})
            for curve in found
        ],
    }


def _average(curve: statistics.PrecisionRecall) -> str:
    return f"{curve.positive}, {named_number(curve.metric, curve.average)}"


def decisions(t: Tables, promises: list[Threshold]) -> Content:
    """Accepted answers at each step of the slider, from the most confident to all; promises are steps too.

    Where nothing can be promised there are no bounds.
    """
    seen = evidence_of(t) if promisable(t) else None
    r, counted = (seen.shares if seen else t.ranking), steps(t)
    n_steps = FEWER_STEPS if seen and not isinstance(seen, Counts) else STEPS
    sizes = [*np.linspace(0, r.n, n_steps + 1)[1:], *(promise.accepted for promise in promises if promise.accepted)]
    rows = np.unique(np.searchsorted(counted.kept, sizes))
    start = next((promise.accepted for promise in promises if promise.accepted), r.n)
    return {
        "n": r.n,
        "threshold": [written(counted, size) for size in counted.kept[rows]],
        "kept": r.kept[rows].round().astype(int).tolist(),
        "wrong": r.wrong[rows].round().astype(int).tolist(),
        **(_bounds(seen, rows) if seen else {"bound": None, "boundOfCurve": None}),
        "start": int(np.searchsorted(counted.kept[rows], start)),
        "confusion": _confusion(t, rows),
    }


def _bounds(seen: Evidence, rows: Labels) -> Content:
    bound = np.array([seen.bound(row, 1 - CONFIDENCE) for row in rows.tolist()])
    return {"bound": short(bound), "boundOfCurve": short(_bound_of_curve(seen, seen.shares.kept[rows], bound))}


def _bound_of_curve(seen: Evidence, kept: Floats, bound: Floats) -> Floats:
    """Bounds at the points of the risk-coverage curve; of weighted rows and clusters they are drawn between steps."""
    curve = statistics.selective(seen.shares)
    accepted = curve.coverage * seen.shares.n
    if isinstance(seen, Counts):
        return risk_bound(curve.risk * accepted, accepted, CONFIDENCE)
    return np.asarray(np.interp(accepted, np.append(0, kept), np.append(1, bound)))


def _confusion(t: Tables, rows: Labels) -> Content | None:
    """What each step adds to the cells (true class times k plus answer): cell, count, cell, count, ..."""
    p, k = t.source, t.n_classes
    if not isinstance(p, Predictions) or k > MOST_CLASSES:
        return None
    step = np.searchsorted(-t.ranking.score[rows - 1], -t.outcomes.confidence)
    cell = step * k * k + p.labels * k + answers(p, t.outcomes)
    added = np.bincount(cell, minlength=len(rows) * k * k).reshape(len(rows), k * k)
    steps = [np.stack([np.flatnonzero(counts), counts[counts > 0]], 1).ravel().tolist() for counts in added]
    return {"k": k, "steps": steps, "classes": p.classes or [str(i) for i in range(k)]}


def _thinned(curve: dict[str, Floats]) -> Content:
    """A curve with as many points as a chart of a few hundred pixels can show."""
    x, y = curve.values()
    rows = statistics.thin(x, y, CURVE)
    return _short({name: column[rows] for name, column in curve.items()})


def short(column: Floats, digits: int = 5) -> list[float]:
    """Numbers with few digits; five are finer than a pixel."""
    return [float(f"{value:.{digits}g}") for value in column.tolist()]


def _short(columns: dict[str, Floats]) -> Content:
    return {name: short(column) for name, column in columns.items()}
