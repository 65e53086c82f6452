"""The tables of a page: each cell as text to read and as a value to sort by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from assay.auditing import Audit, Measurement
from assay.comparing import Comparison
from assay.metrics import METRICS, Interval, Ranking
from assay.predictions import Outcomes
from assay.report.page._mistakes import Mistake
from assay.report.page._thresholds import written
from assay.report.terminal import ARROWS, AXES, HEADLINE, IN_GROUPS, SHOWN, number, span
from assay.thresholds import Threshold, choose_threshold, spelled

RISKS = (0.01, 0.02, 0.05, 0.1, 0.2)  # what a promise is tried for, the first is told in words
FIRST = 10  # rows of a long table that are shown at once


@dataclass(frozen=True)
class Cell:
    """One field of a table."""

    text: str
    value: float | str | None = None  # to sort by; what has none comes last
    under: str = ""  # a second, smaller line
    tone: str = ""  # good, bad or nothing


@dataclass(frozen=True)
class Table:
    """What `table.js` shows."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    first: int  # rows shown until one asks for all


def metrics(audit: Audit) -> Table:
    """Every metric of a model; the most used first."""
    keys = _by_axis(audit.measurements)

    def row(key: str) -> tuple[Cell, ...]:
        m = audit[key]
        bar = Cell(span(key, m.interval), m.interval.high - m.interval.low) if m.interval else Cell("", None, m.note)
        floor = Cell("") if m.floor is None else Cell(number(key, m.floor), m.floor)
        return _metric(key), Cell(number(key, m.value), m.value), bar, floor, *_about(key)

    columns = ("metric", "value", "95 % interval", "noise floor", "axis", "what it is")
    return Table(columns, tuple(map(row, keys)), sum(key in HEADLINE for key in keys))


def models(audits: dict[str, Audit]) -> Table:
    """One row a model."""
    return _abreast("model", audits, ("accuracy", "nll", "ece", "auroc", "aurc", "e_aurc"))


def groups(audit: Audit) -> Table:
    """One row a group, with what is significantly worse there than elsewhere."""
    table = _abreast("group", audit.groups, IN_GROUPS)
    worse = {name: [f for f in audit.findings if f.group == name] for name in audit.groups}

    def finding(name: str) -> Cell:
        text = ", ".join(f"{f.metric} (p = {f.p_value:.2g})" for f in worse[name])
        return Cell(text, len(worse[name]) or None, tone="bad" if text else "")

    rows = tuple((*row, finding(name)) for row, name in zip(table.rows, audit.groups, strict=True))
    return Table((*table.columns, "worse than the rest"), rows, 2 * FIRST)


def promised(outcomes: Outcomes) -> list[Threshold]:
    """The threshold for each of `RISKS`."""
    return [choose_threshold(outcomes, risk=risk) for risk in RISKS]


def promises(thresholds: Sequence[Threshold], r: Ranking) -> Table:
    """What each threshold promises and costs; they are of that ranking."""

    def row(t: Threshold) -> tuple[Cell, ...]:
        most = Cell(f"{100 * t.guaranteed_risk:.3g}%", t.guaranteed_risk)
        if not t.accepted:
            return most, Cell("cannot be promised"), Cell(""), Cell(""), Cell("")
        shares = (t.coverage, t.observed_risk, t.workload)
        return most, Cell(written(r, t.accepted), t.value), *(Cell(number("", share), share) for share in shares)

    columns = ("errors at most", "accept at least", "inputs accepted", "errors seen", "left for review")
    return Table(columns, tuple(map(row, thresholds)), len(thresholds))


def promise_in_words(t: Threshold, r: Ranking) -> str:
    """What to accept and what that promises, or why nothing can be promised."""
    risk = f"at most {100 * t.guaranteed_risk:.3g}% errors"
    if not t.accepted:
        return f"No threshold promises {risk}: {t.reason}."
    least = written(r, t.accepted)
    return (
        f"Accept answers of at least {least}: {risk} on {t.coverage:.1%} of inputs, at {t.confidence:.0%} confidence."
    )


