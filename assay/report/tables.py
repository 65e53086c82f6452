"""A study's tables in Markdown, LaTeX, CSV and for the terminal, with the marks of the papers."""

from __future__ import annotations

import csv
from io import StringIO
from math import isnan
from typing import Literal

from rich.box import SIMPLE_HEAD
from rich.table import Table as Grid
from rich.text import Text

from assay.metrics import METRICS, Unit
from assay.study import Cell, Line, Table, better, mean_ranks, paired, welch

ARROWS = {"higher": "↑", "lower": "↓", "-": ""}
MARKS = {"better": "▲", "worse": "▼", "": ""}
TEMPERATURE = Unit(1, "", 3)
Bold = Literal["best", "worse"]
BOLD = {"best": "best", "worse": "significantly worse, as in singh2021"}
TESTS: dict[object, str] = {welch: "Welch's t-test", paired: "t-test paired by seed"}
NAME, LONGEST = 16, 36  # least and most characters of the terminal for the names of methods
GAP, EDGES = 3, 2  # characters of the terminal between two columns, and around a table


def unit(metric: str) -> Unit:
    """The unit of a metric, or of the temperature."""
    return METRICS[metric].unit if metric in METRICS else TEMPERATURE


def heading(metric: str) -> str:
    """The metric's key with unit and arrow."""
    return " ".join(part for part in (metric, unit(metric).sign, ARROWS[better(metric)]) if part)


def number(metric: str, cell: Cell) -> str:
    """Mean and standard deviation over seeds."""
    mean = unit(metric).number(cell.summary.mean)
    return mean if isnan(cell.summary.sd) else f"{mean}±{unit(metric).number(cell.summary.sd)}"


def printed(metric: str, cell: Cell) -> str:
    """The published figure, and our mean minus it: 9.94 (+3.12); nothing if there is none."""
    if cell.published is None or cell.difference is None:
        return ""
    shown = unit(metric)
    return f"{shown.number(cell.published.mean)} ({shown.factor * cell.difference:+.{shown.digits}f})"


def legend(table: Table, bold: Bold = "best") -> str:
    """A line that explains the marks."""
    how = f"{TESTS[table.test]}, p < {table.level:g}{' by Holm' if table.corrected else ''}"
    marks = f"against {table.baseline}, and its calibrators against none, ▲ significantly better, ▼ worse ({how})"
    last = "; under it the figure of a paper, and ours minus it" if _has_published(table) else ""
    return f"mean ± sd over seeds; {marks}; bold: {BOLD[bold]}{last}"


def title(table: Table) -> str:
    """The point of the table on the other axes."""
    plain = [str(table.point[name]) for name in ("data", "network", "split")]
    rest = [f"{name} {value}" for name, value in table.point.items() if name not in ("data", "network", "split")]
    return ", ".join([*plain, *rest])


Row = tuple[str, str, list[Text]]  # method, calibrator, cells


def grids(table: Table, bold: Bold = "best", *, width: int = 80) -> list[Grid]:
    """Tables for the terminal, each with as many metrics as its width allows; `legend` explains the marks."""
    heads = [heading(metric).replace(" ", "\n", 1) for metric in table.metrics]
    rows = [
        (line.method, line.calibrator, [_text(metric, line, bold, table.seeds) for metric in table.metrics])
        for line in table.lines
    ]
    return _abreast(title(table), heads, rows, width)


