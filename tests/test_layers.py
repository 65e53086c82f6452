"""The package imports downward only, and little of it is paid for at import."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import assay

ROOT = Path(__file__).parents[1] / "assay"
LAYERS = [
    "_core.arrays _core.library",
    "_core.own_code _core.text _core.reading",
    "_core.plain _core.lookup _core.outputs _core.records _core.showing _core.variants _core.writing",
    "_core.manifest",
    "_core.loops",
    "predictions nn.names",
    "files _matching metrics",
    "grouping",
    "scores maps scale",
    "auditing calibrators thresholds",
    "boards comparing epochs examples published selective sklearn",
    "checking rechecking planning side_by_side judging",
    "nn.losses nn.optim nn.maps nn.distributed",
    "nn.objectives nn.deploy",
    "nn.data nn.networks",
    "nn.training",
    "nn.confidnet nn.recipes",
    "study",
    "report",
    "claims",
    "integrations",
    "cli",
    "__main__",
]
RANK = {name: i for i, layer in enumerate(LAYERS) for name in layer.split()}


def part(module: str) -> str:
    """The layer's name for a module of the package: two levels below `_core` and `nn`, one elsewhere."""
    names = module.split(".")[1:]
    return ".".join(names[: 2 if names[0] in ("_core", "nn") else 1])


def modules(tree: ast.AST, package: list[str]) -> set[str]:
    """Modules that a file imports, in whatever form: `from assay import audit` is an import of `assay.auditing`."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            name = ".".join([*base, *([node.module] if node.module else [])])
            found |= {f"{name}.{alias.name}" for alias in node.names}
    return {home(name) for name in found if name.startswith("assay.")}


def home(name: str) -> str:
    """The module that defines what `from assay import name` gives, or the module itself."""
    exported = name.split(".")[1]
    thing = None if part(name) in RANK else getattr(assay, exported, None)
    return str(getattr(thing, "__module__", name))


@pytest.mark.parametrize("file", sorted(ROOT.rglob("*.py")), ids=lambda file: str(file.relative_to(ROOT)))
def test_imports_point_down(file):
    parts = file.relative_to(ROOT.parent).with_suffix("").parts
    package = parts[:-1]
    if (package == ("assay",) and parts[-1] == "__init__") or parts[-2:] in (("_core", "__init__"), ("nn", "__init__")):
        return
    here = part(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    assert here in RANK, f"{here} has no layer"
    for there in sorted(map(part, modules(ast.parse(file.read_text()), list(package)))):
        if there not in (here, "__version__"):
            assert there in RANK, f"{here} imports {there}, which has no layer"
            assert RANK[there] < RANK[here], f"{here} imports {there}"


def test_the_layer_test_reads_all_forms():
    code = (
        "import assay.cli\nfrom assay import report, audit, Recipe\nfrom ..study import x\nfrom . import y\n"
        "from assay.maps import z\nfrom assay._core import arrays\nfrom assay.nn.losses import focal"
    )
    found = {part(name) for name in modules(ast.parse(code), ["assay", "metrics"])}
    expected = "cli report auditing nn.training study metrics maps _core.arrays nn.losses"
    assert found == set(expected.split())


def test_no_function_is_longer_than_a_screen():
    for file in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef):
                assert node.end_lineno - node.lineno < 80, f"{file.name}: {node.name}"


def test_torch_stays_in_its_place():
    """Outside `assay/nn` only studies import it, where they train."""
    importing = {
        part(".".join(file.relative_to(ROOT.parent).with_suffix("").parts))
        for file in ROOT.rglob("*.py")
        if re.search(r"^\s*(import|from) torch", file.read_text(), re.MULTILINE)
    }
    assert {name for name in importing if not name.startswith("nn.")} <= {"study", "integrations"}
