"""Install the lowest versions that pyproject.toml allows and the registry has; `make verify` then tests the core.

`python tests/lowest.py` prints them as requirements, such as numpy==1.26.0.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

BOUND = re.compile(r"([\w.-]+)>=([\d.]+)")


def parsed(version: str) -> tuple[int, ...]:
    """A version to compare; trailing zeros do not count."""
    numbers = [int(part) for part in version.split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def available(package: str) -> list[str]:
    """The final versions that the registry has."""
    asked = [sys.executable, "-m", "pip", "index", "versions", package]
    told = subprocess.run(asked, check=True, capture_output=True, text=True).stdout
    [listed] = re.findall(r"Available versions: (.*)", told)
    return [version for version in listed.split(", ") if re.fullmatch(r"[\d.]+", version)]


def lowest(requirement: str) -> str:
    """The lowest version that a requirement allows, such as numpy==1.26.0 for numpy>=1.26."""
    package, bound = BOUND.fullmatch(requirement).groups()  # type: ignore[union-attr]  # all are written so
    allowed = [version for version in available(package) if parsed(version) >= parsed(bound)]
    return f"{package}=={min(allowed, key=parsed)}"


def main() -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    print(*map(lowest, project["dependencies"]), sep="\n")


if __name__ == "__main__":
    main()
