"""Verdicts as a table: for the terminal, Markdown and a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table as Grid

from assay.claims._evidence import Evidence
from assay.claims._verdicts import LEAST, Comparison, Judged, best_or_tied
from assay.metrics import COMPARED, Unit
from assay.nn.names import SEVERITIES
from assay.report.page import Field, PageTable, as_data, write_claims
from assay.report.quantities import quantity
from assay.study import UNCHANGED
from assay.study._shifts import corruption_and_severity

COLUMNS = ("claim", "who says so", "regime", "compared", "effect", "interval", "verdict")
TONES = {"confirmed": "good", "contradicted": "bad"}
NOTE = (
    "Effect: the method less what it is compared with, mean over seeds. Intervals of a regime hold together at 95 %; "
    "they count the noise of the test samples and that of training, whose variance all recipes of a regime lend each "
    "other strength for. "
    "An inconclusive claim says how many times the samples and seeds would decide at this effect. "
    "Intervals of ECE are of the root of the calibration part, whose difference has a test of known level."
)


def table(judged: Sequence[Judged]) -> PageTable:
    """One row a claim and regime, with the comparison that supports the claim least; what was not run comes last."""
    ordered = sorted(judged, key=lambda each: each.word == "not run")
    return PageTable(COLUMNS, tuple(_row(each) for each in ordered), len(judged))


def _row(judged: Judged) -> tuple[Field, ...]:
    claim, weakest = judged.claim, judged.weakest
    unit = quantity(claim.metric).unit
    compared = f"{claim.method} and {weakest.against}"
    if len(judged.comparisons) > 1:
        compared += f", the weakest of {len(judged.comparisons)}"
    effect = Field("–") if weakest.interval is None else Field(_signed(unit, weakest.effect), weakest.effect)
    return (
        Field(claim.says, claim.id),
        Field("; ".join(claim.papers) or "ours", "; ".join(claim.papers)),
        Field(judged.regime, judged.regime),
        Field(compared, compared, claim.metric),
        effect,
        Field("–") if weakest.interval is None else Field(_interval(unit, weakest)),
        Field(judged.word, judged.word, _detail(judged, weakest), TONES.get(judged.word, "")),
    )


def _signed(unit: Unit, value: float) -> str:
    return f"{unit.factor * value:+.{unit.digits}f}{unit.sign}"


def _interval(unit: Unit, comparison: Comparison) -> str:
    assert comparison.interval is not None
    return f"{_signed(unit, comparison.interval.low)} to {_signed(unit, comparison.interval.high)}"


def _detail(judged: Judged, weakest: Comparison) -> str:
    """What a word leaves open: how much more would decide, or how many seeds there are."""
    if judged.word == "not run":
        return f"{weakest.seeds} of at least {LEAST} seeds"
    if judged.word == "inconclusive" and isfinite(weakest.more):
        return f"{weakest.more:g} x the data would decide"
    return ""


def summary(judged: Sequence[Judged]) -> str:
    """How many verdicts there are of each kind, in a sentence."""
    counts: Counter[str] = Counter(each.word for each in judged)
    words = ("confirmed", "contradicted", "inconclusive", "not run")
    claims = len({each.claim.id for each in judged})
    said = ", ".join(f"{counts[word]} {word}" for word in words if counts[word])
    return f"{claims} claims, {len(judged)} verdicts: {said}."


def view(judged: Sequence[Judged]) -> Grid:
    """The table for the terminal."""
    grid = Grid(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("claim", "regime", "effect", "interval", "verdict"):
        grid.add_column(name, overflow="fold")
    for row in table(judged).rows:
        grid.add_row(*(row[COLUMNS.index(name)].text for name in ("claim", "regime", "effect", "interval", "verdict")))
    return grid


def markdown(judged: Sequence[Judged], kept: Mapping[str, Evidence]) -> str:
    """All verdicts, and the recipes of each regime on both axes."""
    lines = ["# Claims put to the test", "", f"{summary(judged)} {NOTE}", "", *_piped(table(judged)), ""]
    for regime, evidence in kept.items():
        lines += [f"## {regime}", "", *_piped(both_axes(evidence)), ""]
        lines += [said, ""] if (said := standing(evidence)) else []
    return "\n".join(lines)


def _piped(shown: PageTable) -> list[str]:
    head = ["| " + " | ".join(shown.columns) + " |", "|" + " --- |" * len(shown.columns)]
    return head + ["| " + " | ".join(_cell(field) for field in row) + " |" for row in shown.rows]


def _cell(field: Field) -> str:
    text = field.text.replace("|", r"\|")
    return f"{text} ({field.under})" if field.under else text


def standing(evidence: Evidence) -> str:
    """Which recipes are best or tied, as trained, on either axis and on both; "" without three seeds of two."""
    calibrated, ranking = (best_or_tied(evidence, metric) for metric in ("calibration_part", "auroc"))
    if not calibrated:
        return ""
    both = [recipe for recipe in calibrated if recipe in ranking]
    return (
        f"Best as trained, or not shown to be worse than the best: calibration {', '.join(calibrated)}; "
        f"error AUROC {', '.join(ranking)}; both {', '.join(both) or 'none'}."
    )


AXES = ("accuracy", "ece", "auroc", "aurc")


def both_axes(evidence: Evidence) -> PageTable:
    """One row a recipe: mean and standard deviation over its seeds."""
    rows = []
    for recipe in evidence.recipes:
        by_metric = {name: last_values(evidence, name, recipe) for name in AXES}
        seeds = len(by_metric["accuracy"])
        fields = [Field(recipe, recipe), Field(str(seeds), seeds)]
        for name, values in by_metric.items():
            unit = COMPARED[name].unit
            spread = f" ± {unit.number(float(np.std(values, ddof=1)))}" if seeds > 1 else ""
            fields.append(Field(unit.number(float(np.mean(values))) + spread + unit.sign, float(np.mean(values))))
        rows.append(tuple(fields))
    return PageTable(("recipe", "seeds", *(COMPARED[name].title for name in AXES)), tuple(rows), len(rows))


def last_values(evidence: Evidence, name: str, recipe: str) -> list[float]:
    """A metric of the test samples as trained, of each seed of a recipe."""
    found = evidence.number(name, recipe=recipe, epoch=None, split="test", calibrator="none")
    return [float(values[-1]) for values in found.values()]


def claims_page(judged: Sequence[Judged], kept: Mapping[str, Evidence], file: Path) -> None:
    """Write the verdicts as one page: a table to sort and filter, and by regime a map of both axes and its curves."""
    regimes: list[dict[str, object]] = [
        {
            "name": regime,
            "recipes": as_data(both_axes(evidence)),
            "standing": standing(evidence),
            "points": list(_points(evidence)),
            "curves": _epochs(evidence) + _severities(evidence),
        }
        for regime, evidence in kept.items()
    ]
    write_claims(summary(judged), NOTE, table(judged), regimes, file)


def _points(evidence: Evidence) -> Iterator[dict[str, Any]]:
    """Every run: its ECE and AUROC."""
    for recipe in evidence.recipes:
        pairs = zip(*(last_values(evidence, name, recipe) for name in ("ece", "auroc")), strict=True)
        yield {"recipe": recipe, "runs": [{"ece": ece, "auroc": auroc} for ece, auroc in pairs]}


def _epochs(evidence: Evidence) -> list[dict[str, Any]]:
    """Of each figure on the test samples its course over epochs."""
    figures = dict.fromkeys(row["name"] for row in evidence.numbers if row["epoch"] is not None)
    return [
        _curves(
            figure.removeprefix("test_"), "epoch", 1, {r: evidence.number(figure, recipe=r) for r in evidence.recipes}
        )
        for figure in figures
        if figure.startswith("test_") or figure == "weight_norm"
    ]


def _severities(evidence: Evidence) -> list[dict[str, Any]]:
    """Of each metric on corrupted samples its course over severities, from 0, the samples as they are."""
    by_severity: dict[tuple[str, str, int], list[list[float]]] = {}
    for row in evidence.numbers:
        _, severity = corruption_and_severity(row["split"])
        if severity is not None and row["epoch"] is None and row["calibrator"] == UNCHANGED:
            places = by_severity.setdefault((row["name"], row["recipe"], row["seed"]), [[] for _ in (0, *SEVERITIES)])
            places[severity].append(row["value"])
    shifted = {key: [float(np.mean(place)) for place in places] for key, places in by_severity.items() if all(places)}
    found: dict[str, dict[str, dict[int, Any]]] = {}
    for (name, recipe, seed), values in shifted.items():
        found.setdefault(name, {}).setdefault(recipe, {})[seed] = values
    return [_curves(name, "severity", 0, by_recipe) for name, by_recipe in found.items()]


def _curves(name: str, axis: str, first: int, by_recipe: Mapping[str, Mapping[int, Any]]) -> dict[str, Any]:
    """By recipe, the mean over seeds at each place of the axis."""
    means = {recipe: np.mean([*seeds.values()], axis=0).tolist() for recipe, seeds in by_recipe.items() if seeds}
    return {"name": name, "axis": axis, "first": first, "means": means}
