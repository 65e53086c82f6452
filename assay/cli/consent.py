"""The question whether the code that a study names may run; the answer is remembered for exactly that code."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from assay._core.arrays import InputError
from assay._core.own_code import OwnCode, located
from assay._core.writing import replacing
from assay.cli.output import line
from assay.study import Study, own_code


def agreed(study: Study, file: Path, *, allow_code: bool) -> bool:
    """Whether the study's own code may run: by the flag, by an earlier answer for the same code, or by one now."""
    if allow_code:
        return True
    known = _remembered()
    named = [located(name, study.places) for name in own_code(study)]
    new = [code for code in named if _key(code) not in known]
    if new:
        _ask(file, new)
        _remember([*known, *map(_key, new)])
    return True


def _ask(file: Path, code: Sequence[OwnCode]) -> None:
    listed = "; ".join(map(str, code))
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise InputError(f"{file} runs code: {listed}. Read it, and agree to it by --allow-code")
    shown = [line(str(each)) for each in code]
    print(f"{line(str(file))} runs code with all your rights:", *shown, sep="\n  ", file=sys.stderr)
    print("Run it, now and until it changes? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise InputError(f"{file}: its code was not agreed to")


def _key(code: OwnCode) -> str:
    return f"{code.name} {code.digest}"


def _file() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "assay" / "allowed_code.json"


def _remembered() -> list[str]:
    try:
        return [str(key) for key in json.loads(_file().read_text())]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError, RecursionError) as problem:
        raise InputError(f"{_file()}: cannot be read: {problem}; delete it to be asked again") from problem


def _remember(keys: Sequence[str]) -> None:
    _file().parent.mkdir(parents=True, exist_ok=True)
    with replacing(_file()) as stream:
        stream.write(json.dumps(keys, indent=1).encode())
