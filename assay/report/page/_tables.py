"""The tables of a page: each cell has a text to read and a value to sort by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from assay.auditing import Audit, Measurement
from assay.comparing import Comparison
from assay.metrics import COMPARED, Ranking, Tables
from assay.metrics.inference import Interval
from assay.report.page._mistakes import Mistake
from assay.report.page._thresholds import written
from assay.report.quantities import BRIEF, SHOWN_AXES, number, quantity, share, span, with_arrow
from assay.report.summaries import bound_in_words, promisable
from assay.thresholds import Threshold, choose_threshold, spelled

RISKS = (0.01, 0.02, 0.05, 0.1, 0.2)  # of the promises; the first is also said in words
ROWS_FIRST = 10  # rows of a long table that are shown at once
ON_TILES = ("accuracy", "ece", "ece_positive", "auroc", "roc_auc")
RARE = ("picture", "term")  # parts of a cell
PICTURED = 40  # groups in a picture
FLIPPED = 100  # samples in a table of those that two models answer differently


@dataclass(frozen=True)
class Field:
    """One field of a table on a page."""

    text: str
    value: float | str | None = None  # to sort by; fields without a value come last
    under: str = ""  # a second, smaller line
    tone: str = ""  # good, bad or nothing
    picture: str = ""  # a data URI
    term: str = ""  # the metric that it names, which the glossary explains


@dataclass(frozen=True)
class PageTable:
    """A table that `table.js` shows."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Field, ...], ...]
    first: int  # rows shown before the reader asks for all


def as_data(table: PageTable) -> dict[str, object]:
    """The table for the page, without what is rare in a cell and empty in this one."""
    return asdict(table, dict_factory=lambda pairs: {name: x for name, x in pairs if x or name not in RARE})


def metrics(audit: Audit) -> PageTable:
    """Every metric of a model; the most used first. Of a summary each says how far off it can be."""
    keys = _by_axis(audit.measurements)
    in_short = audit.tables is not None and audit.tables.summary is not None

    def row(key: str) -> tuple[Field, ...]:
        m = audit[key]
        bar = Field(span(key, m.interval), m.interval.high - m.interval.low) if m.interval else Field("", None, m.note)
        floor = Field("") if m.floor is None else Field(number(key, m.floor), m.floor)
        off = (Field(bound_in_words(key, m.bound), m.bound),) if in_short else ()
        return _metric(key), Field(number(key, m.value), m.value), *off, bar, floor, *_about(key)

    off = ("off by at most",) if in_short else ()
    columns = ("metric", "value", *off, "95 % interval", "noise floor", "axis", "what it is")
    return PageTable(columns, tuple(map(row, keys)), sum(COMPARED[key].headline for key in keys))


def models(audits: dict[str, Audit]) -> PageTable:
    """One row a model."""
    return _abreast("model", audits, (*BRIEF, "nll", "e_aurc"))


def groups(audit: Audit) -> PageTable:
    """One row a group, with the metrics that are significantly worse than in the rest."""
    ordered = {name: audit.groups[name] for name in audit.worst_first or audit.groups}
    table = _abreast("group", ordered, BRIEF)
    worse = {name: [f for f in audit.findings if f.group == name] for name in ordered}

    def finding(name: str) -> Field:
        text = ", ".join(f"{f.metric} (p = {f.p_value:.2g})" for f in worse[name])
        return Field(text, len(worse[name]) or None, tone="bad" if text else "")

    rows = tuple((*row, finding(name)) for row, name in zip(table.rows, ordered, strict=True))
    return PageTable((*table.columns, "worse than the rest"), rows, 2 * ROWS_FIRST)


def promised(t: Tables) -> list[Threshold]:
    """The threshold for each of `RISKS`; none where nothing can be promised."""
    return [choose_threshold(t, risk=risk) for risk in RISKS if promisable(t)]


