"""Compile `assay/_core/loops.c` where there is a C compiler; where there is none the package does without.

ASSAY_PURE=1 builds a wheel without the compiled loops; CC names another compiler.
"""

import os
import shlex
import subprocess
import sysconfig
from pathlib import Path
from runpy import run_path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# Without contraction digits are the same on every processor; without traps conditions become masks.
FLAGS = ["-O3", "-fno-trapping-math", "-ffp-contract=off", "-fPIC", "-shared"]


class Compile(BuildHookInterface):
    """Puts the library beside its source, under the name by which `assay._core.loops` looks for it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        folder = Path(self.root, "assay", "_core")
        library = run_path(str(folder / "library.py"))["library"](folder)
        if os.environ.get("ASSAY_PURE") == "1" or not self._compile(folder / "loops.c", library):
            return
        for other in {*folder.glob("loops-*")} - {library}:
            other.unlink(missing_ok=True)
        build_data["artifacts"].append(f"assay/_core/{library.name}")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"

    def _compile(self, source: Path, library: Path) -> bool:
        unfinished = library.with_suffix(f".{os.getpid()}")
        try:
            command = [*shlex.split(os.environ.get("CC") or "cc"), *FLAGS, str(source), "-o", str(unfinished)]
            subprocess.run(command, check=True, capture_output=True, text=True, errors="replace")
            unfinished.replace(library)
        except (OSError, ValueError, subprocess.CalledProcessError) as error:
            why = getattr(error, "stderr", None) or error
            self.app.display_warning(f"assay is installed without its compiled loops, and measures slower: {why}")
            return False
        finally:
            unfinished.unlink(missing_ok=True)
        return True
