"""Studies: what they expand to, that nothing finished is lost, and what their tables say."""

from __future__ import annotations

import csv
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import save_file

from assay import files
from assay._core.arrays import InputError
from assay.calibrators import temperature
from assay.cli.report import Tabulation, rows_command
from assay.cli.study import clean_command, report_command, tune_command
from assay.metrics import aupr_error, e_aurc, ece, evaluate, fpr95
from assay.nn.data import load
from assay.nn.networks import network
from assay.nn.training import initialized
from assay.nn.training._history import Recorder
from assay.study import (
    SeedSummary,
    Study,
    Variant,
    _corrections,
    check,
    execute,
    expand,
    has_rows,
    joined,
    published_beside,
    read_rows,
    read_study,
    reference_method,
    row_table,
    rows_file,
    run_local,
    run_ray,
    state,
    try_out,
    tune,
    tuned_study,
    why,
    write_rows,
)
from assay.study._engine import remember
from assay.study._rows import method_columns
from assay.study._tuning import _chosen

STUDIES = Path(__file__).parents[1] / "studies"
SMALL = {
    "name": "small",
    "data": ["digits"],
    "networks": ["mlp"],
    "recipes": ["cross_entropy", "sam"],
    "seeds": [0, 1],
    "epochs": 2,
    "batch_size": 16,
    "n_train": [200],
    "held_out": 100,
    "calibrators": ["none", "temperature"],
}


TUNED = {
    "data": ["digits", "synthetic"],
    "recipes": [f"{name}@karandikar2021" for name in ("cross_entropy", "s_avuc", "focal", "focal_s_avuc")],
    "epochs": 1,
    "n_train": [100],
    "metrics": ["ece_l2_mass", "accuracy", "mean_entropy"],
    "published": ["karandikar2021/2"],
    "stands_for": {"digits": "cifar10", "synthetic": "cifar100", "mlp": "wrn28_10"},
    "assumed": ["here"],
    "record": {"figures": [], "on": [], "weight_norm": False, "learned_epochs": False},
}


def small(**changes: object) -> Study:
    return Study(**{**SMALL, **changes})


def test_every_combination_is_a_run():
    study = small(recipes=["focal", {"recipe": "label_smoothing", "epsilon": [0.01, 0.05]}], weight_decays=[None, 1e-3])
    runs = expand(study)
    assert len(runs) == 2 * 3 * 2
    assert {str(run.method) for run in runs} == {
        "focal",
        "label_smoothing,epsilon=0.01",
        "label_smoothing,epsilon=0.05",
    }
    assert len({run.folder for run in runs}) == len(runs)
    assert [run.seed for run in runs] == [0] * 6 + [1] * 6
    assert {str(run.method) for run in expand(study, only="*epsilon=0.01*")} == {"label_smoothing,epsilon=0.01"}


def test_a_run_has_the_values_it_names():
    run = expand(small(recipes=[{"recipe": "sam", "rho": 0.1}], weight_decays=[0.5], learning_rates=[0.01]))[0]
    optimizer = run.built_recipe().optimizer(torch.nn.Linear(2, 2))
    assert optimizer.rho == 0.1
    assert optimizer.param_groups[0]["weight_decay"] == 0.5
    assert optimizer.param_groups[0]["lr"] == 0.01
    assert run.built_recipe().epochs == 2


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("seed = [0]", "unknown key 'seed'; did you mean 'seeds'?"),
        ("seeds = []", "seeds"),
        ('recipes = ["focall"]', "did you mean 'focal'"),
        ('recipes = [{ recipe = "focal", gama = 2 }]', "no hyper-parameter 'gama'"),
        ('networks = ["resnet9"]', "unknown network 'resnet9'"),
        ('networks = ["tree_lstm"]', "tree_lstm on digits"),
        ('data = ["cifar11"]', "unknown data set 'cifar11'"),
        ('calibrators = ["temprature"]', "did you mean 'temperature'"),
        ('metrics = ["ecee"]', "did you mean 'ece'"),
        ('shifts = ["fogg_1"]', "no shift 'fogg_1'"),
        ("held_out = 100000", "cannot be cut"),
        ("held_out_sizes = [500]", "cannot be given 500 samples"),
        ('baseline = "crl"', "the baseline 'crl' is none of the methods"),
        ("seeds = [", "cannot be read"),
        ("calibrators = []", "calibrators"),
        ("metrics = []", "metrics"),
        ("held_out = -1", "held_out"),
        ("held_out = 0", "temperature is fitted on held-out samples, and held_out is 0"),
        ('recipes = [{ recipe = "focal", gamma = [[1]] }]', "lists of numbers are values of gammas, starts, cuts only"),
        ('recipes = [{ recipe = "flsd53", cuts = ["low"] }]', "lists of numbers are values of"),
        ('recipes = ["focal,gamma"]', "'gamma' is not name=value"),
        ('chosen = [{ data = "digit", recipe = "sam", rho = 0.1 }]', "unknown data under chosen 'digit'; did you mean"),
        ('chosen = [{ recipe = "focal", gamma = 1 }]', "chosen: 'focal' is none of the recipes: cross_entropy, sam"),
        ('chosen = [{ recipe = "sam" }]', "must name a recipe and its values"),
        ('chosen = [{ recipe = "sam", roh = 1 }]', "no hyper-parameter 'roh'"),
        ('networks = [{ network = "mlp", widht = 3 }]', "no hyper-parameter 'widht' of this network; it has width"),
        ("held_out_sizes = [-5]", "held_out_sizes"),
        ("weight_decays = [-1.0]", "weight_decays"),
        ('calibrators = ["none", "none"]', "none is listed twice"),
        ('calibrators = [{ calibrator = "fixed_temperature", t = -1.0 }]', "t must be > 0"),
        ('calibrators = [{ calibrator = "temperature_optimal_on_test", metric = "ecee" }]', "unknown metric 'ecee'"),
        ('recipes = [{ recipe = "focal", gamma = [] }]', "a list of values is empty"),
        ('record = { figurez = ["ece"] }', "unknown key 'figurez'; did you mean 'figures'?"),
        ('published = ["zhu2022/9"]', "unknown published table 'zhu2022/9'"),
        ('extends = "s.toml"', "extends itself"),
        ("extends = 3", "extends must name a file, got 3"),
        ("seeds = [-1]", "seeds"),
        ('calibrators = ["none", { calibrator = "none" }]', "none is listed twice"),
        ('calibrators = ["temperature", { calibrator = "temperature" }]', "temperature is listed twice"),
        ('scores = ["energy", { score = "energy" }]', "energy is listed twice"),
        ('calibrators = [{ calibrator = "temperature_ece", step = 0.0 }]', "temperature_ece,step=0.0"),
        ('calibrators = ["temperature"]\nscores = ["trust_score"]', 'name "none" among the calibrators'),
        ('scores = ["energy"]\nmetrics = ["ece"]', "only rank, and none of ece is of a ranking"),
        ('calibrators = ["none"]\nmetrics = ["temperature"]', "none of none has a temperature"),
        ('shifts = ["cifar10_c/fog_1"]', "it is read from CIFAR-10-C/ in the folder that ASSAY_DATA names"),
    ],
)
def test_a_bad_study_fails_before_anything_runs(text, says, tmp_path):
    content = {k: v for k, v in SMALL.items() if k not in text.split(" ")[0]}
    lines = [f"{key} = {json.dumps(value)}" for key, value in content.items()]
    (tmp_path / "s.toml").write_text("\n".join([*lines, text]))
    with pytest.raises(InputError) as problem:
        check(read_study(tmp_path / "s.toml"))
    assert says in str(problem.value)
    assert "\n" not in str(problem.value)