def promises(thresholds: Sequence[Threshold], r: Ranking) -> PageTable:
    """The guarantee and the cost of each threshold of that ranking."""

    def row(t: Threshold) -> tuple[Field, ...]:
        most = Field(f"{100 * t.guaranteed_risk:.3g}%", t.guaranteed_risk)
        if not t.accepted:
            return most, Field("cannot be promised"), Field(""), Field(""), Field("")
        shares = (t.coverage, t.observed_risk, t.workload)
        return most, Field(written(r, t.accepted), t.value), *(Field(share(x), x) for x in shares)

    columns = ("errors at most", "accept at least", "inputs accepted", "errors seen", "left for review")
    return PageTable(columns, tuple(map(row, thresholds)), len(thresholds))


def promise_in_words(promises: Sequence[Threshold], r: Ranking) -> str:
    """The first threshold and its guarantee, or why there is none."""
    if not promises:
        return "A promise on the errors of weighted rows needs the rows themselves, in one file."
    t = promises[0]
    risk = f"at most {100 * t.guaranteed_risk:.3g}% errors"
    if not t.accepted:
        return f"No threshold promises {risk}: {t.reason}."
    least = written(r, t.accepted)
    return (
        f"Accept answers of at least {least}: {risk} on {t.coverage:.1%} of inputs, at {t.confidence:.0%} confidence."
    )


def tiles(audit: Audit, promises: Sequence[Threshold]) -> list[dict[str, str]]:
    """The few most important numbers, with the first promise if there can be one."""
    keys = [key for key in ON_TILES if key in audit.measurements]
    measured = [{"title": quantity(key).title, "term": key, **_measured(key, audit[key])} for key in keys]
    return [*measured, *map(_promised, promises[:1])]


def _promised(promise: Threshold) -> dict[str, str]:
    limit = f"inputs at ≤ {100 * promise.guaranteed_risk:.3g}% errors"
    text, under = ("none", "nothing can be promised") if not promise.accepted else (share(promise.coverage), "promised")
    return {"title": limit, "text": text, "under": f"{under} at 95 % confidence"}


def mistakes_table(listed: Iterable[Mistake]) -> PageTable:
    """The most confident wrong answers."""

    def label(name: int | str | None) -> Field:
        return Field("" if name is None else str(name), name)

    rows = tuple(
        (
            Field(m.name, m.name),
            Field(spelled(m.confidence), m.confidence),
            *map(label, (m.answer, m.true, m.group)),
            _shown(m.shown),
        )
        for m in listed
    )
    columns = ("sample", "confidence", "answer", "true", "group", "input")
    known = [i for i in range(len(columns)) if any(row[i].text or row[i].picture for row in rows)]
    return PageTable(tuple(columns[i] for i in known), tuple(tuple(row[i] for i in known) for row in rows), ROWS_FIRST)


def _shown(what: str) -> Field:
    return Field("", picture=what) if what.startswith("data:image/") else Field(what, what or None)


def differences(comparison: Comparison) -> PageTable:
    """Every metric of both models, and their differences on the same samples."""
    keys = _by_axis(comparison.differences)

    def row(key: str) -> tuple[Field, ...]:
        d = comparison[key]
        change = Field(("+" if d.value > 0 else "") + number(key, d.value), d.value, tone=_tone(key, d.interval))
        bar = Field("", None, d.note) if d.interval is None else Field(span(key, d.interval), d.interval.low)
        p = Field("") if d.p_value is None else Field(f"{d.p_value:.2g}", d.p_value)
        return _metric(key), *(Field(number(key, v), v) for v in (d.a, d.b)), change, bar, p, *_about(key)

    columns = ("metric", "A", "B", "B − A", "95 % interval", "p", "axis", "what it is")
    return PageTable(columns, tuple(map(row, keys)), sum(COMPARED[key].headline for key in keys))


def _by_axis(measured: Iterable[str]) -> list[str]:
    """The headline metrics axis by axis, then the others likewise."""
    keys = [key for axis in SHOWN_AXES for key, metric in COMPARED.items() if key in measured and metric.axis == axis]
    return sorted(keys, key=lambda key: not COMPARED[key].headline)


