"""The examples run, in seconds, and end with a network that has learned."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.mark.parametrize("name", ["bare_loop", "lightning_loop"])
def test_loops_of_others_take_the_pieces(name: str):
    run = subprocess.run([sys.executable, str(EXAMPLES / f"{name}.py")], capture_output=True, text=True, check=True)
    found = ast.literal_eval(run.stdout.splitlines()[-1])
    assert found["accuracy"] > 0.9
    assert found["ece"] < 0.2