def test_runs_start_from_given_weights(tmp_path):
    made = initialized(network("mlp"), load("digits").train, seed=5)
    save_file(made.state_dict(), tmp_path / "given.safetensors")
    study = small(start=str(tmp_path / "given.safetensors"), recipes=["cross_entropy@fine_tuning"], seeds=[0], epochs=1)
    [run] = expand(study)
    execute(study, run, tmp_path)
    assert run.folder.parts[2].endswith("start=given")
    assert json.loads((tmp_path / run.folder / "run.json").read_text())["names"]["start"].startswith(
        "given.safetensors "
    )
    [drawn] = expand(small(recipes=["cross_entropy@fine_tuning"], seeds=[0], epochs=1))
    execute(study, drawn, tmp_path)
    here, there = (files.read(tmp_path / one.folder / "test.npz").values for one in (run, drawn))
    assert not np.allclose(here, there)
    check(study, root=tmp_path)


def test_runs_of_other_data_are_not_taken_for_these(tmp_path, monkeypatch):
    plain = {"recipes": ["cross_entropy"], "calibrators": ["none"], "seeds": [0]}
    study = small(data=["parquet"], n_train=[None], held_out=10, **plain)
    generator = np.random.default_rng(0)
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        for split in ("train", "test"):
            table = {"x": list(generator.normal(size=(60, 3)).astype(np.float32)), "label": np.arange(60) % 2}
            pq.write_table(pa.table(table), tmp_path / folder / f"{split}.parquet")
    monkeypatch.setenv("ASSAY_DATA", str(tmp_path / "a"))
    execute(study, expand(study)[0], tmp_path / "runs")
    assert check(study, root=tmp_path / "runs")
    monkeypatch.setenv("ASSAY_DATA", str(tmp_path / "b"))
    with pytest.raises(InputError, match="was trained on other samples than parquet has now"):
        check(study, root=tmp_path / "runs")
    for damaged in ("{", "[" * 100_000, "[]"):
        (tmp_path / "runs" / expand(study)[0].folder / "run.json").write_text(damaged)
        with pytest.raises(InputError, match=r"run\.json: cannot be read"):
            check(study, root=tmp_path / "runs")


def test_a_failure_of_one_study_is_none_of_another(finished, tmp_path, capsys):
    root = tmp_path / "runs"
    shutil.copytree(finished, root)
    other, third = small(metrics=["mce"]), small(metrics=["oe"])
    folder = root / expand(other)[0].folder
    remember(other, folder, "exit code 1")
    assert [state(study, folder) for study in (small(), other, third)] == ["done", "failed", "begun"]
    assert why(folder).startswith("exit code 1")
    (tmp_path / "s.toml").write_text("\n".join(f"{key} = {json.dumps(value)}" for key, value in SMALL.items()))
    (tmp_path / "other.toml").write_text('extends = "s.toml"\nmetrics = ["mce"]\n')
    clean_command(tmp_path / "other.toml", out=root, failed_only=True)
    assert "0 runs deleted" in capsys.readouterr().out
    assert [state(study, folder) for study in (small(), other)] == ["done", "begun"]
    (folder / "done").unlink()
    remember(other, folder, "killed")  # in training, which is the same for all
    assert [state(study, folder) for study in (small(), other, third)] == ["done", "failed", "failed"]
    clean_command(tmp_path / "s.toml", out=root)
    assert "4 runs deleted" in capsys.readouterr().out
    assert not folder.exists()


