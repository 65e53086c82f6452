"""A study's tables in Markdown, LaTeX, CSV and for the terminal, in the units and with the marks of the papers."""

from __future__ import annotations

import csv
from io import StringIO
from math import isnan

from rich.box import SIMPLE_HEAD
from rich.table import Table as Grid
from rich.text import Text

from assay.metrics import METRICS
from assay.study import Cell, Line, Table

ARROWS = {"higher": "↑", "lower": "↓", "-": ""}
MARKS = {"better": "▲", "worse": "▼", "": ""}
SCALES = {"aurc": 1000.0, "e_aurc": 1000.0, "augrc": 1000.0, "nll": 1.0, "mean_entropy": 1.0}  # else per cent
UNITS = {1000.0: " x10³", 1.0: "", 100.0: " %"}


def scale(metric: str) -> float:
    """What a metric is multiplied by to be shown."""
    return SCALES.get(metric, 100.0)


def heading(metric: str) -> str:
    """Its name with unit and arrow."""
    return f"{metric}{UNITS[scale(metric)]} {ARROWS[METRICS[metric].better]}".strip()


def number(metric: str, cell: Cell) -> str:
    """Mean and standard deviation over seeds."""
    factor = scale(metric)
    digits = 3 if factor == 1 else 2
    mean = f"{factor * cell.summary.mean:.{digits}f}"
    return mean if isnan(cell.summary.sd) else f"{mean}±{factor * cell.summary.sd:.{digits}f}"


def title(table: Table) -> str:
    """Where on the other axes the table stands."""
    plain = [str(table.point[name]) for name in ("data", "network", "split")]
    rest = [f"{name} {value}" for name, value in table.point.items() if name not in ("data", "network", "split")]
    return ", ".join([*plain, *rest])


def grid(table: Table) -> Grid:
    """For the terminal, five metrics in 80 columns: ▲ significantly better than the baseline, ▼ worse; best bold."""
    found = Grid(box=SIMPLE_HEAD, pad_edge=False, title=title(table), title_justify="left")
    found.add_column("method\n  calibrator", no_wrap=True)
    for metric in table.metrics:
        found.add_column(heading(metric).replace(" ", "\n", 1), justify="right", no_wrap=True)
    last = ""
    for line in table.lines:
        if line.method != last:
            found.add_section()
            found.add_row(Text(line.method, "bold"))
        found.add_row(f"  {line.calibrator}", *(_text(metric, line) for metric in table.metrics))
        last = line.method
    return found


def _text(metric: str, line: Line) -> Text:
    """The mean with its mark, and under it the standard deviation."""
    cell = line.cells.get(metric)
    if cell is None:
        return Text("–", "dim")
    mean, sign, sd = number(metric, cell).partition("±")
    color = {"better": "green", "worse": "red"}.get(cell.word, "")
    shown = Text(mean + (MARKS[cell.word] or " "), f"{'bold ' if cell.best else ''}{color}".strip())
    return shown.append(f"\n{sign}{sd} ", "dim not bold") if sd else shown


def markdown(table: Table) -> str:
    """A Markdown table with its title."""
    head = ["method", "calibrator", *map(heading, table.metrics)]
    lines = [f"**{title(table)}**", "", _piped(head), _piped(["---", "---", *("---:" for _ in table.metrics)])]
    for line in table.lines:
        lines.append(_piped([line.method, line.calibrator, *(_plain(m, line, "**", "**") for m in table.metrics)]))
    return "\n".join(lines) + "\n"


def _piped(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def _plain(metric: str, line: Line, before: str, after: str) -> str:
    cell = line.cells.get(metric)
    if cell is None:
        return "–"
    shown = number(metric, cell)
    return (f"{before}{shown}{after}" if cell.best else shown) + (f" {MARKS[cell.word]}" if cell.word else "")


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
    "x10³": r"$\times 10^3$",
    "–": "--",
}


def latex(table: Table) -> str:
    """A booktabs table; needs the packages booktabs and amssymb."""
    head = [_escaped(cell) for cell in ("method", "calibrator", *map(heading, table.metrics))]
    rows = []
    for line in table.lines:
        cells = [_escaped(line.method), _escaped(line.calibrator)]
        cells += [_latex_cell(metric, line) for metric in table.metrics]
        rows.append(" & ".join(cells) + r" \\")
    body = "\n".join(rows)
    return (
        f"\\begin{{tabular}}{{ll{'r' * len(table.metrics)}}}\n\\toprule\n{' & '.join(head)} \\\\\n\\midrule\n"
        f"{body}\n\\bottomrule\n\\end{{tabular}}\n"
    )


def _latex_cell(metric: str, line: Line) -> str:
    return _escaped(_plain(metric, line, "\x01", "\x02")).replace("\x01", r"\textbf{").replace("\x02", "}")


def _escaped(text: str) -> str:
    for sign, code in LATEX.items():
        text = text.replace(sign, code)
    return text


def as_csv(tables: list[Table]) -> str:
    """All cells in natural units, one a line: mean, sd, sem, n, p-value against the baseline and what it says."""
    out = StringIO()
    writer = csv.writer(out)
    axes = list(tables[0].point) if tables else []
    writer.writerow([*axes, "method", "calibrator", "metric", "mean", "sd", "sem", "n", "p_value", "against_baseline"])
    for table in tables:
        for line in table.lines:
            for metric, cell in line.cells.items():
                s = cell.summary
                figures = [s.mean, s.sd, s.sem, s.n, cell.p_value, cell.word]
                writer.writerow([*table.point.values(), line.method, line.calibrator, metric, *figures])
    return out.getvalue()
