"""Hyper-parameters chosen one after the other, each from a list of values (karandikar2021, appendix E)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from assay import files
from assay._core.arrays import InputError
from assay._core.lookup import lookup
from assay.metrics import METRICS, evaluate
from assay.nn.names import Value
from assay.study._named import Named
from assay.study._run import Run, expand
from assay.study._statistics import Summary
from assay.study._study import RATES, Study


@dataclass(frozen=True)
class Trial:
    """One value of one parameter, evaluated over seeds."""

    data: str
    network: str
    method: str  # the recipe with all its values, including this one
    parameter: str
    accuracy: Summary
    error: Summary  # of the metric to minimize
    chosen: bool


@dataclass(frozen=True)
class Tuned:
    """All trials in order, and by data set and network the best values of each method."""

    trials: tuple[Trial, ...]
    best: dict[tuple[str, str], dict[str, Named]]


Settings = tuple[tuple[str, Value], ...]


def tune(
    study: Study,
    root: Path,
    run_all: Callable[[Sequence[Run]], object],
    *,
    on: Literal["held_out", "test"] = "held_out",
    metric: str = "ece",
    give_up: float = 0.01,
) -> Tuned:
    """Choose for each parameter in `study.tune` the value of lowest `metric` whose accuracy is near the best.

    Near means less than `give_up` below. `run_all` trains runs that are not done. Recipes without a parameter are not
    tuned by it. Choosing on the test set, as wang2021 did, makes test figures better than they are.
    """
    _check(study, metric)
    starts = {(run.data, run.network, run.recipe, run.values): run for run in reversed(expand(study))}
    best: dict[Run, Settings] = {run: run.values for run in reversed(starts.values())}
    trials = []
    for parameter, values in study.tune.items():
        tried = {start: _with_each(best[start], parameter, values) for start in best if _has(start, parameter)}
        seeds = {
            (start, given): [replace(start, values=given, seed=seed) for seed in study.seeds]
            for start, some in tried.items()
            for given in some
        }
        run_all([run for runs in seeds.values() for run in runs])
        for start, some in tried.items():
            judged = {given: _judged(seeds[start, given], root, on, metric) for given in some}
            best[start] = _chosen(judged, give_up)
            for given, (accuracy, error) in judged.items():
                method, chosen = str(Named(start.recipe, given)), given == best[start]
                trials.append(Trial(start.data, start.network, method, parameter, accuracy, error, chosen))
    tuned: dict[tuple[str, str], dict[str, Named]] = {}
    for start, kept in best.items():
        tuned.setdefault((start.data, start.network), {})[start.method] = Named(start.recipe, kept)
    return Tuned(tuple(trials), tuned)


def _check(study: Study, metric: str) -> None:
    if not study.tune:
        raise InputError("the study says nothing under [tune], as beta = [0.1, 1, 10]")
    if lookup("metric", metric, METRICS).better != "lower":
        raise InputError(f"{metric} is not to be low; values are chosen by an error")
    for axis in ("n_train", "learning_rates", "weight_decays"):
        if len(getattr(study, axis)) > 1:
            raise InputError(f"values are chosen at one point: {axis} has several")
    for parameter in study.tune:
        if not any(_has(run, parameter) for run in expand(study)):
            raise InputError(f"no recipe of the study has a hyper-parameter '{parameter}' to tune")


def _with_each(values: Settings, parameter: str, tried: Sequence[Value]) -> list[Settings]:
    return [tuple((dict(values) | {parameter: value}).items()) for value in tried]


def _has(run: Run, parameter: str) -> bool:
    if parameter in RATES:
        return True
    try:
        replace(run, values=((parameter, 1.0),)).built_recipe()
    except InputError:
        return False
    return True


def _judged(runs: Sequence[Run], root: Path, on: str, metric: str) -> tuple[Summary, Summary]:
    found = [evaluate(files.read(root / run.folder / f"{on}.npz")) for run in runs]
    return tuple(Summary(tuple(float(values[name]) for values in found)) for name in ("accuracy", metric))  # type: ignore[return-value]


def _chosen(judged: dict[Settings, tuple[Summary, Summary]], give_up: float) -> Settings:
    """The values of lowest error that give up less than so much accuracy; of equals the first."""
    highest = max(accuracy.mean for accuracy, _ in judged.values())
    near = [values for values, (accuracy, _) in judged.items() if highest - accuracy.mean < give_up]
    near = near or [values for values, (accuracy, _) in judged.items() if accuracy.mean == highest]
    return min(near, key=lambda values: judged[values][1].mean)


def tuned_study(study: Study, file: Path, found: Tuned, to: Path, *, on: str, metric: str) -> str:
    """TOML of a study that extends the given one with the chosen values."""
    (tuned,) = found.best.values()
    lines = []
    for recipe in tuned.values():
        values = "".join(f", {name} = {_toml(value)}" for name, value in recipe.values)
        lines.append(f"  {{ recipe = {_toml(recipe.name)}{values} }},")
    base = os.path.relpath(file.resolve(), to.resolve().parent)
    how = f"values of {', '.join(study.tune)} chosen on {on} by {metric}"
    head = [f"# The {how}.", f"extends = {_toml(base)}", f"name = {_toml(study.name + '_tuned')}"]
    names = {**study.stands_for, **{str(new): study.stands_for.get(old, old) for old, new in tuned.items()}}
    stands_for = ", ".join(f"{_toml(name)} = {_toml(other)}" for name, other in names.items())
    rest = [f"assumed = {_toml([*study.assumed, how])}", f"stands_for = {{ {stands_for} }}"]
    if study.baseline:
        rest.append(f"baseline = {_toml(str(tuned[study.baseline]))}")
    return "\n".join([*head, "recipes = [", *lines, "]", *rest, ""])


def _toml(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
