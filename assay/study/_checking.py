"""What can be known to go wrong before anything runs."""

from __future__ import annotations

import torch

from assay.arrays import InputError
from assay.data import Cut, Splits, batches, load
from assay.networks import build, network
from assay.study._run import Run, expand
from assay.study._study import Study


def check(study: Study) -> list[Run]:
    """The runs of the study, once its data are found, its networks fit them and its recipes can be built."""
    runs = expand(study)
    if not any(run.method == (study.baseline or runs[0].method) for run in runs):
        methods = ", ".join(dict.fromkeys(run.method for run in runs))
        raise InputError(f"the baseline '{study.baseline}' is none of the methods: {methods}")
    for run in {(run.recipe, run.values): run for run in runs}.values():
        run.built_recipe()
    for cut in {(run.data, run.held_out, run.n_train) for run in runs}:
        splits = load(cut[0], cut=Cut(*cut[1:]))
        _check_sizes(study, splits, cut[0])
        for name in study.networks:
            _check_network(name, splits, cut[0])
    return runs


def _check_sizes(study: Study, splits: Splits, data: str) -> None:
    most = max(size or 0 for size in study.held_out_sizes)
    if most > len(splits.held_out):
        raise InputError(f"calibrators cannot be given {most} samples: {data} has {len(splits.held_out)} held out")
    missing = [shift for shift in study.shifts if shift not in splits.shifts]
    if missing:
        there = ", ".join(list(splits.shifts)[:5])
        raise InputError(f"{data} has no shift '{missing[0]}'; there are {there}, ... ({len(splits.shifts)} in all)")


def _check_network(name: str, splits: Splits, data: str) -> None:
    """Build it and let it look at two samples, without weights: on the device that has shapes only."""
    x = next(batches(splits.test[torch.arange(2)], 2)).x
    try:
        with torch.device("meta"):
            made = build(network(name), splits.train.n_classes, x, splits.train.facts.vectors)
        made.eval()(x.to("meta"))
    except InputError as problem:
        raise InputError(f"{name} on {data}: {problem}") from problem
    except (RuntimeError, ValueError, IndexError, NotImplementedError) as problem:
        reason = str(problem).splitlines()[0]
        raise InputError(
            f"network '{name}' does not fit {data}, samples of shape {list(x.shape[1:])}: {reason}"
        ) from problem