@pytest.mark.parametrize("flag", ["to", "html"])
def test_a_study_is_not_written_over(finished, tmp_path, flag):
    file = tmp_path / "s.toml"
    file.write_text("\n".join(f"{key} = {json.dumps(value)}" for key, value in SMALL.items()))
    before = file.read_text()
    with pytest.raises(InputError, match="a name of its own"):
        report_command(file, out=finished, **{flag: file})
    with pytest.raises(InputError, match="a name of its own"):
        tune_command(file, to=file)
    assert file.read_text() == before


def test_what_a_table_is_without_is_written_with_it(finished, tmp_path):
    file = tmp_path / "s.toml"
    wider = {**SMALL, "seeds": [0, 1, 2]}
    file.write_text("\n".join(f"{key} = {json.dumps(value)}" for key, value in wider.items()))
    for ending in ("md", "tex"):
        report_command(file, out=finished, to=tmp_path / f"t.{ending}")
        assert "2 of 6 runs are not done and left out" in (tmp_path / f"t.{ending}").read_text()


def test_a_study_extends_another(tmp_path):
    (tmp_path / "a.toml").write_text("\n".join(f"{key} = {json.dumps(value)}" for key, value in SMALL.items()))
    (tmp_path / "b.toml").write_text('extends = "a.toml"\nname = "b"\nepochs = 5\n')
    study = read_study(tmp_path / "b.toml")
    assert (study.name, study.epochs, study.recipes) == ("b", 5, ["cross_entropy", "sam"])


def test_what_two_studies_assume_is_put_together(tmp_path):
    content = {**SMALL, "assumed": "one thing"}
    (tmp_path / "a.toml").write_text("\n".join(f"{key} = {json.dumps(value)}" for key, value in content.items()))
    (tmp_path / "b.toml").write_text('extends = "a.toml"\nassumed = ["another", "one thing"]')
    assert read_study(tmp_path / "b.toml").assumed == ["one thing", "another"]
    for odd in ("3", "[{ x = 1 }]"):
        (tmp_path / "b.toml").write_text(f'extends = "a.toml"\nassumed = {odd}')
        with pytest.raises(InputError, match=r"b\.toml: assumed: .*string"):
            read_study(tmp_path / "b.toml")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    progress = run_local(small(), expand(small()), root, workers=2, threads=1)
    assert (progress.done, progress.failed) == (4, [])
    return root


def rows_of(study: Study, root) -> pa.Table:
    return read_rows(study, [root / run.folder for run in expand(study)])


def test_rows_hold_every_number(finished):
    rows = rows_of(small(), finished)
    assert rows.num_rows == 4 * 2 * 6
    assert set(rows["metric"].to_pylist()) == set(small().metrics)
    accuracy = [r["value"] for r in rows.to_pylist() if r["metric"] == "accuracy"]
    assert min(accuracy) > 0.2
    assert not any(np.isnan(accuracy))


def test_recipe_set_up_and_each_value_are_columns(finished, tmp_path):
    root, file = tmp_path / "runs", tmp_path / "s.toml"
    methods = ["cross_entropy", {"recipe": "focal@mukhoti2020", "gamma": [1.0, 3], "learning_rate": 0.01}]
    fixed = {"calibrator": "fixed_temperature", "t": 2.0}
    study = small(recipes=methods, seeds=[0], calibrators=["none", fixed], metrics=["ece"])
    for run in expand(study):
        shutil.copytree(finished / expand(small())[0].folder, root / run.folder)
        write_rows(study, run, root / run.folder)
    content = {"recipes": methods, "seeds": [0], "calibrators": ["none", fixed], "metrics": ["ece"]}
    lines = [f"{key} = {toml(value)}" for key, value in {**SMALL, **content}.items()]
    file.write_text("\n".join(lines))
    rows_command(file, to=tmp_path / "rows.parquet", out=root)
    rows = pq.read_table(tmp_path / "rows.parquet")
    assert rows.equals(rows_of(study, root))
    found = [[row[key] for key in ("recipe", "setup", "gamma", "recipe_learning_rate")] for row in rows.to_pylist()]
    assert found[::2] == [
        ["cross_entropy", None, None, None],
        ["focal", "mukhoti2020", 1.0, 0.01],
        ["focal", "mukhoti2020", 3.0, 0.01],
    ]
    assert rows["calibrator_name"].to_pylist()[:2] == ["none", "fixed_temperature"]
    assert rows["calibrator_t"].to_pylist()[:2] == [None, 2.0]


def toml(value: object) -> str:
    """JSON is TOML but for its tables."""
    return re.sub(r'"(\w+)": ', r"\1 = ", json.dumps(value))


def test_rows_are_written_with_checksums(finished, tmp_path):
    file, study = tmp_path / "rows.parquet", tmp_path / "s.toml"
    study.write_text("\n".join(f"{key} = {toml(value)}" for key, value in SMALL.items()))
    rows_command(study, to=file, out=finished)
    page, content = pq.read_metadata(file).row_group(0).column(0), bytearray(file.read_bytes())
    content[(page.dictionary_page_offset or page.data_page_offset) + page.total_compressed_size - 1] ^= 1
    file.write_bytes(content)
    with pytest.raises(OSError, match="CRC"):
        pq.read_table(file, page_checksum_verification=True)


