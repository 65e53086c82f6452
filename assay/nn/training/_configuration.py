"""The configuration of a run as plain data: written to run.json, and compared before a run is resumed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache, partial
from hashlib import sha256
from inspect import getclosurevars
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from assay.nn.data import Images, Samples, Splits

OF_IMAGES = 16  # images on disk that a digest reads


def described(value: object, within: tuple[object, ...] = ()) -> Any:
    """Plain data that distinguish one value from another: of a function, its name and all its arguments.

    A user's own function is also described by its code, an object by its attributes; `within` holds the value.

    >>> from assay.nn.losses import focal
    >>> described(partial(focal, gamma=5.0))
    {'function': 'assay.nn.losses._focal.focal', 'gamma': 5.0, 'detach_weight': False, 'reduction': 'mean', ...}
    """
    if any(value is holder for holder in within):
        return "itself"

    def inner(part: object) -> Any:
        return described(part, (*within, value))

    match value:
        case None | bool() | int() | float() | str():
            return value
        case Mapping():
            return {str(key): inner(item) for key, item in value.items()}
        case list() | tuple():
            return [inner(item) for item in value]
        case partial():
            return _called(inner(value.func), inner(dict(enumerate(value.args)) | value.keywords))
        case FunctionType():
            return _called(_named(value), inner(_given(value)) | _code(value))
        case type() | BuiltinFunctionType():
            return _named(value)
        case MethodType():
            return {"function": _named(value), "of": inner(value.__self__)}
        case Tensor():
            return {"shape": list(value.shape), "values": _digest(value)}
        case np.ndarray():
            return inner(torch.as_tensor(value))
        case _ if is_dataclass(value):
            return {field.name: inner(getattr(value, field.name)) for field in fields(value)}
        case _:
            return _called(_named(type(value)), inner(getattr(value, "__dict__", {})))


def _given(function: FunctionType) -> dict[str, Any]:
    """The defaults of a function and the variables that it captures."""
    arguments = function.__code__.co_varnames[: function.__code__.co_argcount]
    defaults = function.__defaults__ or ()
    by_place = dict(zip(arguments[len(arguments) - len(defaults) :], defaults, strict=True))
    return by_place | (function.__kwdefaults__ or {}) | dict(getclosurevars(function).nonlocals)


def _code(function: FunctionType) -> dict[str, str]:
    """A digest of the code of a user's function; the version of the package identifies its own functions."""
    if function.__module__.partition(".")[0] == __name__.partition(".")[0]:
        return {}
    return {"code": sha256(repr(_instructions(function.__code__)).encode()).hexdigest()[:16]}


def _instructions(code: CodeType) -> tuple[object, ...]:
    constants = [_instructions(x) if isinstance(x, CodeType) else x for x in code.co_consts]
    return code.co_code, code.co_names, constants


def _digest(*tensors: Tensor) -> str:
    found = sha256()
    for tensor in tensors:
        found.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()[:16]


def _called(function: str | dict[str, Any], given: dict[str, Any]) -> str | dict[str, Any]:
    inner = {"function": function} if isinstance(function, str) else function
    return inner | given if given else function


def _named(value: Any) -> str:
    return f"{value.__module__}.{value.__qualname__}"


def described_samples(samples: Samples) -> dict[str, Any]:
    """How many samples, which, and a digest of their inputs; of images on disk, of some."""
    return {"samples": len(samples), "which": _digest(samples.index, samples.y), "inputs": _digest(*_inputs(samples))}


def _inputs(samples: Samples) -> list[Tensor]:
    x = samples.x
    if isinstance(x, Tensor):
        return [x]
    some = torch.linspace(0, len(x) - 1, min(OF_IMAGES, len(x))).long()
    if not isinstance(x, Images):
        return [x.places, *(x.read(row, None) for row in some.tolist())]
    encoded = [torch.frombuffer(bytearray(x.source(place)[1]), dtype=torch.uint8) for place in x.places[some].tolist()]
    return [x.places, torch.tensor(x.size), *encoded]


def described_splits(splits: Splits) -> dict[str, Any]:
    """Number of classes, normalization of pixels, and the samples of each split."""
    facts = splits.train.facts
    parts = {name: described_samples(getattr(splits, name)) for name in ("train", "held_out", "test")}
    return {"classes": len(facts.classes), "mean": list(facts.mean), "std": list(facts.std), **parts}


def described_network(network: nn.Module) -> dict[str, Any]:
    """Type of the network, number of weights, and a digest of its layers as it prints them."""
    layers = re.sub(r" at 0x[0-9a-f]+", "", repr(network))
    weights = sum(p.numel() for p in network.parameters())
    return {"type": _named(type(network)), "weights": weights, "layers": sha256(layers.encode()).hexdigest()[:16]}


@cache
def versions() -> dict[str, str]:
    """Versions of the packages that the numbers of a run depend on."""
    from importlib.metadata import version
    from platform import python_version

    packages = {name: version(name) for name in ("assay-ml", "numpy", "lightning")}
    return {"python": python_version(), "torch": torch.__version__, **packages, **_commit()}


def _commit() -> dict[str, str]:
    """The commit of the package, if it runs from a checkout; read from git's files, without a process."""
    git = Path(__file__).parents[3] / ".git"
    try:
        head = (git / "HEAD").read_text().strip()
        branch = head.removeprefix("ref: ")
        return {"commit": head if branch == head else (git / branch).read_text().strip()}
    except OSError:
        return {}


def differences(there: Mapping[str, Any], here: Mapping[str, Any], at: str = "") -> list[str]:
    """Where two configurations differ, as in `recipe.epochs is 20 there and 30 here`."""
    found = []
    for key in dict.fromkeys([*there, *here]):
        a, b = there.get(key), here.get(key)
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            found += differences(a, b, f"{at}{key}.")
        elif a != b:
            found.append(f"{at}{key} is {a} there and {b} here")
    return found
