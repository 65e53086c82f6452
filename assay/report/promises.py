"""Thresholds for the terminal: what to accept, what is promised, what is left for people."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from assay.report.quantities import share
from assay.report.terminal import grid
from assay.thresholds import GroupThresholds, PositiveThreshold, Threshold, level, spelled


def threshold_view(threshold: Threshold | GroupThresholds | PositiveThreshold) -> RenderableType:
    """The threshold, its guarantee, and the share of inputs left for review."""
    if isinstance(threshold, PositiveThreshold):
        return _positive_threshold(threshold)
    if isinstance(threshold, GroupThresholds):
        return _threshold_of_each(threshold)
    if not threshold.accepted:
        parts = [Text.assemble(("No threshold keeps the promise: ", "bold"), threshold.reason, ".")]
        head = Text("The smallest risk that can be promised instead, at 22 fixed coverages:", "bold")
        return Group(*parts, head, _promise(threshold.instead)) if threshold.instead else parts[0]
    head = Text("The promise is for all inputs together and is not kept in these groups:", "bold")
    broken = [head, *(Text(f"  {group}") for group in threshold.broken)] if threshold.broken else []
    return Group(_promise(threshold), *broken)


def _positive_threshold(t: PositiveThreshold) -> RenderableType:
    if t.reason:
        head = Text.assemble(("No threshold keeps the promise: ", "bold"), t.reason, ".")
        if t.instead is None:
            return head
        return Group(head, Text("The best that can be promised instead:", "bold"), _positive_threshold(t.instead))
    table = grid("answer class 1 from", t.written)
    promised = f"{t.promised:.4g}" if t.goal == "cost" else share(t.promised)
    table.add_row(
        f"{t.goal} at {'most' if t.goal == 'cost' else 'least'}, at {level(t.confidence)} confidence", promised
    )
    if t.goal == "cost":
        table.add_row("mean cost, seen", f"{t.cost:.4g}")
    by_weight = " by weight" if t.weighted is not None else ""
    table.add_row("precision, seen", f"{share(t.precision)}{by_weight} ({t.hits:,} of {t.flagged:,})")
    table.add_row("recall, seen", f"{share(t.recall)}{by_weight} ({t.hits:,} of {t.positives:,})")
    table.add_row("inputs answered 1", f"{share(t.coverage)}{by_weight} ({t.flagged:,} of {t.n:,})")
    return table


def _promise(threshold: Threshold) -> Grid:
    table = grid("accept what is at least", spelled(threshold.value, up=True))
    table.add_row("errors among the accepted, seen", share(threshold.observed_risk))
    table.add_row(f"at most, at {level(threshold.confidence)} confidence", share(threshold.guaranteed_risk))
    rows = f"({threshold.accepted:,} of {threshold.n:,})"
    by_weight = " by weight" if threshold.weighted is not None else ""
    table.add_row("inputs accepted", f"{share(threshold.coverage)}{by_weight} {rows}")
    table.add_row("left for review", share(threshold.workload))
    return table


def _threshold_of_each(thresholds: GroupThresholds) -> RenderableType:
    table = grid("group", "accept at least", "accepted", "of", "errors seen", "at most")
    notes = []
    for name, t in thresholds.groups.items():
        shown = (spelled(t.value, up=True), share(t.coverage), f"{t.n:,}", share(t.observed_risk))
        table.add_row(Text(name), *(shown if t.accepted else ("nothing", *shown[1:3], "")), share(t.guaranteed_risk))
        notes += [] if t.accepted else [Text(f"{name}: {str(t).removeprefix('accept nothing: ')}.")]
    promise = f"All of these hold together at {level(thresholds.confidence)} confidence;"
    return Group(table, Text(f"{promise} {share(thresholds.coverage)} of all inputs are accepted.", "bold"), *notes)
