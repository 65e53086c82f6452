"""Audits and comparisons as tables for the terminal, legible at 80 columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from math import isinf

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from assay.auditing import Audit, Measurement
from assay.comparing import Comparison, Difference, Verdict
from assay.judging import UNLIKE, Judged
from assay.maps import Fit, Map
from assay.metrics import COMPARED, METRICS
from assay.report.quantities import BRIEF, SHOWN_AXES, number, quantity, share, span, with_arrow
from assay.side_by_side import Pair
from assay.thresholds import GroupThresholds, Threshold, level, spelled

COLORS = {"better": "green", "worse": "red"}
MODELS_ABREAST = 3  # models in one table
MOST_GROUPS, WORST_GROUPS = 30, 15  # of more groups than the first number, the second number of groups is printed


def audit_view(audits: dict[str, Audit], *, everything: bool = False) -> RenderableType:
    """The table of all models, the verdict of each in words, and its groups."""
    names = list(audits)
    keys = [key for key, metric in METRICS.items() if everything or metric.headline]
    parts: list[RenderableType] = [_model(audits[names[0]], keys)] if len(names) == 1 else []
    for start in range(0, len(names) if len(names) > 1 else 0, MODELS_ABREAST):
        parts.append(_models({name: audits[name] for name in names[start : start + MODELS_ABREAST]}, keys))
    for name, audit in audits.items():
        size = f"  {audit.n:,} samples, {audit.n_wrong:,} errors\n"
        parts.append(Text.assemble((name, "bold"), (size, "dim"), str(audit), (_without_interval(audit, keys), "dim")))
        groups = _groups_shown(audit)
        if everything:
            for group, part in groups.items():
                parts += [Text(f"\ngroup {group}, {part.n:,} samples", "bold"), _model(part, keys)]
        if groups:
            parts += [_groups(groups), *_findings(audit, groups)]
    return Group(*parts, Text("↓ lower is better, ↑ higher; `assay list metrics` explains each.", "dim"))


def pairs_view(pairs: Sequence[Pair]) -> RenderableType:
    """Which of several confidences ranks better, and which is better calibrated."""
    return Group(Text("Paired tests of the confidences:", "bold"), *(Text(f"  {pair}.") for pair in pairs))


def compare_view(names: tuple[str, str], comparison: Comparison, *, everything: bool = False) -> RenderableType:
    """The paired table, and the verdict on each axis of the second model, B, against the first, A."""
    table = _grid("metric", "A", "B", "B - A", "95 % interval", "p")
    keys = [key for key in comparison.differences if everything or COMPARED[key].headline]
    for key in _by_axis(table, keys):
        d = comparison[key]
        change = ("+" if d.value > 0 else "") + number(key, d.value)
        p = "" if d.p_value is None else f"{d.p_value:.2g}"
        table.add_row(_name(key), number(key, d.a), number(key, d.b), change, span(key, d.interval), p)
    paired = "" if comparison.by_ids else " (no ids: rows are paired in order)"
    legend = Text(f"A = {names[0]}\nB = {names[1]}\n{comparison.n:,} samples{paired}. B against A:", "bold")
    untested = [key for key in keys if comparison[key].p_value is None]
    notes = _because({key: comparison[key].note for key in untested})
    return Group(table, legend, *map(_verdict, comparison.verdicts), Text(notes.strip(), "dim"))


def calibrators_view(
    judged: dict[str, tuple[Map, Comparison]], judged_on: str, refused: dict[str, str], *, in_folds: bool
) -> RenderableType:
    """Metrics before and after on both axes and the verdict, for each calibrator."""
    table = _grid("calibrator", *BRIEF, "A", "C", "R")
    first = next(iter(judged.values()))[1]
    table.add_row("none", *(number(key, first[key].a) if key in first.differences else "" for key in BRIEF))
    if in_folds:
        judged = {name: (mapping, _in_one_order(mapping, comparison)) for name, (mapping, comparison) in judged.items()}
    for name, (_, comparison) in judged.items():
        shown = [number(key, comparison[key].b) if key in comparison.differences else "" for key in BRIEF]
        marks = {verdict.axis: _mark(verdict) for verdict in comparison.verdicts}
        table.add_row(name, *shown, *(marks[axis] for axis in ("accuracy", "calibration", "refinement")))
    legend = "A accuracy, C calibration, R refinement: ▲ significantly better, ▼ worse, · none shown, ? cannot tell"
    parts: list[RenderableType] = [table, Text(f"Judged on {judged_on}.", "bold"), Text(legend, "dim")]
    parts += [Text(f"{name} is not for these rows: {reason}", "dim") for name, reason in refused.items()]
    if len(judged) == 1:
        [(mapping, comparison)] = judged.values()
        parts += [*map(_verdict, comparison.verdicts), Text(f"  map: {mapping}\n  fit: {mapping.fit}")]
    parts += [_candidates(name, mapping.fit) for name, (mapping, _) in judged.items() if mapping.fit.chosen_from]
    return Group(*parts)


def _in_one_order(mapping: Map, comparison: Comparison) -> Comparison:
    """Without the ranking differences of a map that keeps the order of the samples.

    Each fold has its own map, so samples of two folds change places: the differences show only that the folds differ.
    """
    if not mapping.keeps_ranking:
        return comparison
    kept = "the map keeps the order of the samples"
    same = {
        key: Difference(d.a, d.a, note=kept)
        for key, d in comparison.differences.items()
        if key in BRIEF and COMPARED[key].axis == "refinement"
    }
    verdicts = (
        replace(verdict, word="none shown", p_value=1.0, note=kept) if verdict.axis == "refinement" else verdict
        for verdict in comparison.verdicts
    )
    return replace(comparison, differences=comparison.differences | same, verdicts=tuple(verdicts))


def _candidates(name: str, fit: Fit) -> RenderableType:
    """What was compared, and why the winner was chosen."""
    table = _grid(f"{name} chose among", "NLL", "behind the best", "standard error", "what it is")
    table.columns[-1].header = ""
    for c in fit.chosen_from:
        shown = ("", "", "") if isinf(c.loss) else (f"{c.loss:.4f}", f"{c.behind:.5f}", f"{c.error:.5f}")
        table.add_row(c.name, *shown, c.note or ("infinite NLL" if isinf(c.loss) else ""))
    return Group(table, Text(f"{fit.why}.", "bold"))


def judge_view(found: Judged) -> RenderableType:
    """The corrected share of right answers, the audit of the judge, and which verdicts can be trusted."""
    table = _grid("right answers", "share", "95 % interval")
    table.add_row("as the judge says", share(found.claimed), "")
    for name, each in (("corrected by the labels", found.accuracy), ("by the labels alone", found.labels_alone)):
        table.add_row(name, share(each.value), f"{share(each.interval.low)} – {share(each.interval.high)}")
    size = f"{found.n:,} answers, {found.labelled:,} with a human label"
    parts: list[RenderableType] = [table, Text(size, "bold")]
    if found.unlike < UNLIKE:
        doubt = "The judge scores the labelled answers differently from the others"
        parts.append(Text(f"{doubt} (p = {found.unlike:.2g}): if they are no random part, nothing here holds.", "red"))
    parts += [Text.assemble(("The judge's verdicts: ", "bold"), f"right in {share(found.audit['accuracy'].value)}. ")]
    parts += [Text(str(found.audit)), Text("Verdicts to trust:", "bold"), threshold_view(found.threshold)]
    if found.threshold.accepted:
        parts.append(Text(f"Of all answers {share(found.trusted)} have such a verdict; the rest is left for people."))
    return Group(*parts)


def threshold_view(threshold: Threshold | GroupThresholds) -> RenderableType:
    """The threshold, its guarantee, and the share of inputs left for review."""
    if isinstance(threshold, GroupThresholds):
        return _threshold_of_each(threshold)
    if not threshold.accepted:
        parts = [Text.assemble(("No threshold keeps the promise: ", "bold"), threshold.reason, ".")]
        head = Text("The smallest risk that can be promised instead:", "bold")
        return Group(*parts, head, _promise(threshold.instead)) if threshold.instead else parts[0]
    head = Text("The promise is for all inputs together and is not kept in these groups:", "bold")
    broken = [head, *(Text(f"  {group}") for group in threshold.broken)] if threshold.broken else []
    return Group(_promise(threshold), *broken)


def _promise(threshold: Threshold) -> Grid:
    table = _grid("accept what is at least", spelled(threshold.value, up=True))
    table.add_row("errors among the accepted, seen", share(threshold.observed_risk))
    table.add_row(f"at most, at {level(threshold.confidence)} confidence", share(threshold.guaranteed_risk))
    rows = f"({threshold.accepted:,} of {threshold.n:,})"
    by_weight = " by weight" if threshold.weighted is not None else ""
    table.add_row("inputs accepted", f"{share(threshold.coverage)}{by_weight} {rows}")
    table.add_row("left for review", share(threshold.workload))
    return table


def _threshold_of_each(thresholds: GroupThresholds) -> RenderableType:
    table = _grid("group", "accept at least", "accepted", "of", "errors seen", "at most")
    notes = []
    for name, t in thresholds.groups.items():
        shown = (spelled(t.value, up=True), share(t.coverage), f"{t.n:,}", share(t.observed_risk))
        table.add_row(Text(name), *(shown if t.accepted else ("nothing", *shown[1:3], "")), share(t.guaranteed_risk))
        notes += [] if t.accepted else [Text(f"{name}: {str(t).removeprefix('accept nothing: ')}.")]
    promise = f"All of these hold together at {level(thresholds.confidence)} confidence;"
    return Group(table, Text(f"{promise} {share(thresholds.coverage)} of all inputs are accepted.", "bold"), *notes)


def lines_view(what: str, lines: dict[str, str]) -> RenderableType:
    """Names, each with its line."""
    table = _grid(what, "what it is")
    for name, line in lines.items():
        table.add_row(name, Text(line))
    return table


def metrics_view() -> RenderableType:
    """Each metric in a line."""
    table = _grid("metric", "what it is")
    for key in _by_axis(table, METRICS):
        table.add_row(_name(key), METRICS[key].line)
    return table


def _model(audit: Audit, keys: Collection[str]) -> Grid:
    table = _grid("metric", "value", "95 % interval", "noise floor")
    for key in _by_axis(table, [key for key in keys if key in audit.measurements]):
        m = audit[key]
        floor = "" if m.floor is None else number(key, m.floor)
        table.add_row(_name(key), number(key, m.value), span(key, m.interval), floor)
    return table


def _models(audits: dict[str, Audit], keys: Collection[str]) -> Grid:
    table = _grid("metric", *audits)
    for key in _by_axis(table, [key for key in keys if any(key in audit.measurements for audit in audits.values())]):
        table.add_row(_name(key), *(_cell(key, audit.measurements.get(key)) for audit in audits.values()))
    return table


def _groups_shown(audit: Audit) -> dict[str, Audit]:
    """All groups, or if there are very many, the worst by p-value."""
    if len(audit.groups) <= MOST_GROUPS:
        return audit.groups
    return {name: audit.groups[name] for name in audit.worst_first[:WORST_GROUPS]}


def _groups(groups: dict[str, Audit]) -> Grid:
    keys = [key for key in BRIEF if any(key in group.measurements for group in groups.values())]
    table = _grid("group", "samples", *keys)
    for column in table.columns:
        column.no_wrap = True
    table.columns[0].no_wrap, table.columns[0].overflow = False, "fold"  # a name may be wrapped, a number never
    for name, group in groups.items():
        table.add_row(Text(name), f"{group.n:,}", *(_narrow_cell(key, group.measurements.get(key)) for key in keys))
    return table


def _findings(audit: Audit, shown: Collection[str]) -> Iterator[Text]:
    if len(shown) < len(audit.groups):
        hidden = len(audit.groups) - len(shown)
        yield Text(f"The {len(shown)} worst groups by p-value; {hidden} more are not shown, --json has all.", "bold")
    if audit.by_label:
        yield Text("Groups are chosen by the true label, so only their accuracy is judged: group by predicted class.")
    if audit.findings:
        yield Text("Significantly worse than the rest:", "bold")
        yield from (Text(str(finding)) for finding in audit.findings if finding.group in shown)
    else:
        yield Text("No group is shown to be worse than the rest.")
    if audit.detectable:
        least, most = (100 * f(audit.detectable.values()) for f in (min, max))
        span = f"{least:.1f}" if f"{least:.1f}" == f"{most:.1f}" else f"{least:.1f} to {most:.1f}, by group,"
        yield Text(f"Over-confidence of {span} points beyond the rest would have been seen 4 times of 5.", "dim")


def _verdict(verdict: Verdict) -> Text:
    return Text.assemble(f"  {verdict.axis}: ", _word(verdict), f" ({verdict.reason})")


def _word(verdict: Verdict) -> Text:
    return Text(verdict.word, COLORS.get(verdict.word, ""))


def _mark(verdict: Verdict) -> Text:
    marks = {"better": "▲", "worse": "▼", "none shown": "·", "equivalent": "=", "cannot tell": "?"}
    return Text(marks[verdict.word], COLORS.get(verdict.word, ""))


def _without_interval(audit: Audit, keys: Collection[str]) -> str:
    return _because({key: m.note for key, m in audit.measurements.items() if key in keys and m.interval is None})


def _because(notes: dict[str, str]) -> str:
    """Metrics without an interval, by reason."""
    reasons = dict.fromkeys(notes.values())
    return "".join(f"\n{why}: {', '.join(key for key in notes if notes[key] == why)}" for why in reasons)


def _by_axis(table: Grid, keys: Collection[str]) -> Iterator[str]:
    """The keys axis by axis, each axis under its own heading."""
    for axis in SHOWN_AXES:
        members = [key for key, metric in COMPARED.items() if key in keys and metric.axis == axis]
        if members:
            table.add_row(Text(axis, "bold"))
            yield from members
            table.add_section()


def _grid(first: str, *headings: str) -> Grid:
    table = Grid(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column(first, no_wrap=True)
    for heading in headings:
        left = heading == "what it is"
        table.add_column(Text(heading), justify="left" if left else "right", overflow="fold")
    return table


def _name(key: str) -> str:
    return f"  {with_arrow(key)}"


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
