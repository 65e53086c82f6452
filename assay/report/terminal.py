"""Audits and comparisons as tables for the terminal, legible at 80 columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from assay.auditing import Audit, Measurement
from assay.comparing import Comparison, Verdict
from assay.metrics import COMPARED, METRICS
from assay.report.fitting import Fitting
from assay.report.quantities import BRIEF, SHOWN_AXES, number, quantity, shown_key, span, with_arrow
from assay.side_by_side import Pair

COLORS = {"better": "green", "worse": "red"}
METRIC, MODEL, LONGEST = 20, 20, 18  # characters of the column of metrics, of one model, and of a group's name
MOST_GROUPS, WORST_GROUPS = 30, 15  # printed at most, with --all and without
FEWEST, FURTHER = 5, 2  # groups printed at least, and beyond those that are worse
LEGEND = "↓ lower is better, ↑ higher; `assay list metrics` explains each."


def audit_view(audits: dict[str, Audit], *, everything: bool = False, width: int = 80) -> RenderableType:
    """The verdict of each model in words, the table of all, and the groups that are worse."""
    names = list(audits)
    keys = [key for key, metric in METRICS.items() if everything or metric.headline]
    parts: list[RenderableType] = [_spoken(name, audit) for name, audit in audits.items()]
    if len(names) == 1:
        parts.append(_model(audits[names[0]], keys))
    abreast = max((width - METRIC) // MODEL, 1)
    for start in range(0, len(names) if len(names) > 1 else 0, abreast):
        parts.append(_models({name: audits[name] for name in names[start : start + abreast]}, keys))
    for name, audit in audits.items():
        parts += _grouped(f"groups of {name}" if len(names) > 1 else "group", audit, keys, everything)
    notes = "\n".join(dict.fromkeys(note for audit in audits.values() for note in _without_interval(audit, keys)))
    return Group(*parts, Text(f"{notes}\n{LEGEND}".strip(), "dim"))


def _spoken(name: str, audit: Audit) -> Text:
    size = f"  {audit.n:,} samples, {audit.n_wrong:,} errors\n"
    return Text.assemble((name, "bold"), (size, "dim"), str(audit))


def _grouped(title: str, audit: Audit, keys: Collection[str], everything: bool) -> Iterator[RenderableType]:
    """What was found about groups, and those that matter, the worst first."""
    if not audit.groups:
        return
    groups = _groups_shown(audit, everything)
    yield from _findings(audit, groups)
    yield _groups(title, groups)
    if everything:
        for group, part in groups.items():
            yield Text(f"\ngroup {group}, {part.n:,} samples", "bold")
            yield _model(part, keys)


def pairs_view(pairs: Sequence[Pair]) -> RenderableType:
    """Which of several confidences ranks better, and which is better calibrated."""
    return Group(Text("Paired tests of the confidences:", "bold"), *(Text(f"  {pair}.") for pair in pairs))


def compare_view(names: tuple[str, str], comparison: Comparison, *, everything: bool = False) -> RenderableType:
    """The verdict on each axis of the second model, B, against the first, A, and the paired table."""
    table = _unbroken(grid("metric", "A", "B", "B - A", "95 % interval", "p"))
    keys = [key for key in comparison.differences if everything or COMPARED[key].headline]
    for key in _by_axis(table, keys):
        d = comparison[key]
        change = ("+" if d.value > 0 else "") + number(key, d.value)
        p = "" if d.p_value is None else f"{d.p_value:.2g}"
        table.add_row(_name(key), number(key, d.a), number(key, d.b), change, span(key, d.interval), p)
    paired = f" ({pairing(comparison)})" if pairing(comparison) else ""
    legend = Text(f"A = {names[0]}\nB = {names[1]}\n{comparison.n:,} samples{paired}. B against A:", "bold")
    untested = [key for key in keys if comparison[key].p_value is None]
    notes = _because({key: comparison[key].note for key in untested})
    return Group(legend, *map(verdict_line, comparison.verdicts), Fitting(table, (5, 4)), Text("\n".join(notes), "dim"))


def pairing(comparison: Comparison) -> str:
    """How the rows of two models were paired, if that is not by their ids."""
    of_summaries = comparison.tables is not None and comparison.tables[0].summary is not None
    return "" if comparison.by_ids or of_summaries else "no ids: rows are paired in order"


def lines_view(what: str, lines: dict[str, str]) -> RenderableType:
    """Names, each with its line."""
    table = grid(what, "what it is")
    for name, line in lines.items():
        table.add_row(name, Text(line))
    return table


def metrics_view() -> RenderableType:
    """Each metric in a line."""
    table = grid("metric", "what it is")
    for key in _by_axis(table, METRICS):
        table.add_row(_name(key), METRICS[key].line)
    return table


def _model(audit: Audit, keys: Collection[str]) -> RenderableType:
    table = _unbroken(grid("metric", "value", "95 % interval", "noise\nfloor"))
    for key in _by_axis(table, [key for key in keys if key in audit.measurements]):
        m = audit[key]
        floor = "" if m.floor is None else number(key, m.floor)
        table.add_row(_name(key), number(key, m.value), span(key, m.interval), floor)
    return Fitting(table, (3, 2))


def _models(audits: dict[str, Audit], keys: Collection[str]) -> Grid:
    table = grid("metric", *audits)
    for key in _by_axis(table, [key for key in keys if any(key in audit.measurements for audit in audits.values())]):
        table.add_row(_name(key), *(_cell(key, audit.measurements.get(key)) for audit in audits.values()))
    return table


def _groups_shown(audit: Audit, everything: bool) -> dict[str, Audit]:
    """The worst first: those that are shown to be worse than the rest, and a few more to compare them with."""
    order = audit.worst_first or tuple(audit.groups)
    worse = len({finding.group for finding in audit.findings})
    most = MOST_GROUPS if everything else min(max(worse + FURTHER, FEWEST), WORST_GROUPS)
    return {name: audit.groups[name] for name in order[:most]}


def _groups(title: str, groups: dict[str, Audit]) -> RenderableType:
    keys = [key for key in BRIEF if any(key in group.measurements for group in groups.values())]
    table = _unbroken(grid(title, "samples", *(shown_key(key).replace(" ", "\n") for key in keys)))
    table.columns[0].no_wrap, table.columns[0].overflow = False, "fold"  # a name may be wrapped, a number never
    table.columns[0].width = min(max(map(len, (title, *groups))), LONGEST)
    for name, group in groups.items():
        table.add_row(Text(name), f"{group.n:,}", *(_narrow_cell(key, group.measurements.get(key)) for key in keys))
    return Fitting(table, tuple(range(len(keys) + 1, 2, -1)))


def _findings(audit: Audit, shown: Collection[str]) -> Iterator[Text]:
    if audit.by_label:
        yield Text("Groups are chosen by the true label, so only their accuracy is judged: group by predicted class.")
    if audit.findings:
        yield Text("Significantly worse than the rest:", "bold")
        yield from (Text(str(finding)) for finding in audit.findings if finding.group in shown)
    else:
        yield Text("No group is shown to be worse than the rest.")
    if audit.detectable:
        least, most = (100 * f(audit.detectable.values()) for f in (min, max))
        span, which = f"{least:.1f}", ""
        if span != f"{most:.1f}":
            span, which = f"{span} to {most:.1f}", ", which depends on the group,"
        yield Text(f"Over-confidence of {span} points beyond the rest{which} would have been seen 4 times of 5.", "dim")
    blind = 0 if audit.by_label or audit.calibrated_p is None else len(audit.groups.keys() - audit.detectable.keys())
    if blind:
        yield Text(f"In {blind} group{'s' * (blind > 1)} no over-confidence could have been seen: too few rows.", "dim")
    if len(shown) < len(audit.groups):
        hidden = len(audit.groups) - len(shown)
        yield Text(f"The {len(shown)} worst groups by p-value; {hidden} more: --all shows, --json has all.", "bold")


def verdict_line(verdict: Verdict) -> Text:
    """The verdict on one axis with its reason."""
    return Text.assemble(f"  {verdict.axis}: ", _word(verdict), f" ({verdict.reason})")


def _word(verdict: Verdict) -> Text:
    return Text(verdict.word, COLORS.get(verdict.word, ""))


def mark(verdict: Verdict) -> Text:
    """The verdict as one character."""
    marks = {"better": "▲", "worse": "▼", "none shown": "·", "equivalent": "=", "cannot tell": "?"}
    return Text(marks[verdict.word], COLORS.get(verdict.word, ""))


def _without_interval(audit: Audit, keys: Collection[str]) -> list[str]:
    return _because({key: m.note for key, m in audit.measurements.items() if key in keys and m.interval is None})


def _because(notes: dict[str, str]) -> list[str]:
    """Metrics without an interval, by reason."""
    reasons = dict.fromkeys(notes.values())
    return [f"{why}: {', '.join(key for key in notes if notes[key] == why)}" for why in reasons]


def _by_axis(table: Grid, keys: Collection[str]) -> Iterator[str]:
    """The keys axis by axis, each axis under its own heading."""
    for axis in SHOWN_AXES:
        members = [key for key, metric in COMPARED.items() if key in keys and metric.axis == axis]
        if members:
            table.add_row(Text(axis, "bold"))
            yield from members
            table.add_section()


def _unbroken(table: Grid) -> Grid:
    """The same, with numbers that are never cut in two."""
    for column in table.columns:
        column.no_wrap = True
    return table


def grid(first: str, *headings: str) -> Grid:
    """An empty table: names to the left, numbers to the right."""
    table = Grid(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column(first, no_wrap=True)
    for heading in headings:
        left = heading == "what it is"
        table.add_column(Text(heading), justify="left" if left else "right", overflow="fold")
    return table


def _name(key: str) -> str:
    return f" {with_arrow(key)}"


def _cell(key: str, m: Measurement | None) -> Text:
    """The value, and under it the interval and the noise floor."""
    return Text("–", "dim") if m is None else _stacked(key, m, span(key, m.interval))


def _narrow_cell(key: str, m: Measurement | None) -> Text:
    """The same in fewer columns, for a row of groups."""
    if m is None or m.interval is None:
        return _cell(key, m)
    unit = quantity(key).unit
    return _stacked(key, m, f"{unit.factor * m.interval.low:.1f}–{unit.factor * m.interval.high:.1f}{unit.sign}")


def _stacked(key: str, m: Measurement, interval: str) -> Text:
    floor = "" if m.floor is None else f"floor {number(key, m.floor)}"
    return Text("\n").join([Text(number(key, m.value)), *(Text(line, "dim") for line in (interval, floor) if line)])