def test_rows_in_csv_are_no_formulas(tmp_path, monkeypatch):
    (tmp_path / "s.toml").write_text("\n".join(f"{key} = {toml(value)}" for key, value in SMALL.items()))
    odd = row_table([{"data": "=1+1", "method": "-x", "value": -1.0, "=value": "@y"}])
    monkeypatch.setattr("assay.cli.report._rows", lambda *_: odd)
    rows_command(tmp_path / "s.toml", to=tmp_path / "rows.csv", out=tmp_path)
    [row] = csv.DictReader((tmp_path / "rows.csv").read_text().splitlines())
    assert [row[name] for name in ("data", "method", "value", "'=value")] == ["'=1+1", "'-x", "-1", "'@y"]


def test_a_value_that_is_text_in_one_run_is_text_in_all():
    number, text = (row_table([method_columns(Variant("focal", {"gamma": gamma}))]) for gamma in (3.0, "three"))
    assert joined([number, text])["gamma"].to_pylist() == ["3", "three"]
    assert joined([text, number])["gamma"].to_pylist() == ["three", "3"]


def test_a_baseline_is_found_whatever_way_its_values_are_written():
    study = small(recipes=["cross_entropy", {"recipe": "focal", "gamma": 3.0}], baseline="focal(gamma=3)")
    assert str(reference_method(study)) == "focal,gamma=3.0"


def test_one_process_gives_the_same_rows(finished, tmp_path):
    run = expand(small())[0]
    execute(small(), run, tmp_path)
    assert read_rows(small(), [tmp_path / run.folder]).equals(read_rows(small(), [finished / run.folder]))


def test_a_new_calibrator_needs_no_training(finished, tmp_path):
    root = tmp_path / "runs"
    shutil.copytree(finished, root)
    wider = small(calibrators=["none", "temperature", "platt"], scores=["max_probability", "margin"])
    run = expand(wider)[0]
    before = (root / run.folder / "checkpoint.pt").stat().st_mtime_ns
    execute(wider, run, root)
    found = read_rows(wider, [root / run.folder]).to_pylist()
    assert {row["calibrator"] for row in found} == {"none", "temperature", "platt"}
    assert {row["score"] for row in found if row["calibrator"] == "platt"} == {"max_probability"}
    assert (root / run.folder / "checkpoint.pt").stat().st_mtime_ns == before


@pytest.fixture
def epochs_trained(monkeypatch) -> list[int]:
    """The epochs that are trained in this process."""
    seen: list[int] = []
    watching = Recorder.watching

    def watched(self: Recorder, epoch: int):
        seen.append(epoch)
        return watching(self, epoch)

    monkeypatch.setattr(Recorder, "watching", watched)
    return seen


@pytest.mark.parametrize("file", ["test.npz", rows_file(small()), "held_out.npz", "checkpoint.pt"])
def test_a_truncated_file_of_a_finished_run_costs_no_training(file, finished, tmp_path, epochs_trained):
    root = tmp_path / "runs"
    shutil.copytree(finished, root)
    run = expand(small())[0]
    truncate(root / run.folder / file)
    execute(small(), run, root)
    wider = small(metrics=["accuracy", "mce"])  # which is computed from the predictions
    execute(wider, run, root)
    assert epochs_trained == []
    assert rows_of(small(), root).equals(rows_of(small(), finished))
    assert len(read_rows(wider, [root / run.folder])) == 2 * 2


def truncate(file) -> None:
    file.write_bytes(file.read_bytes()[:100])


def test_a_killed_worker_fails_alone_and_loses_at_most_an_epoch(tmp_path, epochs_trained):
    study = small(recipes=["cross_entropy"], epochs=60, seeds=[0, 1])
    runs = expand(study)
    folder = tmp_path / runs[0].folder
    killer = Thread(target=_kill_writer_of, args=(folder / "log.txt", folder / "checkpoint.pt"))
    killer.start()
    progress = run_local(study, runs, tmp_path, workers=1, threads=1)
    killer.join()
    assert progress.failed == [runs[0]]
    assert progress.done == 1
    why = json.loads((folder / "failed.json").read_text())
    assert why["ended"] == "killed by signal 9"
    kept = len(torch.load(folder / "checkpoint.pt", weights_only=True)["history"]["epochs"])
    assert 0 < kept < 60
    execute(study, runs[0], tmp_path)
    assert epochs_trained == list(range(kept, 60))
    execute(study, runs[0], tmp_path / "whole")
    assert read_rows(study, [folder]).equals(read_rows(study, [tmp_path / "whole" / runs[0].folder]))


def test_a_run_under_way_whose_checkpoint_is_truncated_begins_anew(finished, tmp_path, epochs_trained):
    run = expand(small())[0]
    folder = tmp_path / run.folder
    folder.mkdir(parents=True)
    shutil.copy(finished / run.folder / "checkpoint.pt", folder)
    truncate(folder / "checkpoint.pt")
    execute(small(), run, tmp_path)
    assert epochs_trained == [0, 1]
    assert read_rows(small(), [folder]).equals(read_rows(small(), [finished / run.folder]))