def _abreast(what: str, audits: dict[str, Audit], wanted: Iterable[str]) -> PageTable:
    keys = [key for key in wanted if any(key in audit.measurements for audit in audits.values())]

    def cell(key: str, m: Measurement | None) -> Field:
        return Field("–") if m is None else Field(value=m.value, **_measured(key, m))

    rows = tuple(
        (
            Field(name, name),
            Field(f"{audit.n:,}", audit.n),
            *(cell(key, audit.measurements.get(key)) for key in keys),
        )
        for name, audit in audits.items()
    )
    return PageTable((what, "samples", *map(with_arrow, keys)), rows, 2 * ROWS_FIRST)


def _measured(key: str, m: Measurement) -> dict[str, str]:
    floor = "" if m.floor is None else f"noise floor {number(key, m.floor)}"
    return {"text": number(key, m.value), "under": " · ".join(part for part in (span(key, m.interval), floor) if part)}


def _metric(key: str) -> Field:
    return Field(with_arrow(key), key, term=key)


def _about(key: str) -> tuple[Field, Field]:
    return Field(COMPARED[key].axis, COMPARED[key].axis), Field(COMPARED[key].line, COMPARED[key].line)


def _tone(key: str, interval: Interval | None) -> str:
    """Whether the difference is clearly better or clearly worse."""
    if interval is None or 0.0 in interval or COMPARED[key].better == "-":
        return ""
    return "good" if (interval.low > 0) == (COMPARED[key].better == "higher") else "bad"


def glossary() -> dict[str, str]:
    """What each metric is, in a sentence, by its key."""
    way = {"higher": " Higher is better.", "lower": " Lower is better.", "-": ""}
    return {key: f"{m.title}: {m.line}.{way[m.better]}" for key, m in COMPARED.items()}


def picture(audit: Audit) -> list[dict[str, object]]:
    """Both axes of each group with intervals, the worst first."""
    found = []
    worse = {finding.group for finding in audit.findings}
    for name in audit.worst_first or audit.groups:
        group = audit.groups[name]
        if "ece" in group.measurements and "auroc" in group.measurements:
            axes = {key: _ends(group[key]) for key in ("ece", "auroc")}
            found.append({"name": name, "n": group.n, "worse": name in worse} | axes)
    return found[:PICTURED]


def _ends(m: Measurement) -> list[float]:
    """Value and interval; without one, the value three times."""
    return [m.value, m.interval.low, m.interval.high] if m.interval else [m.value] * 3


def coverages(tables: Sequence[tuple[str, Tables]]) -> PageTable:
    """The share of inputs that each model accepts at the same promised risk, where both can promise one."""
    risks = RISKS if all(promisable(t) for _, t in tables) else ()

    def row(risk: float) -> tuple[Field, ...]:
        found = [choose_threshold(each, risk=risk) for _, each in tables]
        cells = [Field(share(t.coverage), t.coverage) if t.accepted else Field("nothing", 0.0) for t in found]
        return Field(f"{100 * risk:.3g}%", risk), *cells

    return PageTable(("errors at most", *(name for name, _ in tables)), tuple(map(row, risks)), len(RISKS))


def flipped(a: Tables, b: Tables) -> PageTable:
    """Samples that only one of two models answers rightly, the most confident errors first; none of summaries."""
    if a.summary is not None:
        return PageTable((), (), 0)
    x, y = a.outcomes, b.outcomes
    rows = np.flatnonzero(x.correct != y.correct)
    error = np.where(x.correct, y.confidence, x.confidence)[rows]
    rows = rows[np.argsort(-error, kind="stable")[:FLIPPED]]

    def row(i: int) -> tuple[Field, ...]:
        name = f"row {i}" if x.ids is None else str(x.ids[i])
        now = (
            Field("wrong in B", "wrong in B", tone="bad") if x.correct[i] else Field("right in B", "right", tone="good")
        )
        return Field(name, name), now, *(Field(spelled(o.confidence[i]), float(o.confidence[i])) for o in (x, y))

    return PageTable(
        ("sample", "changed to", "confidence A", "confidence B"), tuple(map(row, rows.tolist())), ROWS_FIRST
    )
