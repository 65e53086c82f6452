"""A study as a file: axes of names and numbers, whose every combination is a run."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from assay.arrays import InputError
from assay.calibrators import CALIBRATORS
from assay.data import loader
from assay.metrics import METRICS
from assay.names import found, hint
from assay.networks import network
from assay.recipes import Value, recipe
from assay.scores import SCORES

UNCHANGED = "none"


class Study(BaseModel):
    """Which runs there are, and what is computed from their predictions. Every list is an axis."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    question: str = ""  # what the study is to tell, in a sentence
    data: list[str] = Field(min_length=1)
    networks: list[str] = Field(min_length=1)
    recipes: list[str | dict[str, Value | list[Value]]] = Field(min_length=1)
    seeds: list[int] = Field(min_length=1)
    epochs: int | None = None  # None: the recipe's own
    batch_size: int | None = None
    augment: bool = True
    learning_rates: list[float | None] = [None]
    weight_decays: list[float | None] = [None]
    n_train: list[int | None] = [None]  # None: all
    held_out: int | None = None  # samples held out for calibration; None: a tenth
    held_out_sizes: list[int | None] = [None]  # of these the calibrators are given so many; None: all
    calibrators: list[str] = [UNCHANGED]
    scores: list[str] = ["max_probability"]
    shifts: list[str] = []
    metrics: list[str] = ["accuracy", "ece", "auroc", "aurc", "e_aurc", "nll"]
    baseline: str = ""  # the recipe that the others are compared with; by default the first
    assumed: list[str] = []  # values that the paper leaves unsaid

    @field_validator("calibrators")
    @classmethod
    def _known_calibrators(cls, names: list[str]) -> list[str]:
        return [_known("calibrator", name, [UNCHANGED, *CALIBRATORS]) for name in names]

    @field_validator("scores")
    @classmethod
    def _known_scores(cls, names: list[str]) -> list[str]:
        return [_known("score", name, SCORES) for name in names]

    @field_validator("metrics")
    @classmethod
    def _known_metrics(cls, names: list[str]) -> list[str]:
        return [_known("metric", name, METRICS) for name in names]

    @field_validator("data")
    @classmethod
    def _known_data(cls, names: list[str]) -> list[str]:
        for name in names:
            loader(name)
        return names

    @field_validator("networks")
    @classmethod
    def _known_networks(cls, names: list[str]) -> list[str]:
        for name in names:
            network(name)
        return names

    @field_validator("recipes")
    @classmethod
    def _known_recipes(cls, entries: list[str | dict[str, Value | list[Value]]]) -> list[Any]:
        for entry in entries:
            if isinstance(entry, str):
                recipe(entry)
            elif "recipe" not in entry:
                raise InputError(f"a recipe with values names it: {{ recipe = ..., ... }}, got {entry}")
        return entries


def read_study(file: str | Path) -> Study:
    """Read a study from TOML; `extends` names a file next to it whose keys hold where this one has none."""
    content = _content(Path(file))
    try:
        return Study(**content)
    except ValidationError as problem:
        raise InputError(f"{file}: {_first(problem)}") from problem
    except InputError as problem:
        raise InputError(f"{file}: {problem}") from problem


def _content(file: Path) -> dict[str, Any]:
    try:
        own = tomllib.loads(file.read_text())
    except (OSError, tomllib.TOMLDecodeError) as problem:
        raise InputError(f"{file}: cannot be read: {problem}") from problem
    base = own.pop("extends", None)
    return own if base is None else _content(file.parent / base) | own


def _first(problem: ValidationError) -> str:
    """The first thing that is wrong, in a line."""
    error = problem.errors()[0]
    key = str(error["loc"][0])
    if error["type"] == "extra_forbidden":
        return f"unknown key '{key}'; {hint(key, Study.model_fields)}"
    return f"{key}: {error['msg'].removeprefix('Value error, ')}"


def _known(kind: str, name: str, names: Iterable[str]) -> str:
    return found(kind, name, {known: known for known in names})
