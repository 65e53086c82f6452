"""A user's own code, named package.module:name: found without importing it, imported by its declared signature.

Reading a file never imports code that the file names. Commands that train import it after the user has agreed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from importlib.machinery import ModuleSpec
from inspect import signature
from pathlib import Path
from typing import Any

from assay._core.arrays import InputError

NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")  # package.module:name


@dataclass(frozen=True)
class OwnCode:
    """A callable that a study names, and the file that importing it executes."""

    name: str
    file: Path
    digest: str  # of the file and the __init__.py of the packages around it

    def __str__(self) -> str:
        return f"{self.name} in {self.file}, sha256 {self.digest[:16]}"


def is_own(name: str) -> bool:
    """Whether a name in a study or on the command line is of a user's own code."""
    return ":" in name


def located(name: str) -> OwnCode:
    """The file of a user's own code, found without importing anything.

    >>> located("email.charset:add_alias").file.name
    'charset.py'
    """
    if not NAME.fullmatch(name):
        raise InputError(f"{name!r} names no code; your own is package.module:name")
    files: list[Path] = []
    path: Sequence[str] | None = None
    parts = name.partition(":")[0].split(".")
    for i in range(len(parts)):
        spec = _spec(".".join(parts[: i + 1]), path)
        if spec is None or ((path := spec.submodule_search_locations) is None and i < len(parts) - 1):
            raise InputError(f"{name}: there is no module {'.'.join(parts[: i + 1])}")
        if spec.has_location and spec.origin:
            files.append(Path(spec.origin))
    if not (spec and spec.has_location and files):
        raise InputError(f"{name}: {'.'.join(parts)} is part of Python itself; your own code is in a file of yours")
    return OwnCode(name, files[-1], sha256(b"".join(map(_content, files))).hexdigest())


def import_own(kind: str, name: str, parameters: Sequence[str]) -> Any:
    """Import a user's own callable, whose first parameters must have these names."""
    if not NAME.fullmatch(name):
        raise InputError(f"{kind} {name!r}: your own is package.module:name")
    module, _, attribute = name.partition(":")
    try:
        found = getattr(import_module(module), attribute)
    except Exception as problem:  # a user's module may raise anything
        raise InputError(f"{kind} '{name}' cannot be imported: {problem}") from problem
    _check_signature(kind, name, found, parameters)
    return found


def _check_signature(kind: str, name: str, found: object, parameters: Sequence[str]) -> None:
    """Refuse what was not written for this: any function of any library can be named."""
    wanted = f"it must be a function ({', '.join(parameters)}) with these names"
    if not callable(found):
        raise InputError(f"{kind} '{name}' is a {type(found).__name__}; {wanted}")
    try:
        has = list(signature(found).parameters)
    except (ValueError, TypeError) as problem:  # some functions in C do not say
        raise InputError(f"{kind} '{name}' does not say its parameters; {wanted}") from problem
    if has[: len(parameters)] != list(parameters):
        raise InputError(f"{kind} '{name}' has the parameters ({', '.join(has)}); {wanted}")


def _spec(module: str, path: Sequence[str] | None) -> ModuleSpec | None:
    """Where a module is. `importlib.util.find_spec` would import the packages around it."""
    finders = (finder for finder in sys.meta_path if hasattr(finder, "find_spec"))
    return next((spec for finder in finders if (spec := finder.find_spec(module, path)) is not None), None)


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as problem:
        raise InputError(f"{file}: cannot be read: {problem.strerror or problem}") from problem
