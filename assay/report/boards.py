"""A board of many models as a table: for the terminal, Markdown and the page."""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table as Grid
from rich.text import Text

from assay.auditing import Measurement
from assay.boards import KEYS, Board, BoardLine, RankRange
from assay.report.page._tables import Field, PageTable
from assay.report.quantities import number, quantity, share, span

RANKS = {"accuracy": "accuracy", "calibration": "calibration", "auroc": "AUROC", "aurc": "AURC"}
NOTE = (
    "Ranks are ranges: two lines whose ranges overlap cannot be told apart (all pairs tested together, 5 %). "
    "Answerable: share of answers that can be accepted with at most 5 % errors, guaranteed at 95 %. "
    "Corrected: after `auto`, fitted on other questions; its AUROC compares answers under the same map."
)


def table(board: Board) -> PageTable:
    """One row a line of the board, with a value to sort by in every field."""
    titles = [quantity(key).title for key in KEYS]
    columns = ("model", "confidence", "rows", *titles, "answerable", "ECE corrected", "AUROC corrected")
    ranks = [f"rank by {name}" for name in RANKS.values()]
    return PageTable((*columns, *ranks), tuple(tuple(_row(line)) for line in board.lines), len(board.lines))


def _row(line: BoardLine) -> Iterator[Field]:
    own = line.measured
    left_out = line.asked - own.n
    yield Field(line.model, line.model)
    yield Field(line.confidence, line.confidence)
    yield Field(f"{own.n:,}", own.n, f"{left_out:,} without" if left_out else "")
    for key in KEYS:
        yield _field(key, own.cells[key])
    yield Field("–") if isnan(own.answerable) else Field(share(own.answerable), own.answerable)
    after = own.corrected
    yield Field("–") if after is None else _field("ece", after.ece)
    yield Field("–") if after is None or isnan(after.auroc) else Field(number("auroc", after.auroc), after.auroc)
    for key in RANKS:
        yield _rank(line.ranks.get(key))


def _field(key: str, m: Measurement) -> Field:
    floor = "" if m.floor is None else f"floor {number(key, m.floor)}"
    under = ", ".join(part for part in (span(key, m.interval), floor) if part)
    return Field(number(key, m.value), None if isnan(m.value) else m.value, under)


def _rank(found: RankRange | None) -> Field:
    if found is None:
        return Field("–", None, "too few errors")
    text = str(found.low) if found.low == found.high else f"{found.low}–{found.high}"
    return Field(text, (found.low + found.high) / 2, tone="good" if found.high == 1 else "")


def categories(board: Board) -> PageTable | None:
    """One row a line and category; nothing if there are no categories."""
    rows = [
        (*(Field(text, text) for text in (line.model, line.confidence, name)), *map(_plain, values, values.values()))
        for line in board.lines
        for name, values in line.measured.categories.items()
    ]
    columns = ("model", "confidence", "category", "accuracy", "ECE", "AUROC")
    return PageTable(columns, tuple(rows), 20) if rows else None


def _plain(key: str, value: float) -> Field:
    return Field(number(key, value), None if isnan(value) else value)


SHOWN = ("model", "confidence", "rows", "accuracy", "ECE", "error AUROC", "AURC", "answerable", "rank by AURC")


ROOMY = 140  # columns of a terminal, from which on intervals are shown


def view(board: Board, width: int) -> Group:
    """The most important columns for a terminal of so many columns; Markdown and the page have all."""
    made, roomy = table(board), width >= ROOMY
    several = len({line.confidence for line in board.lines}) > 1
    left_out = {*(() if several else ("confidence",)), *(() if roomy else ("rows", "AURC"))}
    names = [name for name in SHOWN if name not in left_out]
    grid = Grid(box=SIMPLE_HEAD, pad_edge=False)
    for name in names:
        grid.add_column(name, justify="left" if name in ("model", "confidence") else "right", overflow="fold")
    grid.columns[0].min_width = 16
    for row in made.rows:
        grid.add_row(*(_text(row[made.columns.index(name)], under=roomy) for name in names))
    hidden = "" if roomy else " Rows and intervals: --to, --html, or a terminal of 140 columns."
    return Group(grid, Text(f"{board}.\n{NOTE}{hidden}"))


def _text(field: Field, *, under: bool) -> Text:
    lines = [Text(field.text), *([Text(field.under.replace(", ", "\n"), "dim")] if field.under and under else [])]
    return Text("\n").join(lines)


def markdown(board: Board) -> str:
    """The table with every interval, and under it what its columns are."""
    made = table(board)
    head = ["| " + " | ".join(made.columns) + " |", "|" + " --- |" * len(made.columns)]
    rows = ["| " + " | ".join(_cell(field) for field in row) + " |" for row in made.rows]
    return "\n".join([*head, *rows, "", f"{board}. {NOTE}", ""])


def _cell(field: Field) -> str:
    text = field.text.replace("|", r"\|")
    return f"{text} ({field.under})" if field.under else text
