"""The command `assay list`."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from importlib.resources import files
from typing import Literal

from assay._core.own_code import offered
from assay.cli.output import show
from assay.report import terminal

KIND = {
    "metrics": "metric",
    "calibrators": "calibrator",
    "scores": "score",
    "recipes": "recipe",
    "networks": "network",
    "data": "data set",
}
What = Literal["metrics", "calibrators", "scores", "recipes", "networks", "data"]


def list_command(what: What) -> None:
    """List what there is, a line each.

    Parameters
    ----------
    what
        What to list.
    """
    show(terminal.metrics_view() if what == "metrics" else terminal.lines_view(what, lines(what)))


def lines(what: What) -> dict[str, str]:
    """The names of a kind, each with its line; nothing that needs torch, nor any other package, is imported."""
    packages = offered(KIND[what])
    return _own_lines(what) | {name: f"From an installed package: {code}." for name, code in packages.items()}


def _own_lines(what: What) -> dict[str, str]:
    if what == "recipes":
        from assay.nn.names import ABOUT

        return ABOUT
    if what == "networks":
        return _lines_in_source("networks", "NETWORKS")
    if what == "data":
        return _lines_in_source("data", "DATA")
    return _scores() if what == "scores" else _calibrators()


def _scores() -> dict[str, str]:
    from assay.scores import SCORES
    from assay.study import LEARNED

    return _first_lines({**SCORES, **LEARNED})


def _calibrators() -> dict[str, str]:
    from assay.calibrators import CALIBRATORS
    from assay.study import FITTED, FIXED, ON_TEST

    found = _first_lines({**FITTED, **FIXED, **ON_TEST})
    return {name: line if name in CALIBRATORS else f"{line} In studies only." for name, line in found.items()}


def _first_lines(table: Mapping[str, object]) -> dict[str, str]:
    return {name: (entry.__doc__ or "").splitlines()[0] for name, entry in table.items()}


def _lines_in_source(package: str, table: str) -> dict[str, str]:
    """The first docstring line of each function in a table of assay.nn.<package>, read from its source."""
    folder = files("assay.nn") / package
    tree = ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    module_of = {alias.name: (node.module or "").rpartition(".")[2] for node in imports for alias in node.names}
    [assigned] = [node for node in tree.body if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == table]
    [entries] = [node for node in ast.walk(assigned) if isinstance(node, ast.Dict)]
    names = {
        ast.literal_eval(key): ast.unparse(value)
        for key, value in zip(entries.keys, entries.values, strict=True)
        if key
    }
    sources = {
        module: ast.parse((folder / f"{module}.py").read_text(encoding="utf-8"))
        for module in {module_of[f] for f in names.values()}
    }
    return {name: _first_line(sources[module_of[function]], function) for name, function in names.items()}


def _first_line(tree: ast.Module, function: str) -> str:
    [found] = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == function]
    return (ast.get_docstring(found) or "").splitlines()[0]
