"""The package imports downward only, and little of it is paid for at import."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "assay"
LAYERS = [
    "arrays",
    "compiled names",
    "reducing",
    "predictions",
    "files scores metrics losses optim batch",
    "maps",
    "auditing calibrators selective objectives",
    "comparing",
    "deploy data networks examples published",
    "training",
    "confidnet recipes",
    "study",
    "report",
    "cli_progress cli_report cli_train",
    "cli_correct cli_study",
    "cli",
    "__main__",
]
RANK = {name: i for i, layer in enumerate(LAYERS) for name in layer.split()}
LAZY = ("pyarrow", "scipy", "sklearn", "matplotlib", "lightning", "ray", "onnx")


def modules(tree: ast.AST, package: list[str]) -> set[str]:
    """Top-level parts of the package that a module imports: `import x.y`, `from x import y` and relative forms."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            name = ".".join([*base, *([node.module] if node.module else [])])
            found |= {f"{name}.{alias.name}" for alias in node.names}
    return {name.split(".")[1] for name in found if name.startswith("assay.")}


@pytest.mark.parametrize("file", sorted(ROOT.rglob("*.py")), ids=lambda file: str(file.relative_to(ROOT)))
def test_imports_point_down(file):
    parts = file.relative_to(ROOT.parent).with_suffix("").parts
    if len(parts) == 2 and parts[1] == "__init__":
        return
    here = parts[1]
    for there in modules(ast.parse(file.read_text()), list(parts[:-1])):
        assert here == there or there not in RANK or RANK[there] < RANK[here], f"{here} imports {there}"
        assert here in RANK, f"{here} has no layer"


def test_the_layer_test_reads_all_forms():
    code = (
        "import assay.cli\nfrom assay import report\nfrom ..study import x\nfrom . import y\nfrom assay.maps import z"
    )
    assert modules(ast.parse(code), ["assay", "metrics"]) == {"cli", "report", "study", "maps", "metrics"}


def test_heavy_packages_are_not_imported_with_assay():
    code = f"import sys, assay; print([name for name in {LAZY} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