def _kill_writer_of(log, once_there_is) -> None:
    """Kill the process whose output goes to `log`, as soon as there is a certain file."""
    deadline = time.monotonic() + 100
    while not once_there_is.is_file() and time.monotonic() < deadline:
        time.sleep(0.01)
    for name in os.listdir("/proc"):
        if name.isdigit() and _is_child_writing(int(name), log):
            os.kill(int(name), signal.SIGKILL)


def _is_child_writing(pid: int, log) -> bool:
    try:
        return os.readlink(f"/proc/{pid}/fd/1") == str(log)
    except OSError:
        return False


def test_a_killed_study_goes_on_where_it_was(finished, tmp_path):
    lines = [f"{key} = {json.dumps(value)}" for key, value in SMALL.items()]
    (tmp_path / "s.toml").write_text("\n".join(lines))
    words = [sys.executable, "-m", "assay", "study", "run", str(tmp_path / "s.toml"), "--threads", "1"]
    words += ["--out", str(tmp_path / "runs")]
    first = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    deadline = time.monotonic() + 120
    while not list((tmp_path / "runs").rglob("rows.*.arrow")) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    [done, *_] = (tmp_path / "runs").rglob("rows.*.arrow")
    trained = (done.parent / "checkpoint.pt").stat().st_mtime_ns
    second = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "against cross_entropy" in second.stdout
    assert (done.parent / "checkpoint.pt").stat().st_mtime_ns == trained
    assert rows_of(small(), tmp_path / "runs").equals(rows_of(small(), finished))


def test_a_run_that_raises_is_remembered_with_its_log(tmp_path):
    study = small(recipes=["cross_entropy"], seeds=[0], learning_rates=[1e30])
    progress = run_local(study, expand(study), tmp_path, workers=1, threads=1)
    assert len(progress.failed) == 1
    why = json.loads((tmp_path / expand(study)[0].folder / "failed.json").read_text())
    assert why["ended"] == "exit code 1"
    assert any("Diverged" in line for line in why["log"])


@pytest.mark.parametrize("file", sorted(STUDIES.rglob("*.toml")), ids=lambda file: file.stem)
def test_every_study_of_the_seeds_can_be_read_and_expanded(file):
    runs = expand(read_study(file))
    assert len({run.folder for run in runs}) == len(runs) > 0
    assert all(run.built_recipe().epochs >= 1 for run in runs)


def test_what_is_done_is_not_begun_again(finished, tmp_path):
    root = tmp_path / "runs"
    shutil.copytree(finished, root)
    for log in root.rglob("log.txt"):
        log.unlink()
    assert run_local(small(), expand(small()), root, workers=1, threads=1).done == 4
    assert not list(root.rglob("log.txt"))


def test_both_engines_give_the_same_rows(finished, tmp_path):
    study = small(seeds=[0])
    [diverging] = expand(small(recipes=["cross_entropy"], seeds=[0], learning_rates=[1e30]))
    progress = run_ray(study, [diverging, *expand(study)], tmp_path, workers=1, threads=1)
    assert (progress.done, progress.failed) == (2, [diverging])
    assert rows_of(study, tmp_path).equals(rows_of(study, finished))
    assert "Diverged" in json.loads((tmp_path / diverging.folder / "failed.json").read_text())["ended"]


def test_the_engine_ray_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"the engine ray needs ray: pip install 'assay-ml\[ray\]'"):
        run_ray(small(), expand(small()), tmp_path, workers=1)


def test_names_of_what_trains_are_looked_up_by_the_check(tmp_path):
    """A study can be read and reported where torch, which has their tables, is not installed."""
    study = small(recipes=["focall"])
    assert expand(study)[0].method == Variant("focall")
    with pytest.raises(InputError, match=r"unknown recipe 'focall'; did you mean 'focal'\?"):
        check(study)


@pytest.fixture
def endless(tmp_path) -> Iterator[tuple[subprocess.Popen, Study]]:
    """A study under way in a process, its first run some epochs old, that will not end by itself."""
    content = {**SMALL, "seeds": [0], "recipes": ["cross_entropy"], "epochs": 100_000}
    (tmp_path / "s.toml").write_text("\n".join(f"{key} = {json.dumps(value)}" for key, value in content.items()))
    words = [sys.executable, "-m", "assay", "study", "run", str(tmp_path / "s.toml"), "--threads", "1"]
    with subprocess.Popen(
        [*words, "--out", str(tmp_path / "runs")],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # tests in the background have it ignored
    ) as process:
        deadline = time.monotonic() + 120
        while not list((tmp_path / "runs").rglob("checkpoint.pt")) and time.monotonic() < deadline:
            time.sleep(0.02)
        yield process, Study(**content)
        process.kill()


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_a_study_that_is_asked_to_stop_says_how_to_go_on(sign, endless, tmp_path):
    process, study = endless
    process.send_signal(sign)
    said, _ = process.communicate(timeout=60)
    assert "continues from here" in said
    assert process.returncode == 130
    [run] = expand(study)
    assert not has_rows(study, tmp_path / "runs" / run.folder)
    assert not (tmp_path / "runs" / run.folder / "failed.json").is_file()


def test_workers_leave_with_their_study(endless, tmp_path):
    process, study = endless
    log = tmp_path / "runs" / expand(study)[0].folder / "log.txt"
    process.kill()
    process.wait()
    deadline = time.monotonic() + 20
    while workers := [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and _is_child_writing(int(pid), log)]:
        if time.monotonic() > deadline:
            for pid in workers:
                os.kill(pid, signal.SIGKILL)
            pytest.fail("a worker goes on without its study")
        time.sleep(0.05)


