"""From a run to its rows, in stages that are files: a stage whose files exist is not done again."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from assay import files
from assay._core.manifest import alone_in, intact, recording
from assay._core.own_code import trained_by
from assay._core.variants import Variant, parse_variant
from assay._core.writing import replacing
from assay.nn.data import Cut, Splits, load
from assay.nn.networks import network
from assay.nn.training import Hardware, discard_unreadable, initialized, predict, read_weights, started_from, train
from assay.study._consent import permit_own_code
from assay.study._engine import DONE
from assay.study._rows import write_rows
from assay.study._run import Run
from assay.study._scores import LEARNED, learn_score, read_score, write_score
from assay.study._study import Study


def execute(
    study: Study,
    run: Run,
    root: Path,
    *,
    hardware: Hardware = Hardware(),  # noqa: B008 (frozen)
    allow_code: bool = False,
) -> None:
    """Train the run unless it is trained, predict missing splits, and write the rows."""
    permit_own_code(study, allow_code=allow_code)
    folder = root / run.folder
    splits = ("test", *study.shifts)
    scores = [score for score in study.scores_in_full if score.name in LEARNED]
    wanted = (*(["held_out"] if run.held_out != 0 else []), *splits, *(["train"] if study.train_predictions else []))
    with alone_in(folder):  # several studies may share the run
        files_there = intact(folder, DONE) and all(intact(folder, f"{split}.npz") for split in wanted)
        if not files_there or any(read_score(score, folder, splits) is None for score in scores):
            discard_unreadable(folder)
            _train_and_predict(study, run, folder, hardware, scores)
        write_rows(study, run, folder)


def _train_and_predict(study: Study, run: Run, folder: Path, hardware: Hardware, scores: list[Variant]) -> None:
    splits = _data(run.data, Cut(run.held_out, run.n_train))
    made = initialized(network(run.network), splits.train, seed=run.seed)
    names = {"data": run.data, "network": run.network}
    names |= trained_by(run.data, parse_variant(run.network).name, run.method.name, study.places)
    if run.start is not None:
        weights = read_weights(run.start)
        splits = started_from(weights, made, splits)
        names["start"] = weights.name
    trained = train(
        made, splits, run.built_recipe(), seed=run.seed, out=folder, record=run.record, hardware=hardware, names=names
    )
    more = dict(splits.shifts) | {"train": lambda: splits.train}
    for split in (*study.shifts, *(["train"] if study.train_predictions else [])):
        name = f"{split}.npz"
        if not intact(folder, name):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            with recording(folder, name):
                files.write(predict(trained.network, more[split]()), folder / name)
    for score in scores:
        if read_score(score, folder, ("test", *study.shifts)) is None:
            scorer = learn_score(score, trained.network, splits, seed=run.seed, hardware=hardware)
            values = {"test": scorer(splits.test)}
            values |= {shift: scorer(splits.shifts[shift]()) for shift in study.shifts}
            write_score(score, values, folder)
    with recording(folder, DONE), replacing(folder / DONE) as stream:
        stream.write(b"")


@lru_cache(maxsize=1)
def _data(name: str, cut: Cut) -> Splits:
    return load(name, cut=cut)
