"""What decides how a run goes, as plain data: written to run.json, and compared before a run is resumed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import torch
from torch import nn

from assay.data import Samples, Splits


def described(value: object) -> Any:
    """Plain data that tell one value from another: of functions the name and all that was given to them.

    >>> from assay.losses import focal
    >>> described(partial(focal, gamma=5.0))
    {'function': 'assay.losses._focal.focal', 'gamma': 5.0, 'detach_weight': False}
    """
    match value:
        case None | bool() | int() | float() | str():
            return value
        case Mapping():
            return {str(key): described(item) for key, item in value.items()}
        case list() | tuple():
            return [described(item) for item in value]
        case partial():
            given = described(dict(enumerate(value.args)) | value.keywords)
            return _called(described(value.func), given)
        case FunctionType():
            held = dict(
                zip(value.__code__.co_freevars, (c.cell_contents for c in value.__closure__ or ()), strict=True)
            )
            return _called(_named(value), described((value.__kwdefaults__ or {}) | held))
        case type() | BuiltinFunctionType() | MethodType():
            return _named(value)
        case _ if is_dataclass(value):
            return {field.name: described(getattr(value, field.name)) for field in fields(value)}
        case _:
            return _named(type(value))


def _called(function: str | dict[str, Any], given: dict[str, Any]) -> str | dict[str, Any]:
    inner = {"function": function} if isinstance(function, str) else function
    return inner | given if given else function


def _named(value: Any) -> str:
    return f"{value.__module__}.{value.__qualname__}"


def described_samples(samples: Samples) -> dict[str, Any]:
    """How many, and which."""
    which = sha256(samples.index.numpy().tobytes() + samples.y.numpy().tobytes()).hexdigest()
    return {"samples": len(samples), "which": which[:16]}


def described_splits(splits: Splits) -> dict[str, Any]:
    """Number of classes, and the samples of each split."""
    parts = {name: described_samples(getattr(splits, name)) for name in ("train", "held_out", "test")}
    return {"classes": splits.train.n_classes, **parts}


def described_network(network: nn.Module) -> dict[str, Any]:
    """Its type and the number of its weights."""
    return {"type": _named(type(network)), "weights": sum(p.numel() for p in network.parameters())}


@cache
def versions() -> dict[str, str]:
    """Of what the numbers of a run depend on besides its configuration."""
    from importlib.metadata import version
    from platform import python_version

    packages = {name: version(name) for name in ("assay-ml", "numpy", "lightning")}
    return {"python": python_version(), "torch": torch.__version__, **packages, **_commit()}


def _commit() -> dict[str, str]:
    """Of the package, where it is run from a checkout; read from git's own files, which takes no process."""
    git = Path(__file__).parents[2] / ".git"
    try:
        head = (git / "HEAD").read_text().strip()
        branch = head.removeprefix("ref: ")
        return {"commit": head if branch == head else (git / branch).read_text().strip()}
    except OSError:
        return {}


def differences(there: Mapping[str, Any], here: Mapping[str, Any], at: str = "") -> list[str]:
    """Where two configurations differ, as `recipe.epochs is 20 there and 30 here`."""
    found = []
    for key in dict.fromkeys([*there, *here]):
        a, b = there.get(key), here.get(key)
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            found += differences(a, b, f"{at}{key}.")
        elif a != b:
            found.append(f"{at}{key} is {a} there and {b} here")
    return found