def test_calibrators_have_values_and_a_bound_is_fitted_on_what_it_is_judged_on(finished, tmp_path):
    root = tmp_path / "runs"
    shutil.copytree(finished, root)
    optimal = {"calibrator": "temperature_optimal_on_test", "metric": "ece"}
    fixed = {"calibrator": "fixed_temperature", "t": [1.5, 2.0]}
    wider = small(calibrators=["none", "temperature_ece", fixed, optimal], metrics=["ece", "temperature"])
    run = expand(wider)[0]
    execute(wider, run, root)
    found = {(r["calibrator"], r["metric"]): r["value"] for r in read_rows(wider, [root / run.folder]).to_pylist()}
    assert found["fixed_temperature,t=2.0", "temperature"] == 2
    assert ("none", "temperature") not in found
    name = "temperature_optimal_on_test,metric=ece"
    assert found[name, "ece"] <= min(value for (_, metric), value in found.items() if metric == "ece")


def scored(finished, tmp_path, score: object) -> dict[tuple[str, str, str], float]:
    root = tmp_path / "runs"
    shutil.copytree(finished, root)
    wider = small(scores=["max_probability", score], metrics=["auroc", "ece"])
    execute(wider, expand(wider)[0], root)
    found = read_rows(wider, [root / expand(wider)[0].folder]).to_pylist()
    return {(row["score"], row["calibrator"], row["metric"]): row["value"] for row in found}


def test_a_score_of_the_features_needs_no_training_again(finished, tmp_path, epochs_trained):
    found = scored(finished, tmp_path, "trust_score")
    assert epochs_trained == []
    assert ("trust_score", "none", "ece") not in found  # it is no probability
    assert ("trust_score", "temperature", "auroc") not in found
    assert 0.5 < found["trust_score", "none", "auroc"] < 1


def test_lists_are_values_and_lists_of_lists_are_an_axis():
    study = small(
        recipes=[{"recipe": "flsd53", "cuts": [0.2]}, {"recipe": "focal_scheduled", "gammas": [[5, 3, 1], [5, 3, 2]]}]
    )
    names = ["flsd53,cuts=[0.2]", "focal_scheduled,gammas=[5,3,1]", "focal_scheduled,gammas=[5,3,2]"]
    assert [str(method) for method in study.methods] == names
    assert small(recipes=names).methods == study.methods
    assert {str(run.built_recipe().name) for run in expand(study)} == set(names)


def test_a_study_may_hold_nothing_out_and_give_values_to_networks(tmp_path):
    study = small(
        held_out=0,
        networks=[{"network": "mlp", "width": [4, 8]}],
        recipes=["cross_entropy"],
        calibrators=["none", "fixed_temperature"],
        metrics=["ece", "temperature"],
        seeds=[0],
    )
    check(study)
    for run in expand(study):
        execute(study, run, tmp_path)
        assert not (tmp_path / run.folder / "held_out.npz").exists()
    rows = rows_of(study, tmp_path)
    assert set(rows["network"].to_pylist()) == {"mlp,width=4", "mlp,width=8"}
    assert set(rows["held_out"].to_pylist()) == {0}
    assert rows.filter(pc.field("metric") == "temperature")["value"].to_pylist() == [1.5, 1.5]


def test_a_score_may_be_trained(finished, tmp_path):
    """ConfidNet estimates a probability of being right, so it has an ECE (singh2021, table 4)."""
    found = scored(finished, tmp_path, {"score": "confidnet", "epochs": 1, "fine_tuning": 1})
    assert 0 < found["confidnet,epochs=1,fine_tuning=1", "none", "auroc"] < 1
    assert 0 < found["confidnet,epochs=1,fine_tuning=1", "none", "ece"] < 1


def test_a_score_may_be_chosen_on_held_out_samples(finished, tmp_path):
    found = scored(finished, tmp_path, "max_logit_p_norm")
    assert 0 < found["max_logit_p_norm", "none", "auroc"] < 1


def test_metrics_may_follow_the_conventions_of_a_paper(finished, tmp_path):
    conventions = ["fpr95,nearest=True", "e_aurc,closed_form=True", "aupr_error,trapezoid=True", "ece,n_bins=25"]
    study = small(metrics=["ece", *conventions], calibrators=["none"])
    root = tmp_path / "runs"
    shutil.copytree(finished, root)
    run = expand(study)[0]
    write_rows(study, run, root / run.folder)
    found = {row["metric"]: row["value"] for row in read_rows(study, [root / run.folder]).to_pylist()}
    test = files.read(root / run.folder / "test.npz").outcomes()
    assert found == {
        "ece": ece(test),
        "fpr95,nearest=True": fpr95(test, nearest=True),
        "e_aurc,closed_form=True": e_aurc(test, closed_form=True),
        "aupr_error,trapezoid=True": aupr_error(test, trapezoid=True),
        "ece,n_bins=25": ece(test, 25),
    }
    with pytest.raises(InputError, match="no hyper-parameter 'bins' of this metric; it has n_bins, norm"):
        evaluate(test, ["ece,bins=3"])


