"""A run on disk: written whole after each epoch, and resumed only with the same configuration."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import torch
from torch import Tensor, nn

from assay import files
from assay._core.arrays import InputError
from assay._core.manifest import CHECKPOINT, begin, discard_temporaries, intact, listed, recording
from assay._core.own_code import is_own
from assay._core.writing import replacing
from assay.nn.data import Splits, batches, load
from assay.nn.networks import network
from assay.nn.training._configuration import differences, versions
from assay.nn.training._history import HISTORY_FILES, History
from assay.nn.training._network import initialized
from assay.nn.training._start import normalized_splits
from assay.predictions import Predictions

STATE = {"configuration", "network", "history", "finished", "stages"}  # keys of a checkpoint


class RunFolder:
    """The folder of one run; without a path, or in all processes but the first, nothing is written."""

    def __init__(self, path: Path | None, configuration: Mapping[str, Any], *, writes: bool) -> None:
        self.path, self.configuration, self.writes = path, configuration, writes

    def open(self) -> dict[str, Any] | None:
        """The last state of the run, None if there is none yet; a run of another configuration is refused."""
        if self.path is None:
            return None
        if self.writes:
            self.lock = begin(self.path)  # until this object is gone
            discard_temporaries(self.path)
        state = _read(self.path) if (self.path / CHECKPOINT).is_file() else None
        if state is not None and (found := _other(state["configuration"], self.configuration)):
            raise InputError(f"{self.path} holds another run: {'; '.join(found)}")
        if self.writes:
            trained_by = _trained_by(self.path, state)
            with recording(self.path, "run.json"), replacing(self.path / "run.json") as stream:
                stream.write(json.dumps({**self.configuration, **trained_by}, indent=1).encode())
        return state

    def save(self, state: Mapping[str, Any]) -> None:
        """Write the state of the run."""
        if self.path is not None and self.writes:
            # In memory first: if the disk is full, torch raises an error that does not say so.
            content = io.BytesIO()
            torch.save({"configuration": self.configuration, **state}, content)
            # The digest of an unfinished state is not listed: it changes with every epoch, and has checksums inside.
            listing = recording(self.path, CHECKPOINT) if state["finished"] else nullcontext()
            with listing, replacing(self.path / CHECKPOINT) as stream:
                stream.write(content.getbuffer())

    def write(self, history: History, predictions: Mapping[str, Predictions | None], splits: Splits) -> None:
        """Write the results of the run."""
        if self.path is not None and self.writes:
            with recording(self.path, *HISTORY_FILES, *(f"{split}.npz" for split in predictions)):
                history.write(self.path, splits.train)
                for split, found in predictions.items():
                    if found is not None:
                        files.write(found, self.path / f"{split}.npz")


def _trained_by(run: Path, state: Mapping[str, Any] | None) -> dict[str, Any]:
    """Versions that train the run, and every number of threads that trained a part of it; as they were if finished."""
    here = {"versions": versions(), "threads": [torch.get_num_threads()]}
    if state is None:
        return here
    try:
        there = json.loads((run / "run.json").read_text())
        before = there["threads"] if isinstance(there["threads"], list) else [there["threads"]]
        if state["finished"]:
            return {"versions": there["versions"], "threads": before}
        return here | {"threads": list(dict.fromkeys([*before, *here["threads"]]))}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return here


def load_weights(network: nn.Module, run: Path) -> None:
    """Load the final weights of the finished run in that folder.

    The network takes the precision of the weights.
    """
    if not (run / CHECKPOINT).is_file():
        raise InputError(f"{run / CHECKPOINT}: no such file")
    state = _read(run)
    with restoring(run):
        if not state["finished"]:
            raise InputError(f"{run}: the run is not finished; {len(state['history']['epochs'])} epochs are done")
        weights = state["network"]
        network.to(next(w.dtype for w in weights.values() if w.is_floating_point())).load_state_dict(weights)


@contextmanager
def restoring(run: Path | None) -> Iterator[None]:
    """Inside the block a state is put back; one that does not fit is not of this run."""
    try:
        yield
    except InputError:
        raise
    except Exception as problem:  # whatever torch raises of tensors, and Python of values, that are not the expected
        why = f"{type(problem).__name__}: {problem}"
        raise InputError(f"{run}: {CHECKPOINT} does not hold a state of this run: {why}") from problem


def load_run(run: Path, *, n: int = 64) -> tuple[nn.Module, Tensor]:
    """The trained network of a run of `assay train` or of a study, in eval mode, and `n` of its test inputs.

    A run on a user's own data or network is refused: reading a run calls no code that its files name.
    """
    try:
        described = json.loads((run / "run.json").read_text())
        names, facts = described["names"], described.get("data", {})
        mean, std = tuple(facts.get("mean", ())), tuple(facts.get("std", ()))
        data, name, folder = str(names["data"]), str(names["network"]), names.get("folder")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
        raise InputError(f"{run}: no run of `assay train` or of a study: {problem}") from problem
    for own in filter(is_own, (data, name)):
        instead = "build the network yourself, and use load_weights and export_onnx in Python"
        raise InputError(f"{run}: names code, {own!r}, and assay never calls code that run.json names; {instead}")
    splits = normalized_splits(load(data, folder=None if folder is None else str(folder)), mean, std)
    made = initialized(network(name), splits.train, seed=0)
    load_weights(made, run)
    some = splits.test.first(n)
    return made.eval(), next(batches(some, len(some))).x


def discard_unreadable(run: Path) -> None:
    """Delete the checkpoint of a run if it is damaged, so that the run starts again."""
    if (run / CHECKPOINT).is_file():
        try:
            _read(run)
        except InputError as problem:
            if isinstance(problem.__cause__, OSError | MemoryError):  # the file itself may be whole
                raise
            with recording(run, CHECKPOINT):
                (run / CHECKPOINT).unlink()


def _other(there: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    """Differences of two configurations, except for the folder of the data, which may move."""
    return [found for found in differences(there, here) if not found.startswith("names.folder ")]


def _read(run: Path) -> dict[str, Any]:
    file = run / CHECKPOINT
    if listed(run).get(CHECKPOINT) is not None and not intact(run, CHECKPOINT):
        raise InputError(f"{file}: has changed since it was written")
    try:
        with ZipFile(file) as archive:
            if archive.testzip() is not None:  # torch does not look at the checksums
                raise BadZipFile("a checksum is wrong")
        state: dict[str, Any] = torch.load(file, map_location="cpu", weights_only=True)
    except Exception as problem:  # whatever zip and pickle raise
        raise InputError(f"{file}: cannot be read: {problem}") from problem
    if not isinstance(state, dict) or not state.keys() >= STATE:
        raise InputError(f"{file}: is no checkpoint of assay")
    return state
