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

from assay.claims._advice import accepted, advice, promised_risk
from assay.claims._claims import Claim, Side
from assay.claims._evidence import PRINTED, Evidence
from assay.claims._verdicts import LEAST, Comparison, Judged
from assay.metrics import COMPARED, Unit
from assay.nn.names import SEVERITIES
from assay.report.page import Field, PageTable, as_data, write_claims
from assay.report.quantities import quantity
from assay.study import UNCHANGED, USUAL_SCORE
from assay.study._shifts import corruption_and_severity

COLUMNS = ("claim", "who says so", "regime", "compared", "effect", "interval", "verdict")
FIRST = 20  # verdicts on the page before the reader asks for all
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
    return PageTable(COLUMNS, tuple(_row(each) for each in ordered), FIRST)


def _row(judged: Judged) -> tuple[Field, ...]:
    claim, weakest = judged.claim, judged.weakest
    unit = quantity(claim.metric).unit
    compared = _compared(claim, weakest.against)
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


def _compared(claim: Claim, against: str) -> str:
    """Both sides by what differs, and what they share beyond the usual."""
    ways = ((claim.calibrator, claim.against_calibrator, UNCHANGED), (claim.score, claim.against_score, USUAL_SCORE))
    own = [mine for mine, other, _ in ways if other not in (None, mine)]
    shared = [mine for mine, other, usual in ways if other in (None, mine) and mine != usual]
    said = ", ".join([claim.method, *own])
    if claim.against is None:
        return ", ".join([said, *shared])
    return f"{said} against {against}" + "".join(f", both with {way}" for way in shared)


def _signed(unit: Unit, value: float) -> str:
    rounded = round(unit.factor * value, unit.digits) + 0.0  # no -0.00
    return f"{rounded:+.{unit.digits}f}{unit.sign}"


def _interval(unit: Unit, comparison: Comparison) -> str:
    assert comparison.interval is not None
    return f"{_signed(unit, comparison.interval.low)} to {_signed(unit, comparison.interval.high)}"


def _detail(judged: Judged, weakest: Comparison) -> str:
    """What a word leaves open: how much more would decide, or how many seeds there are."""
    if judged.word == "not run":
        return f"{weakest.seeds} of at least {LEAST} seeds"
    if judged.word == "inconclusive" and isfinite(weakest.more):
        times = f"{weakest.more:g} x" if weakest.more <= 100 else "more than 100 x"
        return f"{times} the data would decide"
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
    """All verdicts, and of each regime the recipes on both axes and what they advise."""
    lines = [
        "# Claims put to the test",
        "",
        f"{summary(judged)} {NOTE}",
        "",
        *_piped(table(judged), linked="regime"),
        "",
    ]
    for regime, evidence in kept.items():
        lines += [f"## {regime}", "", source(regime, evidence), "", *_piped(both_axes(evidence)), ""]
        lines += [*(f"- {said}" for said in advice(evidence)), ""]
    return "\n".join(lines)


def source(regime: str, evidence: Evidence) -> str:
    """Where the figures of a regime come from."""
    runs = len({(number["method"], number["n_train"], number["seed"]) for number in evidence.numbers})
    printed = any(number["split"] == PRINTED for number in evidence.numbers)
    said = " Figures called printed are the paper's." if printed else ""
    return f"{runs} runs of the study `{regime}.toml`.{said}"


def _piped(shown: PageTable, linked: str = "") -> list[str]:
    """The table in Markdown; fields of the column `linked` are headings to link to."""
    head = ["| " + " | ".join(shown.columns) + " |", "|" + " --- |" * len(shown.columns)]
    rows = [zip(shown.columns, row, strict=True) for row in shown.rows]
    return head + ["| " + " | ".join(_cell(field, linked=name == linked) for name, field in row) + " |" for row in rows]


def _cell(field: Field, *, linked: bool) -> str:
    text = field.text.replace("|", r"\|")
    if linked:
        return f"[{text}](#{text})"
    return f"{text} ({field.under})" if field.under else text


AXES = ("accuracy", "ece", "auroc", "aurc")


def both_axes(evidence: Evidence) -> PageTable:
    """One row a recipe: mean and standard deviation over its seeds, and how much a threshold accepts."""
    risk = promised_risk(evidence)
    rows = []
    for recipe in evidence.recipes:
        cells = [_axis(evidence, name, recipe) for name in AXES]
        seeds = len(last_values(evidence, "accuracy", recipe))
        shown = [Field(recipe, recipe), Field(str(seeds), seeds), *cells]
        rows.append(tuple(shown) if risk is None else (*shown, _coverage(evidence, recipe, risk)))
    titles = ["recipe", "seeds", *(COMPARED[name].title for name in AXES)]
    titles += [] if risk is None else [f"accepted, errors ≤ {100 * risk:g}%"]
    return PageTable(tuple(titles), tuple(rows), len(rows))


def _axis(evidence: Evidence, name: str, recipe: str) -> Field:
    unit, values = COMPARED[name].unit, last_values(evidence, name, recipe)
    spread = f" ± {unit.number(float(np.std(values, ddof=1)))}" if len(values) > 1 else ""
    printed = evidence.number(name, recipe=recipe, split=PRINTED)
    under = next((f"printed {unit.number(float(found[0]))}{unit.sign}" for found in printed.values()), "")
    return Field(unit.number(float(np.mean(values))) + spread + unit.sign, float(np.mean(values)), under)


def _coverage(evidence: Evidence, recipe: str, risk: float) -> Field:
    if not evidence.seeds(Side(recipe)):
        return Field("–")
    share, errors = accepted(evidence, recipe, risk)
    return Field(f"{share:.1%}", share, f"{errors:.1%} errors")


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
            "source": source(regime, evidence),
            "advice": advice(evidence),
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
    return {"title": quantity(name).title, "axis": axis, "first": first, "means": means}
