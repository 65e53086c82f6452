"""Checks of a study before anything runs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from torch import nn

from assay import scores
from assay._core.arrays import InputError
from assay._core.own_code import is_own, located
from assay._core.variants import Variant, parse_variant
from assay.epochs import NOTHING
from assay.metrics import evaluate
from assay.nn.data import Cut, Splits, load, loader, noise_images
from assay.nn.networks import network
from assay.nn.recipes import recipe
from assay.nn.training import Hardware, described_splits, fitting, initialized, train
from assay.predictions import Outcomes
from assay.study._consent import own_code, permit_own_code
from assay.study._corrections import UNCHANGED, import_foreign, is_fitted
from assay.study._costs import Cost, Sizes, cost
from assay.study._run import Run, expand
from assay.study._scores import LEARNED, PROBABILITIES
from assay.study._study import TEMPERATURE, USUAL_SCORE, Study, reference_method

TRIAL_SAMPLES = 8  # samples of a trial step
SHAPES = {  # classes, side of the images, training and test images
    "cifar10": (10, 32, 50_000, 10_000),
    "cifar100": (100, 32, 50_000, 10_000),
    "svhn": (10, 32, 73_257, 26_032),
    "tiny_imagenet": (200, 64, 100_000, 10_000),
    "imagenet": (1000, 224, 1_281_167, 50_000),
}

SHIFT_FOLDERS = {  # folders of shifted test sets
    "cifar10_c": "CIFAR-10-C",
    "cifar10_1": "CIFAR-10.1",
    "cifar10_2": "CIFAR-10.2",
    "cifar100_c": "CIFAR-100-C",
    "imagenet_c": "ImageNet-C",
    "imagenet_v2": "imagenetv2-<form>-format-val",
}


def check(study: Study, *, only: str = "*", root: Path | None = None, allow_code: bool = False) -> list[Run]:
    """The runs whose folder matches the pattern, after checks of names, data, networks and recipes.

    Runs that exist under `root` must have been trained on the same data. Own code of the study is called if allowed.
    """
    permit_own_code(study, allow_code=allow_code)
    runs = _buildable(study, only, own=True)
    for calibrator in study.corrections:
        import_foreign(calibrator)
    for score in study.scores_in_full:
        if is_own(score.name):
            scores.score(str(score))
    for data, cut in _cuts(runs):
        splits = load(data, cut=cut)
        _check_sizes(study, data, splits)
        _check_fit(list(map(str, study.networks_in_full)), data, splits)
        if root is not None:
            here = [root / run.folder for run in runs if (run.data, Cut(run.held_out, run.n_train)) == (data, cut)]
            _refuse_other_data(here, data, splits)
    return runs


def _refuse_other_data(folders: list[Path], data: str, splits: Splits) -> None:
    there = [folder for folder in folders if (folder / "run.json").is_file()]
    described = described_splits(splits) if there else {}
    for folder in there:
        try:
            found = json.loads((folder / "run.json").read_text())["data"]
            same = all(found[part] == described[part] for part in ("classes", "train", "held_out", "test"))
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as problem:
            raise InputError(f"{folder / 'run.json'}: cannot be read: {problem}; delete that folder") from problem
        if not same:
            raise InputError(f"{folder} was trained on other samples than {data} has now; name another folder by --out")


@dataclass(frozen=True)
class Attempt:
    """Everything that is wrong with a study, and what the runs that could make a step would cost here."""

    problems: tuple[str, ...]
    costs: tuple[Cost, ...]


def try_out(study: Study) -> Attempt:
    """Try a step of each recipe with each network on each data set.

    If an image set is missing, the step is made on noise of its shape. Own code of the study is left out: it is not
    called to try a study.
    """
    found = list(_tried(study))
    return Attempt(
        tuple(each for each in found if isinstance(each, str)),
        tuple(each for each in found if isinstance(each, Cost)),
    )


def _tried(study: Study) -> Iterator[str | Cost]:
    for name in own_code(study):
        yield from _wrong(partial(located, name, study.places))
    runs = [run for run in _buildable(study, own=False) if not (is_own(run.data) or is_own(run.method.name))]
    networks = [str(variant) for variant in study.networks_in_full if not is_own(variant.name)]
    for data, cut in _cuts(runs):
        try:
            splits = load(data, cut=cut)
        except InputError as problem:
            yield str(problem)
            if data not in SHAPES:
                continue
            classes, side, n_train, n_test = SHAPES[data]
            splits = noise_images(classes, side, n=10 * TRIAL_SAMPLES)
            held_out = n_train // 10 if cut.held_out is None else cut.held_out
            train_on = n_train - held_out if cut.n_train is None else cut.n_train
            sizes = Sizes(train_on, held_out, n_test, classes, (3, side, side))
        else:
            sizes = Sizes.of(splits)
            yield from _wrong(partial(_check_sizes, study, data, splits))
        unfit = list(_wrong(partial(_check_fit, networks, data, splits)))
        if unfit:
            yield from unfit
            continue
        here = [run for run in reversed(runs) if run.data == data and run.network in networks]
        here = [run for run in here if Cut(run.held_out, run.n_train) == cut]
        for run in {(run.network, run.method): run for run in here}.values():
            same = sum((each.network, each.method) == (run.network, run.method) for each in here)
            try:
                made, seconds = _step(run, splits)
                shifts = len(study.shifts)
                yield cost(run, made, sizes, runs=same, shifts=shifts, seconds_a_sample=seconds)
            except (InputError, RuntimeError, ValueError, TypeError) as problem:
                yield f"{run.method} with {run.network} on {data}: {problem}"


def _wrong(checked: Callable[[], object]) -> Iterator[str]:
    try:
        checked()
    except InputError as problem:
        yield str(problem)


def _buildable(study: Study, only: str = "*", *, own: bool) -> list[Run]:
    """The runs after checks of names and values; recipes of the user's own are called if `own`."""
    callable_methods = [method for method in study.methods if own or not is_own(method.name)]
    _check_names(study, callable_methods)
    runs = expand(study)
    reference_method(study)  # raises if the baseline is none of the methods
    _refuse_unmeasured(study)
    for run in {run.method: run for run in runs if own or not is_own(run.method.name)}.values():
        run.record.refuse_beyond(run.built_recipe().epochs)
    return expand(study, only=only)


