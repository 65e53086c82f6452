"""A user's own code, named package.module:name: found without importing it, imported by its declared signature.

Reading a file never imports code that the file names. Commands that train import it after the user has agreed. Modules
are looked for where Python looks, then in the working directory, then in the folder of the study.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from inspect import signature
from pathlib import Path
from typing import Any

from assay._core.arrays import InputError

NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")  # package.module:name


@dataclass(frozen=True)
class Kind:
    """A kind of code that users can write themselves."""

    own: str  # what messages call the function
    parameters: tuple[str, ...]  # its first parameters; others are its hyper-parameters
    group: str  # of entry points, by which an installed package offers functions of this kind


KINDS = {
    "data set": Kind("loader", ("folder", "cut"), "assay.data"),
    "network": Kind("factory", ("n_classes",), "assay.networks"),
    "recipe": Kind("recipe", ("baseline",), "assay.recipes"),
    "loss": Kind("loss", ("logits", "labels"), "assay.losses"),
    "objective": Kind("objective", ("task",), "assay.objectives"),
    "optimizer": Kind("optimizer", ("network",), "assay.optimizers"),
    "calibrator": Kind("function", ("held_out",), "assay.calibrators"),
    "score": Kind("function", ("predictions",), "assay.scores"),
    "metric": Kind("function", ("predictions",), "assay.metrics"),
}
PLACES: list[Path] = []
"""Folders of studies whose code the user has agreed to."""


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


def code_of(kind: str, name: str) -> str | None:
    """The code behind a name, the user's own or an installed package's, as package.module:name; None if there is none.

    >>> code_of("recipe", "loss=mine:smooth"), code_of("network", "mine:net"), code_of("network", "mlp")
    ('mine:smooth', 'mine:net', None)
    """
    part, equals, function = name.partition("=")
    kind, name = (part, function) if equals else (kind, name)
    return name if is_own(name) else entry_point(kind, name)


def located(name: str, places: Sequence[Path] = ()) -> OwnCode:
    """The file of a user's own code, found without importing anything; `places` are looked at last.

    >>> located("email.charset:add_alias").file.name
    'charset.py'
    """
    if not NAME.fullmatch(name):
        raise InputError(f"{name!r} names no code; your own is package.module:name")
    files: list[Path] = []
    path: Sequence[str] | None = None
    parts = name.partition(":")[0].split(".")
    for i in range(len(parts)):
        spec = _spec(".".join(parts[: i + 1]), path) or (
            PathFinder.find_spec(parts[0], [str(place) for place in _folders(places)]) if i == 0 else None
        )
        if spec is None or ((path := spec.submodule_search_locations) is None and i < len(parts) - 1):
            raise InputError(f"{name}: there is no module {'.'.join(parts[: i + 1])}")
        if spec.has_location and spec.origin:
            files.append(Path(spec.origin))
    if not (spec and spec.has_location and files):
        raise InputError(f"{name}: {'.'.join(parts)} is part of Python itself; your own code is in a file of yours")
    return OwnCode(name, files[-1], sha256(b"".join(map(_content, files))).hexdigest())


def digests(names: Iterable[tuple[str, str]], places: Sequence[Path] = ()) -> dict[str, str]:
    """The digest of the file of each code among the names, which are given with their kinds."""
    code = dict.fromkeys(filter(None, (code_of(kind, name) for kind, name in names)))
    return {name: located(name, places).digest[:16] for name in code}


def trained_by(data: str, network: str, recipe: str, places: Sequence[Path] = ()) -> dict[str, str]:
    """What the identity of a run says of code that is not assay's; nothing if there is none."""
    found = digests([("data set", data), ("network", network), ("recipe", recipe)], places)
    return {"code": ", ".join(f"{name} {digest}" for name, digest in found.items())} if found else {}


def entry_point(kind: str, name: str) -> str | None:
    """What an installed package offers under that name, as package.module:name; nothing is imported."""
    return offered(kind).get(name) if kind in KINDS else None


def offered(kind: str) -> dict[str, str]:
    """What installed packages offer of that kind, by name, as package.module:name; nothing is imported."""
    return _entry_points(KINDS[kind].group)


@cache
def _entry_points(group: str) -> dict[str, str]:
    from importlib.metadata import entry_points

    return {point.name: point.value for point in entry_points(group=group)}


def look_in(places: Sequence[Path]) -> None:
    """From now on find code in these folders too, after all others."""
    PLACES.extend(place for place in places if place not in PLACES)


def import_own(kind: str, name: str) -> Any:
    """Import a user's own callable, whose first parameters must be those of its kind."""
    if not NAME.fullmatch(name):
        raise InputError(f"{kind} {name!r}: your own is package.module:name")
    module, _, attribute = name.partition(":")
    sys.path += [str(place) for place in _folders(PLACES) if str(place) not in sys.path]
    try:
        found = getattr(import_module(module), attribute)
    except Exception as problem:  # a user's module may raise anything
        raise InputError(f"{kind} '{name}' cannot be imported: {problem}") from problem
    _check_signature(kind, name, found, KINDS[kind].parameters)
    return found


def _folders(places: Sequence[Path]) -> list[Path]:
    return [Path.cwd(), *places]


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
