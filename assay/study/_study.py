"""A study as a file: axes of names and numbers; every combination is a run."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable
from dataclasses import fields
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Self, get_origin

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from assay._core.arrays import InputError
from assay._core.lookup import hint, lookup
from assay._core.reading import require_file
from assay._core.text import file_name
from assay._core.variants import Number, Value, Variant, parse_variant
from assay.epochs import Record
from assay.metrics import metric
from assay.published import SOURCES
from assay.study._corrections import UNCHANGED, check_correction
from assay.study._scores import check_score
from assay.study._shifts import corruptions_like
from assay.study._variants import Entry, Plain, variants

Grid = list[Plain]
USUAL_SCORE = "max_probability"  # the score that maps of the confidence change
LARGEST = 10**6  # bytes of a study file
TEMPERATURE = "temperature"  # the result of a calibrator: not a metric, but the papers tabulate it


def _unchecked(variant: Variant) -> None:
    """`check` looks up names of networks and recipes: their tables need torch, a study file does not."""


# By field: what its entries are, and what refuses unknown ones.
CHECKS: dict[str, tuple[str, Callable[[Variant], None]]] = {
    "networks": ("network", _unchecked),
    "recipes": ("recipe", _unchecked),
    "calibrators": ("calibrator", check_correction),
    "scores": ("score", check_score),
}


class Study(BaseModel):
    """The runs of a study, and the numbers to compute from their predictions. Every list is an axis."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    question: str = ""  # that the study answers, in a sentence
    data: list[str] = Field(min_length=1)
    networks: list[Entry] = Field(min_length=1)
    recipes: list[Entry] = Field(min_length=1)
    chosen: list[dict[str, Plain | list[Number]]] = []  # values of a recipe on one data set or network
    seeds: list[NonNegativeInt] = Field(min_length=1)
    epochs: PositiveInt | None = None  # None: the recipe's own
    batch_size: PositiveInt | None = None
    augment: bool = True
    start: str | None = None  # a safetensors file of weights to start from, here or in the folder of data sets
    learning_rates: list[PositiveFloat | None] = Field([None], min_length=1)
    weight_decays: list[NonNegativeFloat | None] = Field([None], min_length=1)
    n_train: list[PositiveInt | None] = Field([None], min_length=1)  # None: all
    held_out: NonNegativeInt | None = None  # samples held out for calibration; None: a tenth
    held_out_sizes: list[PositiveInt | None] = Field([None], min_length=1)  # given to the calibrators; None: all
    calibrators: list[Entry] = Field([UNCHANGED], min_length=1)
    scores: list[Entry] = Field([USUAL_SCORE], min_length=1)
    shifts: list[str] = []  # names, or patterns such as *_3 (made here) and cifar10_c/* (read from disk)
    metrics: list[str] = Field(["accuracy", "ece", "auroc", "aurc", "e_aurc", "nll"], min_length=1)
    baseline: str = ""  # the recipe to compare the others with; by default the first
    tune: dict[str, Grid | dict[str, Grid]] = {}  # values to choose from, one parameter after the other; see `grid`
    record: Record = Record()  # what each run records of its epochs
    train_predictions: bool = False  # write predictions on the training set too (wang2021, fig 5)
    published: list[str] = []  # tables of the papers to show beside ours, such as zhu2022/2
    stands_for: dict[str, str] = {}  # our name: the paper's name whose figures to show beside it
    assumed: list[str] = []  # values that the paper does not print
    _places: tuple[Path, ...] = PrivateAttr(())

    @property
    def places(self) -> tuple[Path, ...]:
        """Folders where the study's own code is looked for after the usual ones: that of its file."""
        return self._places

    @field_validator("*", mode="before")
    @classmethod
    def _one_is_a_list(cls, value: Any, info: ValidationInfo) -> Any:
        """One value where a list is meant: seeds = 0 is seeds = [0]."""
        listed = get_origin(cls.model_fields[info.field_name or ""].annotation) is list
        return [value] if listed and isinstance(value, int | float | str) else value

    @field_validator("shifts")
    @classmethod
    def _all_that_fit(cls, patterns: list[str]) -> list[str]:
        names = list(dict.fromkeys(name for pattern in patterns for name in corruptions_like(pattern)))
        for name in names:
            if any(part != file_name(part) for part in name.split("/")):
                raise InputError(f"no shift is called {name!r}; names have letters, digits and _.,=@+-")
        return names

    @property
    def networks_in_full(self) -> list[Variant]:
        """Networks with their values."""
        return variants("network", self.networks)

    @property
    def methods(self) -> list[Variant]:
        """Recipes with their values."""
        return variants("recipe", self.recipes)

    def at(self, data: str, network: str, method: Variant) -> Variant:
        """The method with the values that are chosen for a data set and a network; later entries go first."""
        values = dict(method.values)
        for entry in self.chosen:
            point, chosen = chosen_values(entry)
            here = (point.get("data", data), point.get("network", network)) == (data, network)
            if here and parse_variant(point["recipe"]) == method:
                values |= chosen
        return Variant(method.name, values, method.setup)

    def grid(self, parameter: str, method: Variant) -> Grid:
        """The values of a hyper-parameter to try for a method; a table has values by a pattern of recipe names.

        kappa = { "*s_avuc" = [0.3, 0.5], "*avuc*" = [1.0, 2.0] }: the first pattern that fits counts.
        """
        tried = self.tune[parameter]
        if isinstance(tried, list):
            return tried
        return next((values for pattern, values in tried.items() if fnmatch(method.name, pattern)), [])

    @property
    def corrections(self) -> list[Variant]:
        """Calibrators with their values."""
        return variants("calibrator", self.calibrators)

    @property
    def scores_in_full(self) -> list[Variant]:
        """Scores with their values."""
        return variants("score", self.scores)

    @field_validator("data", "seeds", "metrics", "held_out_sizes", "shifts")
    @classmethod
    def _each_once(cls, entries: list[Any]) -> list[Any]:
        _refuse_twice(entries)
        return entries

    @field_validator("metrics")
    @classmethod
    def _known_metrics(cls, names: list[str]) -> list[str]:
        return [name if name == TEMPERATURE else metric(name).key for name in names]

    @field_validator("published")
    @classmethod
    def _known_tables(cls, names: list[str]) -> list[str]:
        return [_known("published table", name, [f"{s.paper}/{s.table}" for s in SOURCES]) for name in names]

    @model_validator(mode="after")
    def _chosen_for_something(self) -> Self:
        for entry in self.chosen:
            point, _ = chosen_values(entry)
            known = {"data": self.data, "network": list(map(str, self.networks_in_full))}
            for name, values in known.items():
                if name in point:
                    _known(f"{name} under chosen", point[name], values)
            if parse_variant(point["recipe"]) not in self.methods:
                raise InputError(f"chosen: '{point['recipe']}' is none of the recipes: {_listed(self.methods)}")
        return self

    @field_validator(*CHECKS)
    @classmethod
    def _known_names(cls, entries: list[Any], info: ValidationInfo) -> list[Any]:
        kind, check = CHECKS[info.field_name or ""]
        known = variants(kind, entries)
        for variant in known:
            check(variant)
        _refuse_twice(known)
        return entries