def _abreast(title: str, heads: list[str], rows: list[Row], width: int) -> list[Grid]:
    """Columns side by side, in as many grids as it takes; in each the method above its calibrators."""
    names = [len(method) for method, _, _ in rows] + [len(calibrator) + 2 for _, calibrator, _ in rows]
    name = min(max(NAME, *names), LONGEST)
    widths = [
        GAP + max(len(part) for text in [head, *(cells[j].plain for *_, cells in rows)] for part in text.split("\n"))
        for j, head in enumerate(heads)
    ]
    grids: list[Grid] = []
    for columns in _packed(widths, width - name - EDGES):
        found = Grid(box=SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left")
        found.add_column("method\n  calibrator", overflow="fold", min_width=name, max_width=name)
        for j in columns:
            found.add_column(heads[j], justify="right", no_wrap=True)
        last = ""
        for method, calibrator, cells in rows:
            if method != last:
                found.add_section()
                found.add_row(Text(method, "bold"))
            found.add_row(f"  {calibrator}", *(cells[j] for j in columns))
            last = method
        grids.append(found)
    return grids


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


def _text(metric: str, line: Line, bold: Bold, seeds: int) -> Text:
    """The mean with its mark, under it the standard deviation and, if there is one, the published figure."""
    cell = line.cells.get(metric)
    if cell is None:
        return Text("–", "dim")
    mean, sign, sd = number(metric, cell).partition("±")
    color = {"better": "green", "worse": "red"}.get(cell.word, "")
    shown = Text(mean + (MARKS[cell.word] or " "), f"{'bold ' if _emphasized(cell, bold) else ''}{color}".strip())
    if sd:
        shown.append(f"\n{sign}{sd} ", "dim not bold")
    if cell.summary.n < seeds:
        shown.append(f"\n{_of_fewer(cell, seeds)} ", "yellow not bold")
    for part in printed(metric, cell).split():
        shown.append(f"\n{part} ", "blue not bold")
    return shown


def _of_fewer(cell: Cell, seeds: int) -> str:
    return f"n={cell.summary.n}" if cell.summary.n < seeds else ""


def _emphasized(cell: Cell, bold: Bold) -> bool:
    return cell.best if bold == "best" else cell.word == "worse"


def _has_published(table: Table) -> bool:
    return any(cell.published for line in table.lines for cell in line.cells.values())


def ranks(tables: list[Table], *, width: int = 80) -> list[Grid]:
    """Tables for the terminal of the mean rank of each method over several tables."""
    places = mean_ranks(tables)
    metrics = [metric for metric in tables[0].metrics if all(metric in ranks for ranks in places.values())]
    rows = [(*pair, [Text(f"{place[metric]:.1f}") for metric in metrics]) for pair, place in places.items()]
    return _abreast(f"mean rank in {len(tables)} tables, 1 the best", metrics, rows, width)


def markdown(table: Table, bold: Bold = "best") -> str:
    """A Markdown table with its title and legend."""
    head = ["method", "calibrator", *map(heading, table.metrics)]
    lines = [f"**{title(table)}**", "", _piped(head), _piped(["---", "---", *("---:" for _ in table.metrics)])]
    for line in table.lines:
        cells = [_plain(metric, line, "**", "**", "<br>", bold, table.seeds) for metric in table.metrics]
        lines.append(_piped([line.method, line.calibrator, *cells]))
    return "\n".join([*lines, "", legend(table, bold)]) + "\n"


def _piped(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def _plain(metric: str, line: Line, before: str, after: str, newline: str, bold: Bold, seeds: int) -> str:
    cell = line.cells.get(metric)
    if cell is None:
        return "–"
    shown = number(metric, cell)
    marked = f"{before}{shown}{after}" if _emphasized(cell, bold) else shown
    few = _of_fewer(cell, seeds)
    mark = (f" {MARKS[cell.word]}" if cell.word else "") + (f" ({few})" if few else "")
    return f"{marked}{mark}{newline}{printed(metric, cell)}" if cell.published else marked + mark


LATEX = {
    "_": r"\_",
    "%": r"\%",
    "#": r"\#",
    "&": r"\&",
    "±": r"$\pm$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "▲": r"$\blacktriangle$",
    "▼": r"$\blacktriangledown$",
    "‰": r"\textperthousand{}",
    "–": "--",
}


def latex(table: Table, bold: Bold = "best") -> str:
    """A booktabs table under a comment with its title and legend; needs the packages booktabs and amssymb."""
    head = [_escaped(cell) for cell in ("method", "calibrator", *map(heading, table.metrics))]
    rows = []
    for line in table.lines:
        cells = [_escaped(line.method), _escaped(line.calibrator)]
        cells += [_latex_cell(metric, line, bold, table.seeds) for metric in table.metrics]
        rows.append(" & ".join(cells) + r" \\")
    body = "\n".join(rows)
    return (
        f"% {title(table)}\n% {legend(table, bold)}\n"
        f"\\begin{{tabular}}{{ll{'r' * len(table.metrics)}}}\n\\toprule\n{' & '.join(head)} \\\\\n\\midrule\n"
        f"{body}\n\\bottomrule\n\\end{{tabular}}\n"
    )


def _latex_cell(metric: str, line: Line, bold: Bold, seeds: int) -> str:
    shown = _escaped(_plain(metric, line, "\x01", "\x02", "\x03", bold, seeds))
    ours, _, paper = shown.replace("\x01", r"\textbf{").replace("\x02", "}").partition("\x03")
    return rf"\begin{{tabular}}[t]{{@{{}}r@{{}}}}{ours} \\ {paper}\end{{tabular}}" if paper else ours


def _escaped(text: str) -> str:
    for sign, code in LATEX.items():
        text = text.replace(sign, code)
    return text


def as_csv(tables: list[Table]) -> str:
    """All cells in natural units, one a line: mean, sd, sem, n, p-value against the baseline, published figure."""
    out = StringIO()
    writer = csv.writer(out)
    axes = list(tables[0].point) if tables else []
    ours = ["mean", "sd", "sem", "n", "p_value", "against_baseline"]
    papers = ["published", "published_sd", "difference", "paper", "table"]
    writer.writerow([*axes, "method", "calibrator", "metric", *ours, *papers])
    for table in tables:
        for line in table.lines:
            for metric, cell in line.cells.items():
                s = cell.summary
                figures = [s.mean, s.sd, s.sem, s.n, cell.p_value, cell.word]
                p = cell.published
                paper = [None] * 5 if p is None else [p.mean, p.sd, cell.difference, p.paper, p.table]
                writer.writerow([*table.point.values(), line.method, line.calibrator, metric, *figures, *paper])
    return out.getvalue()
