"""What calibrators did to the confidence, for the terminal: the verdict first, then both axes before and after."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import isinf

from rich.console import Group, RenderableType
from rich.text import Text

from assay.auditing import calibrated, calibration_in_words
from assay.comparing import POSITIVE, Comparison, Difference
from assay.maps import Fit, Map
from assay.metrics import COMPARED
from assay.report.quantities import number, shown_key
from assay.report.terminal import grid, mark, verdict_line

KEYS = ("ece", "ece_positive", "nll", "auroc", "accuracy")  # what matters most first
LETTERS = {"accuracy": "A", "calibration": "C", POSITIVE: "1", "refinement": "R"}
GAP = 3  # characters between two columns
NAME = 26  # characters of the longest calibrator

Judged = dict[str, tuple[Map, Comparison]]


def calibrators_view(
    judged: Judged, judged_on: str, refused: dict[str, str], *, in_folds: bool, width: int = 80
) -> RenderableType:
    """The verdict in words; metrics before and after on both axes; whether miscalibration is still shown."""
    if in_folds:
        judged = {name: (mapping, _in_one_order(mapping, comparison)) for name, (mapping, comparison) in judged.items()}
    parts: list[RenderableType] = [*_verdicts(judged), _table(judged, width), Text(f"Judged on {judged_on}.", "bold")]
    parts.append(Text(_legend(_fullest(judged)), "dim"))
    parts += [Text(line, "dim") for line in _refusals(refused)]
    if len(judged) == 1:
        [(mapping, comparison)] = judged.values()
        parts += [*map(verdict_line, comparison.verdicts), Text(f"  map: {mapping}\n  fit: {mapping.fit}")]
    parts += [_candidates(name, mapping.fit) for name, (mapping, _) in judged.items() if mapping.fit.chosen_from]
    return Group(*parts)


def _refusals(refused: dict[str, str]) -> Iterator[str]:
    """A line for each reason, which several calibrators may share."""
    for reason in dict.fromkeys(refused.values()):
        names = [name for name, other in refused.items() if other == reason]
        yield f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} not for these rows: {reason}"


def _verdicts(judged: Judged) -> Iterator[Text]:
    if len(judged) == 1:
        [(name, (mapping, comparison))] = judged.items()
        yield Text.assemble((name, "bold"), f": {comparison}.")
        if mapping.fit.why:
            yield Text(f"{name} chose {mapping.fit.why.replace(' has ', ': it has ', 1)}.")
        if comparison.tables is not None:
            yield Text(f"Now: {calibration_in_words(comparison.tables[1])}")
        return
    gains = [name for name, (_, comparison) in judged.items() if _helps(comparison)]
    yield Text(f"{len(gains)} of {len(judged)} improve calibration and make nothing worse.", "bold")
    losses = {name: judged[name][1]["nll"].b for name in gains if "nll" in judged[name][1].differences}
    if losses:
        best = min(losses, key=lambda name: losses[name])
        yield Text(f"The least NLL of these: {best}, {number('nll', losses[best])}.")


def _helps(comparison: Comparison) -> bool:
    words = {verdict.axis: verdict.word for verdict in comparison.verdicts}
    return "worse" not in words.values() and "better" in (words["calibration"], words.get(POSITIVE))


def _table(judged: Judged, width: int) -> RenderableType:
    first = _fullest(judged)
    letters = " ".join(LETTERS[verdict.axis] for verdict in first.verdicts)
    longest = max(map(len, (*judged, "calibrator")))
    keys = _fitting([key for key in KEYS if key in first.differences], width - min(longest, NAME) - len(letters) - 11)
    table = grid("calibrator", *map(_head, keys), letters, "now")
    table.columns[0].no_wrap = False
    for column in table.columns[1:]:
        column.no_wrap = True
    table.add_row("none", *(number(key, first[key].a) for key in keys), "", _now(first, 0))
    for name, (_, comparison) in judged.items():
        shown = [number(key, comparison[key].b) if key in comparison.differences else "" for key in keys]
        known = {verdict.axis: mark(verdict) for verdict in comparison.verdicts}
        marks = Text(" ").join(known.get(verdict.axis, Text(" ")) for verdict in first.verdicts)
        table.add_row(name, *shown, marks, _now(comparison, 1))
    return table


def _head(key: str) -> str:
    return {"ece_positive": "ece of\nclass 1"}.get(key, shown_key(key).replace(" ", "\n"))


def _fullest(judged: Judged) -> Comparison:
    """A comparison with all axes: a map of the confidence leaves no probability of class 1."""
    return max((comparison for _, comparison in judged.values()), key=lambda comparison: len(comparison.verdicts))


def _fitting(keys: Sequence[str], room: int) -> list[str]:
    """As many keys as have room, the first ones before the others."""
    fits: list[str] = []
    for key in keys:
        taken = GAP + max(6, *map(len, _head(key).split("\n")))
        if taken <= room:
            fits, room = [*fits, key], room - taken
    return fits


def _now(comparison: Comparison, side: int) -> Text:
    """Whether miscalibration is shown, before or after."""
    found = None if comparison.tables is None else calibrated(comparison.tables[side])
    return Text("" if found is None else "✓" if found else "✗", "green" if found else "red")


def _legend(comparison: Comparison) -> str:
    axes = ", ".join(f"{LETTERS[verdict.axis]} {verdict.axis}" for verdict in comparison.verdicts)
    marks = "▲ significantly better, ▼ worse, · none shown, ? cannot tell"
    return f"{axes}: {marks}\nnow: ✓ no sign of miscalibration is left, ✗ there is one"


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
        if key in KEYS and COMPARED[key].axis == "refinement"
    }
    verdicts = (
        replace(verdict, word="none shown", p_value=1.0, note=kept) if verdict.axis == "refinement" else verdict
        for verdict in comparison.verdicts
    )
    return replace(comparison, differences=comparison.differences | same, verdicts=tuple(verdicts))


def _candidates(name: str, fit: Fit) -> RenderableType:
    """What was compared."""
    table = grid(f"{name} chose among", "NLL", "behind\nthe best", "standard\nerror", "what it is")
    table.columns[-1].header = ""
    for c in fit.chosen_from:
        shown = ("", "", "") if isinf(c.loss) else (f"{c.loss:.4f}", f"{c.behind:.5f}", f"{c.error:.5f}")
        table.add_row(c.name, *shown, c.note or ("infinite NLL" if isinf(c.loss) else ""))
    return Group(table, Text(f"{fit.why}.", "bold"))
