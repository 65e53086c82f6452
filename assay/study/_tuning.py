"""Hyper-parameters chosen one after the other, each from a list of values (karandikar2021, appendix E)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from assay import files
from assay._core.arrays import InputError
from assay._core.lookup import lookup
from assay._core.variants import Value, Variant, parse_variant
from assay.metrics import METRICS, evaluate
from assay.study._run import Run, expand
from assay.study._statistics import SeedSummary
from assay.study._study import Study


@dataclass(frozen=True)
class Trial:
    """One value of one parameter, evaluated over seeds."""

    data: str
    network: str
    method: Variant  # the recipe with all its values, including this one
    parameter: str
    accuracy: SeedSummary
    error: SeedSummary  # of the metric to minimize
    chosen: bool


@dataclass(frozen=True)
class Tuned:
    """All trials in order, and by data set and network the best values of each method."""

    trials: tuple[Trial, ...]
    best: dict[tuple[str, str], dict[Variant, Variant]]  # by the method before tuning


def tune(
    study: Study,
    root: Path,
    run_all: Callable[[Sequence[Run]], object],
    *,
    on: Literal["held_out", "test"] = "held_out",
    metric: str = "ece",
    give_up: float = 0.01,
    relative: bool = False,
) -> Tuned:
    """Choose for each parameter in `study.tune` the value of lowest `metric` whose accuracy is near the best.

    Near means less than `give_up` below, or with `relative` less than this share of the best. `run_all` trains runs
    that are not done. Recipes without a parameter are not tuned by it. Each data set and network has a choice of its
    own. Choosing on the test set, as wang2021 did, makes test figures better than they are.
    """
    _check(study, metric)
    starts = {(run.data, run.network, run.method): run for run in reversed(expand(study))}
    best = {run: run.method for run in reversed(starts.values())}
    trials = []
    for parameter in study.tune:
        tried = {start: _with_each(best[start], parameter, study.grid(parameter, start.method)) for start in best}
        tried = {start: methods for start, methods in tried.items() if methods and _has(start, parameter)}
        seeds = {
            (start, method): [replace(start, method=method, seed=seed) for seed in study.seeds]
            for start, methods in tried.items()
            for method in methods
        }
        run_all([run for runs in seeds.values() for run in runs])
        for start, methods in tried.items():
            judged = {method: _judged(seeds[start, method], root, on, metric) for method in methods}
            best[start] = _chosen(judged, give_up, relative=relative)
            for method, (accuracy, error) in judged.items():
                chosen = method == best[start]
                trials.append(Trial(start.data, start.network, method, parameter, accuracy, error, chosen))
    tuned: dict[tuple[str, str], dict[Variant, Variant]] = {}
    for start, method in best.items():
        tuned.setdefault((start.data, start.network), {})[parse_variant(start.label)] = method
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


def _with_each(method: Variant, parameter: str, tried: Sequence[Value]) -> list[Variant]:
    return [replace(method, values={**method.values, parameter: value}) for value in tried]


def _has(run: Run, parameter: str) -> bool:
    try:
        replace(run, method=replace(run.method, values={parameter: 1.0})).built_recipe()
    except InputError:
        return False
    return True


def _judged(runs: Sequence[Run], root: Path, on: str, metric: str) -> tuple[SeedSummary, SeedSummary]:
    measured = [evaluate(files.read(root / run.folder / f"{on}.npz"), ["accuracy", metric]) for run in runs]
    accuracy, error = (SeedSummary(tuple(values[name] for values in measured)) for name in ("accuracy", metric))
    return accuracy, error


def _chosen(
    judged: dict[Variant, tuple[SeedSummary, SeedSummary]], give_up: float, *, relative: bool = False
) -> Variant:
    """The method of lowest error that gives up less than so much accuracy; of equals the first."""
    highest = max(accuracy.mean for accuracy, _ in judged.values())
    most = give_up * highest if relative else give_up
    near = [method for method, (accuracy, _) in judged.items() if highest - accuracy.mean < most]
    near = near or [method for method, (accuracy, _) in judged.items() if accuracy.mean == highest]
    return min(near, key=lambda method: judged[method][1].mean)


def tuned_study(study: Study, file: Path, tuned: Tuned, to: Path, *, on: str, metric: str) -> str:
    """TOML of a study that extends the given one with the values chosen for each data set and network."""
    base = os.path.relpath(file.resolve(), to.resolve().parent)
    how = f"values of {', '.join(study.tune)} chosen on {on} by {metric}"
    if on == "test":
        how += ": test figures look better than they are"
    # The papers tune too: their figures stand beside ours whatever the chosen values are.
    names = {str(method): study.stands_for.get(str(method), str(method)) for method in study.methods}
    stands_for = ", ".join(f"{_toml(name)} = {_toml(other)}" for name, other in {**study.stands_for, **names}.items())
    return "\n".join(
        [
            f"# The {how}.",
            f"extends = {_toml(base)}",
            f"name = {_toml(study.name + '_tuned')}",
            f"assumed = {_toml([how])}",
            f"stands_for = {{ {stands_for} }}",
            "chosen = [",
            *(f"  {_toml_table(entry)}," for entry in study.chosen),
            *(f"  {_toml_table(entry)}," for entry in _entries(tuned)),
            "]",
            "",
        ]
    )


def _entries(tuned: Tuned) -> Iterator[dict[str, object]]:
    """An entry of a study's `chosen` for each method that was tuned."""
    for (data, network), methods in tuned.best.items():
        for method, chosen in methods.items():
            if values := {name: value for name, value in chosen.values.items() if method.values.get(name) != value}:
                yield {"data": data, "network": network, "recipe": str(method), **values}


def _toml_table(entry: Mapping[str, object]) -> str:
    return f"{{ {', '.join(f'{name} = {_toml(value)}' for name, value in entry.items())} }}"


def _toml(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