def _check_names(study: Study, methods: list[Variant]) -> None:
    """Refuse unknown data sets, networks and recipes, and values that a recipe does not have."""
    for data in study.data:
        if not is_own(data):
            loader(data)
    for variant in study.networks_in_full:
        if not is_own(variant.name):
            network(str(variant))
    for method in methods:
        recipe(str(method))


def _refuse_unmeasured(study: Study) -> None:
    """Refuse calibrators, scores and metrics that give no number."""
    names = [score.name for score in study.scores_in_full]
    calibrators = [calibrator.name for calibrator in study.corrections]
    fitted = [name for name in calibrators if is_fitted(name)]
    if study.held_out == 0 and fitted:
        raise InputError(f"{fitted[0]} is fitted on held-out samples, and held_out is 0")
    learned = [name for name in names if name in LEARNED]
    if learned and UNCHANGED not in calibrators:
        raise InputError(f'{learned[0]} is the same whatever the calibrator; name "{UNCHANGED}" among the calibrators')
    of_any_score = evaluate(Outcomes.from_scores([0.0, 1.0], [False, True], is_probability=False))
    of_ranking = any(name in of_any_score or is_own(name) for name in _names(study.metrics))
    if not {USUAL_SCORE, *PROBABILITIES} & {*names} and not of_ranking:
        raise InputError(f"{', '.join(names)} only rank, and none of {', '.join(study.metrics)} is of a ranking")
    if study.metrics == [TEMPERATURE] and not any(TEMPERATURE in name for name in calibrators):
        raise InputError(f"none of {', '.join(calibrators)} has a temperature")


def _names(metrics: list[str]) -> set[str]:
    return {parse_variant(metric).name for metric in metrics}


def _cuts(runs: list[Run]) -> list[tuple[str, Cut]]:
    """Data sets with every division that the study has."""
    cuts = dict.fromkeys((run.data, run.held_out, run.n_train) for run in runs)
    return [(data, Cut(held_out, n_train)) for data, held_out, n_train in cuts]


def _check_sizes(study: Study, data: str, splits: Splits) -> None:
    most = max(size or 0 for size in study.held_out_sizes)
    if most > len(splits.held_out):
        raise InputError(f"calibrators cannot be given {most} samples: {data} has {len(splits.held_out)} held out")
    missing = [shift for shift in study.shifts if shift not in splits.shifts]
    if missing:
        raise InputError(f"{data} has no shift '{missing[0]}'; {_shifts_there(missing[0], list(splits.shifts))}")


def _shifts_there(missing: str, names: list[str]) -> str:
    if place := SHIFT_FOLDERS.get(missing.partition("/")[0]):
        return f"it is read from {place}/ in the folder that ASSAY_DATA names"
    return f"there are {', '.join(names[:5])}, ... ({len(names)} in all)" if names else "there is none"


def _check_fit(networks: list[str], data: str, splits: Splits) -> None:
    for name in networks:
        fitting(name, splits.train, data, seed=0)


def _step(run: Run, splits: Splits) -> tuple[nn.Module, float]:
    """Train on a few samples for two epochs of one step: some recipes start with an epoch of another.

    Returns the network, and the seconds that a sample took in an epoch.
    """
    train_few, held_out, test = (s.first(TRIAL_SAMPLES) for s in (splits.train, splits.held_out, splits.test))
    few = Splits(train_few, held_out, test)
    made = initialized(network(run.network), few.train, seed=run.seed)
    short = replace(run.built_recipe(), epochs=2, batch_size=TRIAL_SAMPLES)
    begun = time.perf_counter()
    train(made, few, short, seed=run.seed, record=NOTHING, hardware=Hardware("cpu"))
    return made, (time.perf_counter() - begun) / (2 * len(few.train))
