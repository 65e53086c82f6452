"""Compiles `assay/_core/loops.c` where there is a C compiler; where there is none the package does without."""

import os
import shlex
import subprocess
import sysconfig
from hashlib import sha256
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FLAGS = ["-O3", "-fno-trapping-math", "-fPIC", "-shared"]


class Compile(BuildHookInterface):
    """Puts the library beside its source, under the name by which `assay._core.loops` looks for it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        source = Path(self.root, "assay", "_core", "loops.c")
        library = source.with_name(f"loops-{sha256(source.read_bytes()).hexdigest()[:12]}.so")
        unfinished = library.with_suffix(f".{os.getpid()}")
        try:
            command = [*shlex.split(os.environ.get("CC") or "cc"), *FLAGS, str(source), "-o", str(unfinished), "-lm"]
            subprocess.run(command, check=True, capture_output=True, text=True, errors="replace")
            unfinished.replace(library)
        except (OSError, ValueError, subprocess.CalledProcessError) as error:
            why = getattr(error, "stderr", None) or error
            self.app.display_warning(f"assay is installed without its compiled loops, and measures slower: {why}")
            return
        finally:
            unfinished.unlink(missing_ok=True)
        for other in {*library.parent.glob("loops-*.so")} - {library}:
            other.unlink(missing_ok=True)
        build_data["artifacts"].append(f"assay/_core/{library.name}")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
