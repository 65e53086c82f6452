"""Pages: results become the data of a template, never its markup."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from assay import __version__
from assay._core.writing import replacing
from assay.auditing import Audit, audit
from assay.boards import Board, BoardLine
from assay.comparing import Comparison
from assay.metrics import Summary, Tables
from assay.predictions import Outcomes, Predictions
from assay.report.jsons import jsonable
from assay.report.page import _tables
from assay.report.page._content import Content, curves, decisions, positive, separation
from assay.report.page._mistakes import mistakes
from assay.report.page._thresholds import steps
from assay.report.summaries import exactness_of, note
from assay.report.terminal import pairing
from assay.side_by_side import Pair
from assay.thresholds import Threshold

if TYPE_CHECKING:
    from assay.study import Run, Study, StudyTable

Read = Predictions | Outcomes | Summary
TEMPLATES = files("assay.report.page")
SCRIPTS = ("table.js", "charts.js", "page.js")  # of every page
OF = {
    "audit": ("audit.js",),
    "board": ("board.js",),
    "claims": ("claims.js",),
    "compare": ("compare.js",),
    "study": ("study_charts.js", "study.js"),
}
# Nothing inside a script element may look like its end, whatever names and groups contain.
HARMLESS = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def audit_page(
    predictions: Mapping[str, Read],
    audits: dict[str, Audit],
    file: Path,
    pairs: Sequence[Pair] = (),
    *,
    commands: dict[str, str] | None = None,
    show: dict[str, Callable[[int], str]] | None = None,
) -> None:
    """Write the audits of one or several models, both by the name of the model, as one page.

    Thresholds are chosen on these samples: their guarantee holds if model and map were fitted on others. `commands`
    are those that choose a threshold for a model, `show` gives the text or picture of a row. Of summaries the page
    shows what does not need the rows, and how exact it is.
    """
    content: Content = {
        "models": [
            _model(name, rows, audits[name], (commands or {}).get(name, ""), (show or {}).get(name))
            for name, rows in predictions.items()
        ],
        "overview": _tables.as_data(_tables.models(audits)),
        "pairs": [f"{pair}." for pair in pairs],
    }
    _write(file, "Confidence audit: " + ", ".join(predictions), "audit", content)


def threshold_page(name: str, predictions: Read, chosen: Threshold, file: Path, *, command: str = "") -> None:
    """Write a threshold and what it does to the rows that it was chosen on: the page of an audit, at the threshold.

    `command` is the one that chooses a threshold for these rows.
    """
    found = audit(predictions)
    model = _model(name, predictions, found, command)
    t = found.tables or Tables(predictions)
    model |= {"verdict": [f"{str(chosen)[0].upper()}{str(chosen)[1:]}.", str(found)]}
    model |= {"decisions": decisions(t, [chosen, *_tables.promised(t)])}
    content: Content = {"models": [model], "overview": _tables.as_data(_tables.models({name: found}))}
    _write(file, f"Threshold: {name}", "audit", content | {"heading": "Which answers can be accepted?"})


def correction_page(
    before: Predictions | Outcomes,
    after: tuple[str, Predictions | Outcomes],
    comparison: Comparison,
    file: Path,
    *,
    next_command: str = "",
) -> None:
    """Write what a calibrator, whose name comes with the corrected rows, does to the same rows."""
    name, corrected = after
    content = _compared({"before": before, f"after {name}": corrected}, comparison)
    own: Content = {"heading": "What does the correction change?", "pairing": "", "next": next_command}
    _write(file, f"Confidence corrected: {name}", "compare", content | own)


def compare_page(predictions: Mapping[str, Read], comparison: Comparison, file: Path) -> None:
    """Write the comparison of two models, the second against the first, as one page."""
    content = _compared(predictions, comparison)
    _write(file, "Confidence compared: " + " and ".join(predictions), "compare", content)


def _compared(predictions: Mapping[str, Read], comparison: Comparison) -> Content:
    read = comparison.tables or tuple(map(Tables, predictions.values()))
    return {
        "models": [{"name": name} | curves(t) for name, t in zip(predictions, read, strict=True)],
        "n": comparison.n,
        "pairing": f" · {pairing(comparison)}" if pairing(comparison) else "",
        "next": "",
        "verdicts": [asdict(verdict) | {"reason": verdict.reason} for verdict in comparison.verdicts],
        "exactness": exactness_of(predictions, comparison.differences),
        "differences": _tables.as_data(_tables.differences(comparison)),
        "coverages": _tables.as_data(_tables.coverages(list(zip(predictions, read, strict=True)))),
        "flipped": _tables.as_data(_tables.flipped(*read)),
        "flips": flips(*read),
    }


def board_page(board: Board, file: Path) -> None:
    """Write a board of many models as one page: a table to sort and filter, and a map that follows the filter."""
    from assay.report import boards  # uses the tables of this package

    models = len({line.model for line in board.lines})
    detail = boards.categories(board)
    content: Content = {
        "size": f"{models} models, {len(board.lines)} lines of one confidence each",
        "verdict": f"{board}.",
        "note": boards.NOTE,
        "board": _tables.as_data(boards.table(board)),
        "categories": _tables.as_data(detail) if detail else None,
        "points": [_point(line) for line in board.lines],
    }
    _write(file, "Confidence of many models", "board", content)


def _point(line: BoardLine) -> Content:
    cells, after = line.measured.cells, line.measured.corrected
    there = {"ece": cells["ece"].value, "auroc": cells["auroc"].value}
    moved = None if after is None else {"ece": after.ece.value, "auroc": after.auroc}
    return {"model": line.model, "confidence": line.confidence, **there, "after": moved}


def write_claims(verdict: str, note: str, claims: _tables.PageTable, regimes: Sequence[Content], file: Path) -> None:
    """Write verdicts on claims as one page; `assay.claims.claims_page` says what a regime has."""
    content: Content = {
        "verdict": verdict,
        "note": note,
        "claims": _tables.as_data(claims),
        "regimes": regimes,
    }
    _write(file, "Claims put to the test", "claims", content)


def study_page(study: Study, runs: Sequence[Run], root: Path, tables: list[StudyTable], file: Path) -> None:
    """Write the results of a study as one page; `tables` are made from the rows of its runs under `root`.

    Links to the runs are relative to the page, so that both can be moved together.
    """
    from assay.report.page._study import study_content  # imports pydantic and pyarrow

    _write(file, f"Study: {study.name}", "study", study_content(study, runs, root, tables, file))


def _model(
    name: str,
    predictions: Read,
    found: Audit,
    command: str = "",
    show: Callable[[int], str] | None = None,
) -> Content:
    t = found.tables or Tables(predictions)
    promises, counted = _tables.promised(t), steps(t)
    of_rows = t.summary is None
    shown: Content = {
        "name": name,
        "size": f"{found.n:,} samples, {found.n_wrong:,} errors",
        "verdict": [str(found), _tables.promise_in_words(promises, counted)],
        "exactness": "" if of_rows else note(found),
        "tiles": _tables.tiles(found, promises),
        "metrics": _tables.as_data(_tables.metrics(found)),
        "promises": _tables.as_data(_tables.promises(promises, counted)),
        "groups": _tables.as_data(_tables.groups(found)) if found.groups else None,
        "groupPicture": _tables.picture(found),
        "mistakes": _tables.as_data(_tables.mistakes_table(mistakes(t, show))),
        "command": command or (f"assay threshold {shlex.quote(name)}" if of_rows else ""),
        "decisions": decisions(t, promises),
        "classOne": found.positive.name if found.positive else "",
    }
    return shown | curves(t) | positive(t) | separation(t.ranking)


def flips(a: Tables, b: Tables) -> Content:
    """How many samples only one of two models answers rightly."""
    if a.summary is not None:
        return {"better": 0, "worse": 0}
    x, y = a.outcomes.correct, b.outcomes.correct
    return {"better": int((~x & y).sum()), "worse": int((x & ~y).sum())}


def _write(file: Path, title: str, kind: str, content: Content) -> None:
    content = {"glossary": _tables.glossary(), **content}
    data = json.dumps(jsonable(content), separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    page = Template(_text("page.html")).substitute(
        title=escape(title),
        version=__version__,
        style=_text("page.css"),
        body=_text(f"{kind}.html"),
        data=data.translate(HARMLESS),
        plotly=_text("plotly-basic.min.js"),
        script="\n".join(_text(name) for name in (*SCRIPTS, *OF[kind])),
    )
    with replacing(file) as stream:
        stream.write(page.encode(errors="replace"))  # a name may contain surrogates


def _text(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")
