"""Several models against the first, for the terminal: one line a model, and who cannot be told apart."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from assay.comparing import Comparison
from assay.report.quantities import BRIEF, number, shown_key
from assay.report.terminal import grid, mark

AXES = {"accuracy": "A", "calibration": "C", "refinement": "R"}
ALIKE = ("none shown", "equivalent", "cannot tell")


def comparisons_view(first: str, compared: dict[str, Comparison]) -> RenderableType:
    """Who is better or worse than the first model on which axis; marks share one level."""
    some = next(iter(compared.values()))
    keys = [key for key in BRIEF if key in some.differences]
    table = grid("model", *(shown_key(key).replace(" ", "\n") for key in keys), "A C R")
    table.columns[0].no_wrap = False
    for column in table.columns[1:]:
        column.no_wrap = True
    table.add_row(Text(first), *(number(key, some[key].a) for key in keys), "")
    for name, comparison in compared.items():
        marks = [mark(verdict) for verdict in comparison.verdicts if verdict.axis in AXES]
        table.add_row(Text(name), *(number(key, comparison[key].b) for key in keys), Text(" ").join(marks))
    alike = [name for name, comparison in compared.items() if all(v.word in ALIKE for v in comparison.verdicts)]
    verdict = f"Cannot be told apart from {first}: {', '.join(alike)}." if alike else f"All differ from {first}."
    legend = f"{some.n:,} samples. A accuracy, C calibration, R refinement against {first}: "
    legend += "▲ significantly better, ▼ worse, · none shown, = equivalent, ? cannot tell; all marks share one level."
    return Group(Text(verdict, "bold"), table, Text(legend, "dim"))
