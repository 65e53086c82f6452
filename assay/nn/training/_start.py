"""Weights to start from: a safetensors file of this network, under its names here or under those of its public code."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path

from torch import Tensor, nn

from assay._core.arrays import InputError
from assay.nn.data import Samples, Splits

NORMALIZATION = re.compile(r"mean ([\d. ]+), std ([\d. ]+)")
BLOCK = re.compile(r"layer(\d)\.(\d+)\.(conv|bn)(\d)\.(\w+)")
COUNTER = "num_batches_tracked"  # of BatchNorm; old files lack it, and nothing here reads it


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights of a file, and how it says that pixels were normalized."""

    name: str  # the file's name and digest: what a run that starts from it is known by
    tensors: dict[str, Tensor]
    mean: tuple[float, ...] = ()  # empty: as the data set normalizes them
    std: tuple[float, ...] = ()


def read_weights(file: str | Path, *, folder: Path | None = None) -> Weights:
    """Read a safetensors file; a relative name is looked up in the folder of data sets too.

    Its metadata may say `normalization`: "mean .485 .456 .406, std .229 .224 .225".
    """
    from safetensors import SafetensorError, safe_open

    place = _place(Path(file), folder)
    try:
        with safe_open(place, "pt") as stored:
            tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118 (no mapping)
            said = NORMALIZATION.fullmatch((stored.metadata() or {}).get("normalization", ""))
        digest = sha256(place.read_bytes()).hexdigest()[:12]
    except (OSError, SafetensorError) as problem:
        raise InputError(f"{place}: cannot be read as safetensors: {problem}") from problem
    mean, std = (tuple(map(float, numbers.split())) for numbers in said.groups()) if said else ((), ())
    return Weights(f"{place.name} {digest}", tensors, mean, std)


def started_from(weights: Weights, network: nn.Module, splits: Splits) -> Splits:
    """Give the network the weights, in place; returns the data with the pixels normalized as the weights expect."""
    own = network.state_dict()
    found = {_own_name(name, own): tensor for name, tensor in weights.tensors.items()}
    for name, tensor in own.items():
        if name not in found and not name.endswith(COUNTER):
            raise InputError(f"{weights.name}: no weights '{name}' of this network; it has {', '.join(sorted(found))}")
        if name in found and found[name].shape != tensor.shape:
            there, here = list(found[name].shape), list(tensor.shape)
            raise InputError(f"{weights.name}: weights '{name}' are {there} there and {here} in this network")
    if unknown := sorted(set(found) - set(own)):
        raise InputError(f"{weights.name}: weights '{unknown[0]}' are not of this network")
    network.load_state_dict(own | found)
    return normalized_splits(splits, weights.mean, weights.std)


def normalized_splits(splits: Splits, mean: tuple[float, ...], std: tuple[float, ...]) -> Splits:
    """The same data with other constants of normalization; without constants, as they are."""
    if not mean:
        return splits
    channels = len(splits.train.facts.mean)
    if not len(mean) == len(std) == channels:
        raise InputError(f"a normalization of {len(mean)} channels for images of {channels}")

    def changed(samples: Samples) -> Samples:
        return replace(samples, facts=replace(samples.facts, mean=mean, std=std))

    parts = {name: changed(getattr(splits, name)) for name in ("train", "held_out", "test")}
    shifts = {name: partial(_called, changed, make) for name, make in splits.shifts.items()}
    return Splits(**parts, shifts=shifts)


def _called(changed: Callable[[Samples], Samples], make: Callable[[], Samples]) -> Samples:
    return changed(make())


def _place(file: Path, folder: Path | None) -> Path:
    data = folder or os.environ.get("ASSAY_DATA")
    places = [file, *([Path(data) / file] if data else [])]
    for place in places:
        if place.is_file():
            return place
    raise InputError(f"no weights at {' or '.join(map(str, places))}")


def _own_name(name: str, own: dict[str, Tensor]) -> str:
    """The name here of a weight, given the name here or that of pytorch_resnet_cifar10 (Idelbayev 2018)."""
    if name in own:
        return name
    name = re.sub(r"^linear\.", "head.", name)
    name = re.sub(r"^conv1\.", "body.0.0.0.", re.sub(r"^bn1\.", "body.0.0.1.", name))
    if not (found := BLOCK.fullmatch(name)):
        return name
    stage, block, layer, place, kind = found.groups()
    blocks = len({key.split(".")[2] for key in own if key.startswith("body.1.")}) // 3  # a stage
    index = (int(stage) - 1) * blocks + int(block)
    return f"body.1.{index}.0.branch.{2 * int(place) - 2}.{0 if layer == 'conv' else 1}.{kind}"