def test_values_are_chosen_in_turn_and_kept(tmp_path):
    study = small(recipes=["cross_entropy", "label_smoothing"], seeds=[0], epochs=1, calibrators=["none"],
                  tune={"epsilon": [0.0, 0.9], "weight_decay": [1e-4, 10.0]})  # fmt: skip
    batches = []

    def run_all(runs):
        batches.append([str(run.method) for run in runs])
        for run in runs:
            execute(study, run, tmp_path)

    found = tune(study, tmp_path, run_all)
    plain, smooth = (found.best["digits", "mlp"][Variant(name)] for name in ("cross_entropy", "label_smoothing"))
    kept = smooth.values["epsilon"]
    assert batches[0] == ["label_smoothing,epsilon=0.0", "label_smoothing,epsilon=0.9"]
    assert batches[1][:2] == ["cross_entropy,weight_decay=0.0001", "cross_entropy,weight_decay=10.0"]
    assert batches[1][2:] == [f"label_smoothing,epsilon={kept},weight_decay={w}" for w in (1e-4, 10.0)]
    assert plain.values == {"weight_decay": 1e-4}  # a decay of 10 leaves nothing of the weights
    trial = next(trial for trial in found.trials if trial.method == Variant("label_smoothing", {"epsilon": 0.0}))
    run = expand(small(recipes=[{"recipe": "label_smoothing", "epsilon": 0.0}], seeds=[0], epochs=1))[0]
    assert trial.error.mean == float(evaluate(files.read(tmp_path / run.folder / "held_out.npz"))["ece"])


def test_values_may_be_chosen_for_a_data_set_and_keep_the_name_of_the_method():
    study = small(
        data=["digits", "synthetic"],
        recipes=["focal@wang2021"],
        seeds=[0],
        chosen=[
            {"recipe": "focal@wang2021", "gamma": 5},
            {"data": "synthetic", "recipe": "focal@wang2021", "gamma": 1},
        ],
        published=["wang2021/2"],
        calibrators=["temperature_ece"],
        stands_for={"digits": "cifar100", "synthetic": "svhn", "mlp": "resnet32"},
    )
    digits, synthetic = expand(study)
    assert (digits.shown, str(digits.method)) == ("focal@wang2021", "focal@wang2021,gamma=5")
    assert (synthetic.shown, str(synthetic.method)) == ("focal@wang2021", "focal@wang2021,gamma=1")
    assert "focal@wang2021,gamma=5" in str(digits.folder)
    beside = published_beside(study)
    found = {
        data: beside(
            {"data": data, "network": "mlp", "split": "test"},
            "focal@wang2021",
            "temperature_ece",
            "max_probability",
            "ece",
        )
        for data in study.data
    }
    assert (found["digits"].data, found["digits"].method) == ("cifar100", "focal(gamma=5)")
    assert (found["synthetic"].data, found["synthetic"].method) == ("svhn", "focal(gamma=1)")


def test_a_grid_may_depend_on_the_recipe():
    study = small(tune={"kappa": {"*s_avuc": [0.3], "*avuc*": [1.0, 2.0]}, "beta": [0.1]})
    names = ("focal_s_avuc", "avuc_gs", "mmce")
    assert [study.grid("kappa", Variant(name)) for name in names] == [[0.3], [1.0, 2.0], []]
    assert study.grid("beta", Variant("mmce")) == [0.1]


@pytest.mark.long
def test_a_tuned_study_of_two_data_sets_runs_and_is_reported(tmp_path):
    """karandikar2021: a choice for each data set, and one pooled effect for each secondary loss."""
    (tmp_path / "s.toml").write_text(
        "\n".join(f"{key} = {toml(value)}" for key, value in {**SMALL, **TUNED}.items())
        + "\n[tune]\nkappa = [0.3, 0.7]\nweight_decay = [1e-4, 0.5]\n"
    )
    study = read_study(tmp_path / "s.toml")

    def run_all(runs):
        for run in runs:
            execute(study, run, tmp_path / "runs")

    found = tune(study, tmp_path / "runs", run_all)
    assert set(found.best) == {("digits", "mlp"), ("synthetic", "mlp")}
    assert all("weight_decay" in method.values for methods in found.best.values() for method in methods.values())
    file = tmp_path / "tuned.toml"
    file.write_text(tuned_study(study, tmp_path / "s.toml", found, file, on="held_out", metric="ece"))
    tuned = read_study(file)
    assert tuned.assumed == ["here", "values of kappa, weight_decay chosen on held_out by ece"]
    for run in expand(tuned):
        assert run.method == found.best[run.data, run.network][Variant(*run.shown.split("@")[:1], {}, "karandikar2021")]
        execute(tuned, run, tmp_path / "runs")
    to, html, figures = (tmp_path / name for name in ("x.tex", "x.html", "f"))
    how = Tabulation(published=True)
    report_command(file, out=tmp_path / "runs", to=to, html=html, figures=figures, how=how)
    assert (tmp_path / "f" / "effects-of-secondary-losses-on-ece_l2_mass.svg").read_text().count("s_avuc") > 0
    rows = rows_of(tuned, tmp_path / "runs")
    assert set(rows["method"].to_pylist()) == set(TUNED["recipes"])
    assert None not in rows["recipe_weight_decay"].to_pylist()


