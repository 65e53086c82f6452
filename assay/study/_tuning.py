"""Hyper-parameters chosen one after the other, each among its values, the best so far kept (karandikar2021, appendix
E)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from assay import files
from assay._core.arrays import InputError
from assay._core.lookup import found
from assay.metrics import METRICS, evaluate
from assay.nn.recipes import Value
from assay.study._named import Named
from assay.study._run import Run, expand
from assay.study._statistics import Summary
from assay.study._study import RATES, Study


@dataclass(frozen=True)
class Trial:
    """One value of one parameter, judged over seeds."""

    data: str
    network: str
    method: str  # the recipe with all its values, this one among them
    parameter: str
    accuracy: Summary
    error: Summary  # of the metric that is to be low
    chosen: bool


@dataclass(frozen=True)
class Tuned:
    """What was tried, in order, and by data set and network what became of each method."""

    trials: tuple[Trial, ...]
    best: dict[tuple[str, str], dict[str, Named]]


Values = tuple[tuple[str, Value], ...]


def tune(
    study: Study,
    root: Path,
    run_all: Callable[[Sequence[Run]], object],
    *,
    on: Literal["held_out", "test"] = "held_out",
    metric: str = "ece",
    give_up: float = 0.01,
) -> Tuned:
    """Of the values of each parameter in `study.tune` keep the one of lowest `metric` whose accuracy is near the best.

    Near is less than `give_up` below. `run_all` trains what is not done. A parameter that a recipe does not have is
    passed over. Choosing on the test set, as wang2021 did, makes test figures better than they are.
    """
    _check(study, metric)
    starts = {(run.data, run.network, run.recipe, run.values): run for run in reversed(expand(study))}
    best: dict[Run, Values] = {run: run.values for run in reversed(starts.values())}
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
    if found("metric", metric, METRICS).better != "lower":
        raise InputError(f"{metric} is not to be low; values are chosen by an error")
    for axis in ("n_train", "learning_rates", "weight_decays"):
        if len(getattr(study, axis)) > 1:
            raise InputError(f"values are chosen at one point: {axis} has several")
    for parameter in study.tune:
        if not any(_has(run, parameter) for run in expand(study)):
            raise InputError(f"no recipe of the study has a hyper-parameter '{parameter}' to tune")


def _with_each(values: Values, parameter: str, tried: Sequence[Value]) -> list[Values]:
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


def _chosen(judged: dict[Values, tuple[Summary, Summary]], give_up: float) -> Values:
    """The lowest error among those that give up less than so much accuracy; the first of equals."""
    highest = max(accuracy.mean for accuracy, _ in judged.values())
    near = [values for values, (accuracy, _) in judged.items() if highest - accuracy.mean < give_up]
    near = near or [values for values, (accuracy, _) in judged.items() if accuracy.mean == highest]
    return min(near, key=lambda values: judged[values][1].mean)
