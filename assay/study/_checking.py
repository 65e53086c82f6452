"""What can be known to go wrong before anything runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch

from assay.arrays import InputError
from assay.data import Cut, Facts, Samples, Splits, load, samples
from assay.data.corruptions import shifts
from assay.networks import network
from assay.study._run import Run, expand
from assay.study._study import Study
from assay.training import NOTHING, Hardware, fitting, initialized, train

FEW = 8  # samples of a step that is a trial
SHAPES = {  # classes, side of the images
    "cifar10": (10, 32),
    "cifar100": (100, 32),
    "svhn": (10, 32),
    "tiny_imagenet": (200, 64),
    "imagenet": (1000, 224),
}


def check(study: Study, *, only: str = "*") -> list[Run]:
    """The runs whose folder fits the pattern, once data are found, networks fit them and recipes can be built."""
    runs = _buildable(study, only)
    for data, cut in _cuts(runs):
        _check_fit(study, data, load(data, cut=cut))
    return runs


def try_out(study: Study) -> Iterator[str]:
    """Everything that is wrong with the study, after one step of each recipe on each of its data sets.

    Of image sets that are missing, noise of their shape takes the place.
    """
    runs = _buildable(study)
    for data, cut in _cuts(runs):
        try:
            splits = load(data, cut=cut)
        except InputError as problem:
            yield str(problem)
            if data not in SHAPES:
                continue
            splits = _noise(*SHAPES[data])
        try:
            _check_fit(study, data, splits)
        except InputError as problem:
            yield str(problem)
            continue
        for run in {run.method: run for run in reversed(runs) if run.data == data}.values():
            try:
                _step(run, splits)
            except (InputError, RuntimeError, ValueError, TypeError) as problem:
                yield f"{run.method} on {data}: {problem}"


def _buildable(study: Study, only: str = "*") -> list[Run]:
    runs = expand(study)
    if not any(run.method == (study.baseline or runs[0].method) for run in runs):
        methods = ", ".join(dict.fromkeys(run.method for run in runs))
        raise InputError(f"the baseline '{study.baseline}' is none of the methods: {methods}")
    for run in {(run.recipe, run.values): run for run in runs}.values():
        run.record.refuse_beyond(run.built_recipe().epochs)
    return expand(study, only=only)


def _cuts(runs: list[Run]) -> list[tuple[str, Cut]]:
    """Data sets, each divided in every way that the study has."""
    found = dict.fromkeys((run.data, run.held_out, run.n_train) for run in runs)
    return [(data, Cut(held_out, n_train)) for data, held_out, n_train in found]


def _check_fit(study: Study, data: str, splits: Splits) -> None:
    most = max(size or 0 for size in study.held_out_sizes)
    if most > len(splits.held_out):
        raise InputError(f"calibrators cannot be given {most} samples: {data} has {len(splits.held_out)} held out")
    missing = [shift for shift in study.shifts if shift not in splits.shifts]
    if missing:
        there = ", ".join(list(splits.shifts)[:5])
        raise InputError(f"{data} has no shift '{missing[0]}'; there are {there}, ... ({len(splits.shifts)} in all)")
    for name in study.networks:
        fitting(name, splits.train, data, seed=0)


def _step(run: Run, splits: Splits) -> None:
    """Train on a few samples, two epochs of one step, since some recipes begin with another's first epoch."""
    few = Splits(_few(splits.train), _few(splits.held_out), _few(splits.test))
    made = initialized(network(run.network), few.train, seed=run.seed)
    short = replace(run.built_recipe(), epochs=2, batch_size=FEW)
    train(made, few, short, seed=run.seed, record=NOTHING, hardware=Hardware("cpu"))


def _noise(n_classes: int, side: int) -> Splits:
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(256, (10 * FEW, 3, side, side), generator=generator, dtype=torch.uint8)
    y = torch.arange(10 * FEW) % min(n_classes, FEW // 2)
    made = samples(x, y, Facts(tuple(map(str, range(n_classes))), (0.5,) * 3, (0.25,) * 3))
    return Splits(made, made, made, shifts(made))


def _few(all_of_them: Samples) -> Samples:
    return all_of_them[torch.arange(min(FEW, len(all_of_them)))]
