"""Text from files, made safe at the place where it leaves: in file names, csv, LaTeX and on the terminal."""

from __future__ import annotations

import re
from hashlib import sha256
from unicodedata import category

UNSAFE = re.compile(r"^\.|[^][A-Za-z0-9_.,=@+-]")
FORMULA = re.compile(r"'*[=+\-@\t\r]")  # with which a cell begins that a spreadsheet may calculate
LONGEST = 160  # characters of a name, so that prefixes and endings fit into 255 bytes
LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "_": r"\_",
    "%": r"\%",
    "#": r"\#",
    "&": r"\&",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "±": r"$\pm$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "▲": r"$\blacktriangle$",
    "▼": r"$\blacktriangledown$",
    "‰": r"$\times 10^3$",  # plain LaTeX has no sign for it
    "–": "--",
}


def file_name(text: str) -> str:
    """The text as one part of a path: letters, digits and _.,=@+-[] as they are; else a digest keeps names apart.

    >>> file_name("focal,gamma=5.0"), file_name("../victim")
    ('focal,gamma=5.0', '_._victim~18d36a5a')
    """
    safe = UNSAFE.sub("_", text)[:LONGEST]
    return safe if text and safe == text else f"{safe}~{sha256(text.encode(errors='replace')).hexdigest()[:8]}"


def csv_cell(text: str) -> str:
    """The text as a cell that no spreadsheet takes for a formula; `from_csv_cell` gives the text back.

    >>> csv_cell("=1+1"), csv_cell("plain"), from_csv_cell("'=1+1")
    ("'=1+1", 'plain', '=1+1')
    """
    return f"'{text}" if FORMULA.match(text) else text


def from_csv_cell(cell: str) -> str:
    """The text that `csv_cell` made the cell of."""
    return cell[1:] if cell.startswith("'") and FORMULA.match(cell) else cell


def printable(text: str) -> str:
    """The text in one line, without signs that control a terminal or turn the direction of writing.

    >>> printable("a\\x1b[2Jb")
    'a\\\\x1b[2Jb'
    """
    return "".join(sign if category(sign)[0] not in "CZ" or sign == " " else _coded(sign) for sign in text)


def _coded(sign: str) -> str:
    return " " if category(sign) == "Zs" else sign.encode("unicode_escape").decode()


def latex(text: str) -> str:
    """The text in LaTeX, where it is text and no command.

    >>> latex(r"\\input{x}")
    '\\\\textbackslash{}input\\\\{x\\\\}'
    """
    return "".join(LATEX.get(sign, sign) for sign in printable(text))