@pytest.mark.parametrize(
    ("changes", "metric", "says"),
    [
        ({}, "ecee", "unknown metric"),
        ({}, "auroc", "auroc is not to be low"),
        ({"tune": {"epsilonn": [0.1]}}, "ece", "no recipe of the study has a hyper-parameter 'epsilonn'"),
        ({"n_train": [100, 200]}, "ece", "n_train has several"),
        ({"tune": {}}, "ece", r"says nothing under \[tune\]"),
    ],
)
def test_tuning_that_cannot_be_done_is_refused_before_anything_runs(changes, metric, says, tmp_path):
    study = small(**{"recipes": ["label_smoothing"], "tune": {"epsilon": [0.1]}, **changes})
    with pytest.raises(InputError, match=says):
        tune(study, tmp_path, lambda runs: pytest.fail("something runs"), metric=metric)


def test_studies_that_ask_other_things_share_runs_and_keep_their_rows(finished, tmp_path):
    root = tmp_path / "runs"
    shutil.copytree(finished, root)
    before = rows_of(small(), root)
    other = small(calibrators=["temperature"], metrics=["mce"])
    execute(other, expand(other)[0], root)
    assert rows_of(small(), root).equals(before)
    assert set(rows_of(other, root)["metric"].to_pylist()) == {"mce"}


def test_a_run_waits_for_another_study_that_is_at_work_on_it(finished, tmp_path):
    root = tmp_path / "runs"
    shutil.copytree(finished, root)
    other = small(metrics=["mce"])
    folder = root / expand(other)[0].folder
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        waiting = Thread(target=execute, args=(other, expand(other)[0], root))
        waiting.start()
        waiting.join(1)
        assert waiting.is_alive()
        assert not has_rows(other, folder)
    waiting.join()
    assert has_rows(other, folder)


def test_smaller_held_out_sets_are_drawn_and_within_larger_ones(finished, tmp_path, monkeypatch):
    given = []

    def calibrator(held_out):
        given.append(held_out.ids.tolist())
        return temperature(held_out)

    monkeypatch.setattr(_corrections, "calibrator", lambda name: calibrator)
    root = tmp_path / "runs"
    shutil.copytree(finished, root)
    sized = small(calibrators=["temperature"], held_out_sizes=[20, 50, None])
    execute(sized, expand(sized)[0], root)
    few, more, all_of_them = given
    assert set(few) < set(more) < set(all_of_them)
    assert few != all_of_them[:20]


def test_the_lowest_error_may_cost_less_than_a_per_cent_of_accuracy():
    def judged(accuracy: float, error: float) -> tuple[SeedSummary, SeedSummary]:
        return SeedSummary((accuracy,)), SeedSummary((error,))

    one, two, three = (Variant("focal", {"gamma": gamma}) for gamma in (1, 2, 3))
    values = {one: judged(0.90, 0.10), two: judged(0.895, 0.05), three: judged(0.88, 0.01)}
    assert _chosen(values, 0.01) == two
    assert _chosen(values, 1.0) == three
    assert _chosen(values, 0.0) == one
    assert _chosen(values, 0.0055) == two
    assert _chosen(values, 0.0055, relative=True) == one  # 0.0055 * 0.90 is less than the .005 given up


def test_trying_a_study_out_says_everything_that_is_wrong(tmp_path, monkeypatch):
    monkeypatch.setenv("ASSAY_DATA", str(tmp_path))
    whole = try_out(small(recipes=["cross_entropy", "fmfp", "crl", "cs_kd"], networks=["mlp", "mlp,width=8"]))
    assert whole.problems == ()
    assert sum(cost.runs for cost in whole.costs) == 4 * 2 * 2
    assert all(cost.seconds > 0 for cost in whole.costs)
    weights, predicted = 8 * 64 + 8 + 8 * 8 + 8 + 8 * 10 + 10, (100 + 359) * 10
    assert min(cost.disk for cost in whole.costs) == 4 * (3 * weights + predicted)
    words = {"recipe": "focal", "gamma": "three"}
    tried = try_out(small(data=["cifar10", "digits"], networks=["resnet8"], recipes=["mixup", words]))
    missing, wrong, again = tried.problems
    assert "cifar10" in missing  # and yet steps are made, on images of its shape
    assert "focal,gamma=three with resnet8 on cifar10" in wrong
    assert "focal,gamma=three with resnet8 on digits" in again
    assert any("tree_lstm" in problem for problem in try_out(small(data=["cifar10"], networks=["tree_lstm"])).problems)


def test_a_report_is_written_in_every_form(finished, tmp_path):
    root, file = tmp_path / "runs", tmp_path / "s.toml"
    shutil.copytree(finished, root)
    content = SMALL | {"published": ["zhu2022/2"], "stands_for": {"digits": "cifar10", "mlp": "preact_resnet110"}}
    inline = "{ digits = 'cifar10', mlp = 'preact_resnet110' }"
    lines = [f"{key} = {inline if key == 'stands_for' else json.dumps(value)}" for key, value in content.items()]
    file.write_text("\n".join(lines))
    for name in ("t.md", "t.tex", "t.csv"):
        report_command(file, out=root, to=tmp_path / name, how=Tabulation(published=True, holm=True, test="paired"))
        assert "cross" in (tmp_path / name).read_text()
    report_command(file, out=root, html=tmp_path / "s.html", pages=True, figures=tmp_path / "figures")
    assert "audit.html" in (tmp_path / "s.html").read_text()
    assert len(list(root.rglob("audit.html"))) == 4
    assert list((tmp_path / "figures").rglob("*.svg"))
    with pytest.raises(InputError, match=r"written as \.md, \.tex, \.csv"):
        report_command(file, out=root, to=tmp_path / "t.docx")