def chosen_values(entry: dict[str, Plain | list[Number]]) -> tuple[dict[str, str], dict[str, Value]]:
    """(recipe, and data and network if they are given; values) of an entry under chosen.

    >>> chosen_values({"data": "cifar100", "recipe": "focal@wang2021", "gamma": 5})
    ({'data': 'cifar100', 'recipe': 'focal@wang2021'}, {'gamma': 5})
    """
    point = {name: str(value) for name, value in entry.items() if name in ("data", "network", "recipe")}
    if "recipe" not in point or len(point) == len(entry):
        raise InputError(f"chosen: {entry} must name a recipe and its values, and may name data and network")
    values = {name: value for name, value in entry.items() if name not in point}
    return point, {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}


def _listed(methods: Iterable[Variant]) -> str:
    return ", ".join(map(str, methods))


def reference_method(study: Study) -> Variant:
    """The method to compare the others with: the baseline of the study, or its first method."""
    if not study.baseline:
        return study.methods[0]
    wanted = parse_variant(study.baseline)
    if wanted not in study.methods:
        raise InputError(f"the baseline '{study.baseline}' is none of the methods: {_listed(study.methods)}")
    return study.methods[study.methods.index(wanted)]


def read_study(file: str | Path) -> Study:
    """Read a study from TOML; `extends` names a file next to it that supplies the keys missing here.

    What the two assume is put together.
    """
    content = _content(Path(file))
    try:
        study = Study(**content)
        study._places = (Path(file).resolve().parent,)
        return study
    except ValidationError as problem:
        raise InputError(f"{file}: {_first(problem)}") from problem
    except InputError as problem:
        raise InputError(f"{file}: {problem}") from problem


def _content(file: Path, extending: tuple[Path, ...] = ()) -> dict[str, Any]:
    try:
        require_file(file)
        if file.stat().st_size > LARGEST:
            raise InputError(f"{file}: is larger than {LARGEST:,} bytes; a study is a small file")
        own = tomllib.loads(file.read_text(encoding="utf-8"))
    except InputError:
        raise
    except RecursionError as problem:
        raise InputError(f"{file}: cannot be read: it is nested too deeply") from problem
    except (OSError, ValueError) as problem:  # also numbers of too many digits
        raise InputError(f"{file}: cannot be read: {problem}") from problem
    if file.resolve() in extending:
        raise InputError(f"{file}: extends itself")
    base = own.pop("extends", None)
    if not isinstance(base, str | None):
        raise InputError(f"{file}: extends must name a file, got {base}")
    if base is None:
        return own
    inherited = _content(file.parent / base, (*extending, file.resolve()))
    assumed = [*_assumed(inherited), *_assumed(own)]
    return inherited | own | {"assumed": [each for i, each in enumerate(assumed) if each not in assumed[:i]]}


def _assumed(content: dict[str, Any]) -> list[Any]:
    found = content.get("assumed", [])
    return found if isinstance(found, list) else [found]


def _refuse_twice(entries: list[Any]) -> None:
    for i, entry in enumerate(entries):
        if entry in entries[:i]:
            raise InputError(f"{entry} is listed twice")


def _first(problem: ValidationError) -> str:
    """The first error, in a line; an unknown key before others, since it may be a missing one misspelled."""
    unknown = ("extra_forbidden", "unexpected_keyword_argument")
    error = min(problem.errors(), key=lambda each: each["type"] not in unknown)
    if error["type"] in unknown:
        key, inside = str(error["loc"][-1]), len(error["loc"]) > 1
        return f"unknown key '{key}'; {hint(key, [f.name for f in fields(Record)] if inside else Study.model_fields)}"
    return ": ".join([*map(str, error["loc"][:1]), error["msg"].removeprefix("Value error, ")])


def _known(kind: str, name: str, names: Iterable[str]) -> str:
    return lookup(kind, name, {known: known for known in names})
