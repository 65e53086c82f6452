"""Studies: what they expand to, that nothing finished is lost, and what their tables say."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from io import StringIO
from math import nan
from pathlib import Path
from threading import Thread

import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console
from scipy import stats

from assay.arrays import InputError
from assay.report.tables import as_csv, grid, latex, markdown
from assay.study import (
    Study,
    Summary,
    check,
    cohens_d,
    execute,
    expand,
    paired,
    ranks,
    read_rows,
    read_study,
    run_local,
    tables,
    welch,
    within_sem,
)

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


def small(**changes: object) -> Study:
    return Study(**{**SMALL, **changes})


def test_every_combination_is_a_run():
    study = small(recipes=["focal", {"recipe": "label_smoothing", "epsilon": [0.01, 0.05]}], weight_decays=[None, 1e-3])
    runs = expand(study)
    assert len(runs) == 2 * 3 * 2
    assert {run.method for run in runs} == {"focal", "label_smoothing,epsilon=0.01", "label_smoothing,epsilon=0.05"}
    assert len({run.folder for run in runs}) == len(runs)
    assert [run.seed for run in runs] == [0] * 6 + [1] * 6
    assert {run.method for run in expand(study, only="*epsilon=0.01*")} == {"label_smoothing,epsilon=0.01"}


def test_a_run_has_the_values_it_names():
    run = expand(small(recipes=[{"recipe": "sam", "rho": 0.1}], weight_decays=[0.5], learning_rates=[0.01]))[0]
    import torch

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


def test_a_study_extends_another(tmp_path):
    (tmp_path / "a.toml").write_text("\n".join(f"{key} = {json.dumps(value)}" for key, value in SMALL.items()))
    (tmp_path / "b.toml").write_text('extends = "a.toml"\nname = "b"\nepochs = 5\n')
    study = read_study(tmp_path / "b.toml")
    assert (study.name, study.epochs, study.recipes) == ("b", 5, ["cross_entropy", "sam"])


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    progress = run_local(small(), expand(small()), root, workers=2, threads=1)
    assert (progress.done, progress.failed) == (4, [])
    return root


def rows_of(study: Study, root) -> pa.Table:
    return read_rows([root / run.folder for run in expand(study)])


def test_rows_hold_every_number(finished):
    rows = rows_of(small(), finished)
    assert rows.num_rows == 4 * 2 * 6
    assert set(rows["metric"].to_pylist()) == set(small().metrics)
    accuracy = [r["value"] for r in rows.to_pylist() if r["metric"] == "accuracy"]
    assert min(accuracy) > 0.2
    assert not any(np.isnan(accuracy))


def test_one_process_gives_the_same_rows(finished, tmp_path):
    run = expand(small())[0]
    execute(small(), run, tmp_path)
    assert read_rows([tmp_path / run.folder]).equals(read_rows([finished / run.folder]))


def test_a_new_calibrator_needs_no_training(finished, tmp_path):
    root = tmp_path / "runs"
    shutil.copytree(finished, root)
    wider = small(calibrators=["none", "temperature", "platt"], scores=["max_probability", "margin"])
    run = expand(wider)[0]
    before = (root / run.folder / "checkpoint.pt").stat().st_mtime_ns
    execute(wider, run, root)
    found = read_rows([root / run.folder]).to_pylist()
    assert {row["calibrator"] for row in found} == {"none", "temperature", "platt"}
    assert {row["score"] for row in found if row["calibrator"] == "platt"} == {"max_probability"}
    assert (root / run.folder / "checkpoint.pt").stat().st_mtime_ns == before


@pytest.mark.parametrize("file", ["test.npz", "rows.parquet", "held_out.npz"])
def test_a_truncated_file_costs_only_its_own_stage(file, finished, tmp_path):
    root = tmp_path / "runs"
    shutil.copytree(finished, root)
    folder = root / expand(small())[0].folder
    (folder / file).write_bytes((folder / file).read_bytes()[:100])
    progress = run_local(small(), expand(small()), root, workers=1, threads=1)
    assert progress.done == 4
    assert rows_of(small(), root).equals(rows_of(small(), finished))


def test_a_killed_worker_fails_alone_and_is_retried(tmp_path):
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
    again = run_local(study, runs, tmp_path, workers=1, threads=1)
    assert (again.done, again.failed) == (2, [])
    execute(study, runs[0], tmp_path / "whole")
    assert read_rows([folder]).equals(read_rows([tmp_path / "whole" / runs[0].folder]))


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
    while not list((tmp_path / "runs").rglob("rows.parquet")) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    second = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "against cross_entropy" in second.stdout
    assert rows_of(small(), tmp_path / "runs").equals(rows_of(small(), finished))


def test_a_run_that_raises_is_remembered_with_its_log(tmp_path):
    study = small(recipes=["cross_entropy"], seeds=[0], learning_rates=[1e30])
    progress = run_local(study, expand(study), tmp_path, workers=1, threads=1)
    assert len(progress.failed) == 1
    why = json.loads((tmp_path / expand(study)[0].folder / "failed.json").read_text())
    assert why["ended"] == "exit code 1"
    assert any("Diverged" in line for line in why["log"])


A, B = Summary((1.0, 2.0, 4.0)), Summary((2.0, 2.5, 5.5))


def test_statistics_match_scipy():
    assert A.sd == pytest.approx(np.std(A.values, ddof=1))
    assert A.sem == pytest.approx(stats.sem(A.values))
    assert welch(A, B) == pytest.approx(stats.ttest_ind(A.values, B.values, equal_var=False).pvalue)
    assert paired(A, B) == pytest.approx(stats.ttest_rel(A.values, B.values).pvalue)
    assert cohens_d(A, B) == pytest.approx((A.mean - B.mean) / np.sqrt((A.sd**2 + B.sd**2) / 2))
    assert ranks(np.array([0.1, 0.3, 0.1]), higher_is_better=False).tolist() == [1.5, 3, 1.5]


def test_single_values_have_no_test():
    assert np.isnan(welch(Summary((1.0,)), A))
    assert np.isnan(Summary((1.0,)).sd)
    assert welch(Summary((1.0, 1.0)), Summary((1.0, 1.0))) == 1
    assert paired(Summary((1.0, 1.0)), Summary((2.0, 2.0))) == 0


def test_the_error_within_conditions_ignores_what_conditions_differ_by():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(5, 4))
    shifted = values + np.array([0, 10, 20, 30]) + rng.normal(size=(5, 1)) * 100
    assert within_sem(values) == pytest.approx(within_sem(shifted))
    # The mean square of the interaction, by the two-way table.
    residual = values - values.mean(0) - values.mean(1, keepdims=True) + values.mean()
    assert within_sem(values) == pytest.approx(np.sqrt((residual**2).sum() / 12 / 5))


def rows(values: dict[tuple[str, str, str], list[float]]) -> pa.Table:
    records = [
        {
            "data": "d", "network": "n", "method": method, "n_train": None, "learning_rate": None, "weight_decay": None,
            "seed": seed, "split": "test", "calibrator": calibrator, "held_out": 10, "score": "max_probability",
            "metric": metric, "value": value,
        }
        for (method, calibrator, metric), found in values.items()
        for seed, value in enumerate(found)
    ]  # fmt: skip
    return pa.Table.from_pylist(records)


EXAMPLE = rows(
    {
        ("base", "none", "ece"): [0.10, 0.11, 0.12],
        ("base", "none", "auroc"): [0.90, 0.91, 0.92],
        ("smooth_one", "none", "ece"): [0.01, 0.02, 0.03],
        ("smooth_one", "none", "auroc"): [0.70, 0.71, 0.72],
    }
)


def test_a_table_marks_what_is_better_and_worse():
    [table] = tables(EXAMPLE, baseline="base", metrics=["ece", "auroc"])
    base, smooth = table.lines
    assert (base.cells["ece"].word, base.cells["auroc"].best) == ("", True)
    assert (smooth.cells["ece"].word, smooth.cells["auroc"].word) == ("better", "worse")
    assert smooth.cells["ece"].best
    assert smooth.cells["ece"].p_value == pytest.approx(
        stats.ttest_ind([0.01, 0.02, 0.03], [0.10, 0.11, 0.12], equal_var=False).pvalue
    )
    assert base.cells["ece"].p_value == pytest.approx(nan, nan_ok=True)


def test_tables_are_written_in_three_forms(tmp_path):
    [table] = tables(EXAMPLE, baseline="base", metrics=["ece", "auroc"])
    assert "| smooth_one | none | **2.00±1.00** ▲ | 71.00±1.00 ▼ |" in markdown(table)
    assert r"smooth\_one & none & \textbf{2.00$\pm$1.00} $\blacktriangle$" in latex(table)
    assert "d,n,test,smooth_one,none,ece,0.02,0.01" in as_csv([table]).replace("0.019999999999999997", "0.02")


@pytest.mark.parametrize("file", sorted(STUDIES.rglob("*.toml")), ids=lambda file: file.stem)
def test_every_study_of_the_seeds_can_be_read_and_expanded(file):
    runs = expand(read_study(file))
    assert len({run.folder for run in runs}) == len(runs) > 0
    assert all(run.built_recipe().epochs >= 1 for run in runs)


def test_the_terminal_shows_every_name_and_number_in_80_columns():
    metrics = ["accuracy", "ece", "auroc", "aurc", "e_aurc"]
    cells = {
        (method, calibrator, metric): [0.123, 0.456]
        for method in ("cross_entropy", "label_smoothing")
        for calibrator in ("none", "temperature_sb_ece_lb")
        for metric in metrics
    }
    [table] = tables(rows(cells), baseline="cross_entropy", metrics=metrics)
    console = Console(width=80, record=True, file=StringIO())
    console.print(grid(table))
    shown = console.export_text()
    assert "…" not in shown
    assert all(word in shown for word in ("label_smoothing", "  temperature_sb_ece_lb", "28.95", "289.50", "±23.55"))
