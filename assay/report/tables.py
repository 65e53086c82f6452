"""A study's tables in Markdown, LaTeX, CSV and for the terminal, with the marks of the papers."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from io import StringIO
from math import isnan
from typing import Literal

from rich.box import SIMPLE_HEAD
from rich.table import Table as Grid
from rich.text import Text

from assay._core import text
from assay.report.quantities import heading, quantity
from assay.study import USUAL_SCORE, StudyCell, StudyLine, StudyTable, mean_ranks, paired, welch

MARKS = {"better": "▲", "worse": "▼", "": ""}
Bold = Literal["best", "worse"]
BOLD = {"best": "best", "worse": "significantly worse, as in singh2021"}
TESTS: dict[object, str] = {welch: "Welch's t-test", paired: "t-test paired by seed"}
ENOUGH = 3  # seeds from which on marks need no caution
NAME, LONGEST = 16, 36  # least and most characters of the terminal for the names of methods
GAP, EDGES = 3, 2  # characters of the terminal between two columns, and around a table


@dataclass(frozen=True)
class CellText:
    """The parts of a cell; Markdown, LaTeX and the terminal each combine them in their own way."""

    mean: str
    spread: str = ""  # with its sign ±
    mark: str = ""
    few: str = ""  # how many seeds there are, if fewer than in other cells
    paper: str = ""  # the published figure, and our mean minus it: 9.94 (+3.12)
    bold: bool = False
    tone: str = ""  # better, worse, or nothing

    @property
    def number(self) -> str:
        """Mean and standard deviation."""
        return self.mean + self.spread

    @property
    def after(self) -> str:
        """What follows the number in the same line."""
        return "".join([f" {self.mark}" * bool(self.mark), f" ({self.few})" * bool(self.few)])


MISSING = CellText("–")


def cell_text(metric: str, cell: StudyCell, *, bold: Bold = "best", seeds: int = 0) -> CellText:
    """The parts of a cell; a cell of fewer than `seeds` seeds says so."""
    unit, summary = quantity(metric).unit, cell.summary
    spread = {"sd": summary.sd, "sem": summary.sem}[cell.error]
    paper = ""
    if cell.published is not None and cell.difference is not None:
        paper = f"{unit.number(cell.published.mean)} ({unit.factor * cell.difference:+.{unit.digits}f})"
    return CellText(
        mean=unit.number(summary.mean),
        spread="" if isnan(spread) else f"±{unit.number(spread)}",
        mark=MARKS[cell.word],
        few=f"n={summary.n}" if summary.n < seeds else "",
        paper=paper,
        bold=cell.best if bold == "best" else cell.word == "worse",
        tone=cell.word,
    )


def legend(table: StudyTable, bold: Bold = "best") -> str:
    """A line that explains the marks."""
    how = f"{TESTS[table.test]}, p < {table.level:g}{' by Holm' if table.corrected else ''}"
    marks = f"against {table.baseline}, and its calibrators against none, ▲ significantly better, ▼ worse ({how})"
    last = "; under it the figure of a paper, and ours minus it" if _has_published(table) else ""
    few = f"{table.seeds} seeds are few: marks from fewer than {ENOUGH} are hints, not evidence; "
    caution = few if table.seeds < ENOUGH else ""
    return f"mean ± {table.error} over seeds; {caution}{marks}; bold: {BOLD[bold]}{last}"


def _has_published(table: StudyTable) -> bool:
    return any(cell.published for line in table.lines for cell in line.cells.values())


def table_title(table: StudyTable) -> str:
    """The point of the table on the other axes."""
    first = [str(table.point[name]) for name in ("data", "network", "split")]
    rest = [f"{name} {value}" for name, value in table.point.items() if name not in ("data", "network", "split")]
    return ", ".join([*first, *rest])


def _texts(table: StudyTable, line: StudyLine, bold: Bold) -> list[CellText]:
    return [
        cell_text(metric, line.cells[metric], bold=bold, seeds=table.seeds) if metric in line.cells else MISSING
        for metric in table.metrics
    ]


GridRow = tuple[str, str, list[Text]]  # method, calibrator or score, cells


def grids(table: StudyTable, bold: Bold = "best", *, width: int = 80) -> list[Grid]:
    """Tables for the terminal, each with as many metrics as its width allows; `legend` explains the marks."""
    heads = [heading(metric).replace(" ", "\n", 1) for metric in table.metrics]
    rows = [(line.method, line.confidence, list(map(_in_lines, _texts(table, line, bold)))) for line in table.lines]
    return _abreast(table_title(table), heads, rows, width, table.confidences)


def _abreast(title: str, heads: list[str], rows: list[GridRow], width: int, second: str) -> list[Grid]:
    """Columns side by side, in as many grids as it takes; in each the method above its calibrators and scores."""
    names = [len(method) for method, _, _ in rows] + [len(confidence) + 2 for _, confidence, _ in rows]
    name = min(max(NAME, *names), LONGEST)
    widths = [
        GAP + max(len(part) for text in [head, *(cells[j].plain for *_, cells in rows)] for part in text.split("\n"))
        for j, head in enumerate(heads)
    ]
    return [
        _grid(_empty(title, name, second, [heads[j] for j in columns]), rows, columns)
        for columns in _packed(widths, width - name - EDGES)
    ]


def _empty(title: str, name: int, second: str, heads: list[str]) -> Grid:
    grid = Grid(box=SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left")
    grid.add_column(f"method\n  {second}", overflow="fold", min_width=name, max_width=name)
    for head in heads:
        grid.add_column(head, justify="right", no_wrap=True)
    return grid


def _grid(grid: Grid, rows: list[GridRow], columns: list[int]) -> Grid:
    last = ""
    for method, confidence, cells in rows:
        if method != last:
            grid.add_section()
            grid.add_row(Text(method, "bold"))
        grid.add_row(f"  {confidence}", *(cells[j] for j in columns))
        last = method
    return grid


def _packed(widths: list[int], most: int) -> list[list[int]]:
    """Runs of neighbors whose widths sum to at most `most`.

    >>> _packed([3, 3, 3, 9], 7)
    [[0, 1], [2], [3]]
    """
    packed: list[list[int]] = []
    room = 0
    for j, width in enumerate(widths):
        if not packed or width > room:
            packed.append([])
            room = most
        packed[-1].append(j)
        room -= width
    return packed


def _in_lines(cell: CellText) -> Text:
    """The mean with its mark, under it the standard deviation and, if there is one, the published figure."""
    if cell is MISSING:
        return Text(cell.mean, "dim")
    color = {"better": "green", "worse": "red"}.get(cell.tone, "")
    shown = Text(cell.mean + (cell.mark or " "), f"{'bold ' if cell.bold else ''}{color}".strip())
    for part, style in ((cell.spread, "dim"), (cell.few, "yellow"), *((part, "blue") for part in cell.paper.split())):
        if part:
            shown.append(f"\n{part} ", f"{style} not bold")
    return shown


def rank_grids(tables: list[StudyTable], *, width: int = 80) -> list[Grid]:
    """Tables for the terminal of the mean rank of each method over several tables."""
    places = mean_ranks(tables)
    metrics = [metric for metric in tables[0].metrics if all(metric in ranks for ranks in places.values())]
    rows = [(*pair, [Text(f"{place[metric]:.1f}") for metric in metrics]) for pair, place in places.items()]
    return _abreast(f"mean rank in {len(tables)} tables, 1 the best", metrics, rows, width, tables[0].confidences)


def markdown(table: StudyTable, bold: Bold = "best") -> str:
    """A Markdown table with its title and legend."""
    head = ["method", table.confidences, *map(heading, table.metrics)]
    lines = [f"**{table_title(table)}**", "", _piped(head), _piped(["---", "---", *("---:" for _ in table.metrics)])]
    for line in table.lines:
        lines.append(_piped([line.method, line.confidence, *map(_markdown_cell, _texts(table, line, bold))]))
    return "\n".join([*lines, "", legend(table, bold)]) + "\n"


def _markdown_cell(cell: CellText) -> str:
    ours = (f"**{cell.number}**" if cell.bold else cell.number) + cell.after
    return f"{ours}<br>{cell.paper}" if cell.paper else ours


def _piped(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def latex(table: StudyTable, bold: Bold = "best") -> str:
    """A booktabs table under a comment with its title and legend; needs the packages booktabs and amssymb."""
    head = ["method", table.confidences, *map(heading, table.metrics)]
    rows = [list(map(text.latex, head))]
    for line in table.lines:
        names = map(text.latex, (line.method, line.confidence))
        rows.append([*names, *map(_latex_cell, _texts(table, line, bold))])
    first, *body = [" & ".join(row) + r" \\" for row in rows]
    return (
        f"% {text.printable(table_title(table))}\n% {text.printable(legend(table, bold))}\n"
        f"\\begin{{tabular}}{{ll{'r' * len(table.metrics)}}}\n\\toprule\n{first}\n\\midrule\n"
        + "\n".join(body)
        + "\n\\bottomrule\n\\end{tabular}\n"
    )


def _latex_cell(cell: CellText) -> str:
    number = text.latex(cell.number)
    ours = (rf"\textbf{{{number}}}" if cell.bold else number) + text.latex(cell.after)
    paper = text.latex(cell.paper)
    return rf"\begin{{tabular}}[t]{{@{{}}r@{{}}}}{ours} \\ {paper}\end{{tabular}}" if paper else ours


def as_csv(tables: list[StudyTable]) -> str:
    """All cells in natural units, one a line: mean, sd, sem, n, p-value against the baseline, published figure."""
    out = StringIO()
    writer = csv.writer(out)
    axes = list(tables[0].point) if tables else []
    ours = ["mean", "sd", "sem", "n", "p_value", "against_baseline"]
    papers = ["published", "published_sd", "difference", "paper", "table"]
    scored = any(line.score != USUAL_SCORE for table in tables for line in table.lines)
    writer.writerow([*axes, "method", "calibrator", *(["score"] * scored), "metric", *ours, *papers])

    def write(cells: list[object]) -> None:
        writer.writerow([text.csv_cell(cell) if isinstance(cell, str) else cell for cell in cells])

    for table in tables:
        for line in table.lines:
            for metric, cell in line.cells.items():
                names = [*table.point.values(), line.method, line.calibrator, *([line.score] * scored), metric]
                write([*names, *_csv_numbers(cell)])
    return out.getvalue()


def _csv_numbers(cell: StudyCell) -> list[object]:
    s, p = cell.summary, cell.published
    paper = [None] * 5 if p is None else [p.mean, p.sd, cell.difference, p.paper, p.table]
    return [s.mean, s.sd, s.sem, s.n, cell.p_value, cell.word, *paper]
