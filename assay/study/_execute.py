"""From a run to its rows, in stages that are files: what is there already is not done again."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from assay import files
from assay.arrays import InputError
from assay.data import Cut, Splits, load
from assay.files import replacing
from assay.networks import network
from assay.study._rows import write_rows
from assay.study._run import Run
from assay.study._study import Study
from assay.training import Hardware, Record, initialized, predict, train

DONE = "done"


def execute(study: Study, run: Run, root: Path, *, hardware: Hardware = Hardware()) -> None:  # noqa: B008 (frozen)
    """Train unless that is done, predict what is missing, and write the rows."""
    folder = root / run.folder
    splits = _data(run.data, Cut(run.held_out, run.n_train))
    wanted = ["held_out", "test", *study.shifts]
    if not (folder / DONE).is_file() or any(not _whole(folder / f"{split}.npz") for split in wanted):
        _train_and_predict(study, run, splits, folder, hardware)
    write_rows(study, run, folder)


def _train_and_predict(study: Study, run: Run, splits: Splits, folder: Path, hardware: Hardware) -> None:
    made = initialized(network(run.network), splits.train, seed=run.seed)
    names = {"data": run.data, "network": run.network}
    trained = train(
        made, splits, run.built_recipe(), seed=run.seed, out=folder, record=Record(), hardware=hardware, names=names
    )
    for shift in study.shifts:
        file = folder / f"{shift}.npz"
        if not _whole(file):
            file.parent.mkdir(parents=True, exist_ok=True)
            files.write(predict(trained.network, splits.shifts[shift]()), file)
    with replacing(folder / DONE) as stream:
        stream.write(b"")


def _whole(file: Path) -> bool:
    """Whether predictions are there and can be read."""
    try:
        files.read(file)
    except InputError:
        return False
    return True


@lru_cache(maxsize=1)
def _data(name: str, cut: Cut) -> Splits:
    return load(name, cut=cut)