def tiles(audit: Audit, promise: Threshold) -> list[dict[str, str]]:
    """The few numbers to take away."""
    titles = {
        "accuracy": "accuracy",
        "ece": "calibration error (ECE)",
        "ece_positive": "calibration error of class 1 (ECE)",
        "auroc": "ranking of errors (AUROC)",
    }
    found = [
        {"title": title, **_measured(key, audit[key])} for key, title in titles.items() if key in audit.measurements
    ]
    limit = f"inputs at ≤ {100 * promise.guaranteed_risk:.3g}% errors"
    share, under = (
        ("none", "nothing can be promised") if not promise.accepted else (number("", promise.coverage), "promised")
    )
    return [*found, {"title": limit, "text": share, "under": f"{under} at 95 % confidence"}]


def mistakes(found: Iterable[Mistake]) -> Table:
    """The most confident wrong answers."""

    def label(name: int | str | None) -> Cell:
        return Cell("" if name is None else str(name), name)

    rows = tuple(
        (Cell(m.name, m.name), Cell(spelled(m.confidence), m.confidence), label(m.said), label(m.true), label(m.group))
        for m in found
    )
    columns = ("sample", "confidence", "said", "true", "group")
    kept = [i for i in range(len(columns)) if any(row[i].text for row in rows)]  # without what is never known
    return Table(tuple(columns[i] for i in kept), tuple(tuple(row[i] for i in kept) for row in rows), FIRST)


def differences(comparison: Comparison) -> Table:
    """Every metric of both models, and how they differ on the same samples."""
    keys = _by_axis(comparison.differences)

    def row(key: str) -> tuple[Cell, ...]:
        d = comparison[key]
        change = Cell(("+" if d.value > 0 else "") + number(key, d.value), d.value, tone=_tone(key, d.interval))
        bar = Cell("", None, d.note) if d.interval is None else Cell(span(key, d.interval), d.interval.low)
        p = Cell("") if d.p_value is None else Cell(f"{d.p_value:.2g}", d.p_value)
        return _metric(key), *(Cell(number(key, v), v) for v in (d.a, d.b)), change, bar, p, *_about(key)

    columns = ("metric", "A", "B", "B − A", "95 % interval", "p", "axis", "what it is")
    return Table(columns, tuple(map(row, keys)), sum(key in HEADLINE for key in keys))


def _by_axis(measured: Iterable[str]) -> list[str]:
    """The most used axis by axis, then the others likewise."""
    keys = [key for axis in AXES for key in SHOWN if key in measured and SHOWN[key].axis == axis]
    return sorted(keys, key=lambda key: key not in HEADLINE)


def _abreast(what: str, audits: dict[str, Audit], wanted: Iterable[str]) -> Table:
    keys = [key for key in wanted if any(key in audit.measurements for audit in audits.values())]

    def cell(key: str, m: Measurement | None) -> Cell:
        return Cell("–") if m is None else Cell(value=m.value, **_measured(key, m))

    rows = tuple(
        (Cell(name, name), Cell(f"{audit.n:,}", audit.n), *(cell(key, audit.measurements.get(key)) for key in keys))
        for name, audit in audits.items()
    )
    return Table((what, "samples", *(f"{key} {ARROWS[METRICS[key].better]}" for key in keys)), rows, 2 * FIRST)


def _measured(key: str, m: Measurement) -> dict[str, str]:
    floor = "" if m.floor is None else f"noise floor {number(key, m.floor)}"
    return {"text": number(key, m.value), "under": " · ".join(part for part in (span(key, m.interval), floor) if part)}


def _metric(key: str) -> Cell:
    return Cell(f"{key} {ARROWS[SHOWN[key].better]}".strip(), key)


def _about(key: str) -> tuple[Cell, Cell]:
    return Cell(SHOWN[key].axis, SHOWN[key].axis), Cell(SHOWN[key].line, SHOWN[key].line)


def _tone(key: str, interval: Interval | None) -> str:
    """Whether the difference is clearly one for the better or the worse."""
    if interval is None or 0.0 in interval or SHOWN[key].better == "-":
        return ""
    return "good" if (interval.low > 0) == (SHOWN[key].better == "higher") else "bad"
