"""Audits and comparisons as tables for the terminal, legible at 80 columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from math import isnan

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from assay.auditing import Audit, Measurement
from assay.comparing import Comparison, Verdict
from assay.maps import Fit, Map
from assay.metrics import METRICS, Interval, Metric
from assay.selective import Threshold, spelled

SHOWN: dict[str, Metric] = METRICS | {
    "calibration_part": Metric("calibration", "lower", "unbiased calibration part of the top-label Brier score")
}
AXES = ("calibration", "refinement", "scoring", "description")
HEADLINE = (
    *(
        "ece",
        "ada_ece",
        "ece_l2_mass",
        "debiased_ece",
        "smooth_ece",
        "classwise_ece",
        "ece_positive",
        "calibration_part",
    ),
    *("auroc", "aupr_error", "fpr95", "aurc", "e_aurc", "risk_at_90"),
    *("accuracy", "nll", "brier", "mean_confidence"),
)
IN_GROUPS = ("accuracy", "ece", "auroc", "aurc")
ARROWS = {"higher": "↑", "lower": "↓", "-": " "}
PLAIN = ("nll", "brier", "mean_entropy", "nll_calibration", "nll_refinement")  # no shares, so not in per cent
COLORS = {"better": "green", "worse": "red"}
ABREAST = 3  # models in one table


def audit_view(audits: dict[str, Audit], *, everything: bool = False) -> RenderableType:
    """The table of all models, the verdict of each in words, and its groups."""
    names = list(audits)
    keys = [key for key in METRICS if everything or key in HEADLINE]
    parts: list[RenderableType] = [_model(audits[names[0]], keys)] if len(names) == 1 else []
    for start in range(0, len(names) if len(names) > 1 else 0, ABREAST):
        parts.append(_models({name: audits[name] for name in names[start : start + ABREAST]}, keys))
    for name, audit in audits.items():
        size = f"  {audit.n:,} samples, {audit.n_wrong:,} errors\n"
        parts.append(Text.assemble((name, "bold"), (size, "dim"), str(audit), (_without_interval(audit, keys), "dim")))
        if audit.groups and everything:
            for group, part in audit.groups.items():
                parts += [Text(f"\ngroup {group}, {part.n:,} samples", "bold"), _model(part, keys)]
        if audit.groups:
            parts += [_groups(audit), _findings(audit)]
    return Group(*parts, Text("↓ lower is better, ↑ higher; `assay list metrics` explains each.", "dim"))


def compare_view(names: tuple[str, str], comparison: Comparison, *, everything: bool = False) -> RenderableType:
    """The paired table, and the verdict on each axis of the second model, B, against the first, A."""
    table = _grid("metric", "A", "B", "B - A", "95 % interval", "p")
    keys = [key for key in comparison.differences if everything or key in HEADLINE]
    for key in _by_axis(table, keys):
        d = comparison[key]
        change = ("+" if d.value > 0 else "") + number(key, d.value)
        p = "" if d.p_value is None else f"{d.p_value:.2g}"
        table.add_row(_name(key), number(key, d.a), number(key, d.b), change, span(key, d.interval), p)
    legend = Text(f"A = {names[0]}\nB = {names[1]}\n{comparison.n:,} samples. B against A:", "bold")
    untested = [key for key in keys if comparison[key].p_value is None]
    notes = _because({key: comparison[key].note for key in untested})
    return Group(table, legend, *map(_verdict, comparison.verdicts), Text(notes.strip(), "dim"))


def calibrators_view(judged: dict[str, tuple[Map, Comparison]], judged_on: str) -> RenderableType:
    """Before and after on both axes and the verdict, for each calibrator."""
    keys = ("accuracy", "ece", "auroc", "aurc")
    table = _grid("calibrator", *keys, "A", "C", "R")
    first = next(iter(judged.values()))[1]
    table.add_row("none", *(number(key, first[key].a) if key in first.differences else "" for key in keys))
    for name, (_, comparison) in judged.items():
        shown = [number(key, comparison[key].b) if key in comparison.differences else "" for key in keys]
        marks = {verdict.axis: _mark(verdict) for verdict in comparison.verdicts}
        table.add_row(name, *shown, *(marks[axis] for axis in ("accuracy", "calibration", "refinement")))
    legend = "A accuracy, C calibration, R refinement: ▲ significantly better, ▼ worse, · no difference"
    parts: list[RenderableType] = [table, Text(f"Judged on {judged_on}.", "bold"), Text(legend, "dim")]
    if len(judged) == 1:
        [(mapping, comparison)] = judged.values()
        parts += [*map(_verdict, comparison.verdicts), Text(f"  map: {mapping}\n  fit: {mapping.fit}")]
    parts += [_candidates(name, mapping.fit) for name, (mapping, _) in judged.items() if mapping.fit.chosen_from]
    return Group(*parts)


def _candidates(name: str, fit: Fit) -> Table:
    table = _grid(f"{name} chose among", "NLL", "behind the best", "standard error")
    for candidate in fit.chosen_from:
        table.add_row(candidate.name, f"{candidate.loss:.4f}", f"{candidate.behind:.5f}", f"{candidate.error:.5f}")
    return table


def threshold_view(threshold: Threshold) -> RenderableType:
    """What to accept, what that promises, and how much is left for people."""
    if not threshold.accepted:
        return Text.assemble(("No threshold keeps the promise: ", "bold"), threshold.reason, ".")
    table = _grid("accept what is at least", spelled(threshold.value))
    table.add_row("errors among the accepted, seen", number("risk", threshold.observed_risk))
    table.add_row(f"at most, at {threshold.confidence:.0%} confidence", number("risk", threshold.guaranteed_risk))
    table.add_row("inputs accepted", f"{number('', threshold.coverage)} ({threshold.accepted:,} of {threshold.n:,})")
    table.add_row("left for review", number("", threshold.workload))
    return table


def lines_view(what: str, lines: dict[str, str]) -> RenderableType:
    """A name and its line each."""
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


def _model(audit: Audit, keys: Collection[str]) -> Table:
    table = _grid("metric", "value", "95 % interval", "noise floor")
    for key in _by_axis(table, [key for key in keys if key in audit.measurements]):
        m = audit[key]
        floor = "" if m.floor is None else number(key, m.floor)
        table.add_row(_name(key), number(key, m.value), span(key, m.interval), floor)
    return table


def _models(audits: dict[str, Audit], keys: Collection[str]) -> Table:
    table = _grid("metric", *audits)
    for key in _by_axis(table, [key for key in keys if any(key in audit.measurements for audit in audits.values())]):
        table.add_row(_name(key), *(_cell(key, audit.measurements.get(key)) for audit in audits.values()))
    return table


def _groups(audit: Audit) -> Table:
    keys = [key for key in IN_GROUPS if key in audit.measurements]
    table = _grid("group", "samples", *keys)
    for name, group in audit.groups.items():
        table.add_row(Text(name), f"{group.n:,}", *(_cell(key, group.measurements.get(key)) for key in keys))
    return table


def _findings(audit: Audit) -> Text:
    if not audit.findings:
        return Text("No group is significantly worse than the rest.")
    return Text("\n").join([Text("Significantly worse than the rest:", "bold"), *map(Text, map(str, audit.findings))])


def _verdict(verdict: Verdict) -> Text:
    return Text.assemble(f"  {verdict.axis}: ", _word(verdict), f" ({verdict.reason})")


def _word(verdict: Verdict) -> Text:
    return Text(verdict.word, COLORS.get(verdict.word, ""))


def _mark(verdict: Verdict) -> Text:
    return Text({"better": "▲", "worse": "▼"}.get(verdict.word, "·"), COLORS.get(verdict.word, ""))


def _without_interval(audit: Audit, keys: Collection[str]) -> str:
    return _because({key: m.note for key, m in audit.measurements.items() if key in keys and m.interval is None})


def _because(notes: dict[str, str]) -> str:
    """Metrics without an interval, by the reason."""
    reasons = dict.fromkeys(notes.values())
    return "".join(f"\n{why}: {', '.join(key for key in notes if notes[key] == why)}" for why in reasons)


def _by_axis(table: Table, keys: Collection[str]) -> Iterator[str]:
    """The keys axis by axis, each under a heading of its own."""
    for axis in AXES:
        members = [key for key in SHOWN if key in keys and SHOWN[key].axis == axis]
        if members:
            table.add_row(Text(axis, "bold"))
            yield from members
            table.add_section()


def _grid(first: str, *headings: str) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column(first, no_wrap=True)
    for heading in headings:
        left = heading == "what it is"
        table.add_column(Text(heading), justify="left" if left else "right", overflow="fold")
    return table


def _name(key: str) -> str:
    return f"  {key} {ARROWS[SHOWN[key].better]}"


def _cell(key: str, m: Measurement | None) -> Text:
    """Value, and under it the interval and the noise floor."""
    if m is None:
        return Text("–", "dim")
    floor = [] if m.floor is None else [f"floor {number(key, m.floor)}"]
    under = [span(key, m.interval), *floor] if m.interval else floor
    return Text("\n").join([Text(number(key, m.value)), *(Text(line, "dim") for line in under)])


def span(key: str, interval: Interval | None) -> str:
    return "" if interval is None else f"{number(key, interval.low).rstrip('%')} – {number(key, interval.high)}"


def number(key: str, value: float) -> str:
    if isnan(value):
        return "undefined"
    if key in PLAIN:
        return f"{value:.4f}"
    return f"{100 * value:.3f}%" if key == "calibration_part" else f"{100 * value:.2f}%"
