"""What the README shows is typed: it passes mypy --strict."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def shown(page: Path) -> str:
    """The lines of code on a page, as one module."""
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    return "\n".join(line[4:] for block in blocks for line in block.splitlines() if line.startswith((">>> ", "... ")))


@pytest.mark.long
def test_the_readme_passes_mypy_strict(tmp_path):
    (tmp_path / "readme.py").write_text(shown(ROOT / "README.md"))
    words = [sys.executable, "-m", "mypy", "--strict", "--config-file", str(ROOT / "pyproject.toml")]
    found = subprocess.run([*words, str(tmp_path / "readme.py")], capture_output=True, text=True, cwd=ROOT, check=False)
    assert found.stdout.startswith("Success"), found.stdout


def test_the_readme_shows_code():
    lines = shown(ROOT / "README.md").splitlines()
    assert "import assay, assay.examples" in lines
    assert any("choose_threshold" in line for line in lines)
