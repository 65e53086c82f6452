"""Your own methods, without a fork: named package.module:function in studies, on the command line and in Python."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from assay import evaluate, examples
from assay._core import own_code
from assay._core.arrays import InputError
from assay.calibrators import CALIBRATORS, calibrator
from assay.cli.list import lines
from assay.metrics import METRICS
from assay.nn.data import DATA
from assay.nn.networks import NETWORKS
from assay.nn.recipes import RECIPES, recipe
from assay.scores import SCORES, margin, score
from assay.study import execute, read_rows, read_study, rows_file
from assay.study import own_code as code_of
from assay.study._checking import check, try_out

OWN = """
from dataclasses import replace
from pathlib import Path
import torch
import torch.nn.functional as F
from assay.calibrators import fixed_temperature
from assay.nn.objectives import of_loss
from assay.scores import margin

Path(__file__).with_name("imported").touch()

def my_loss(logits, labels, *, strength=0.0):
    return F.cross_entropy(logits, labels) + strength * logits.square().mean()

def my_objective(task, weight=1.0):
    return of_loss(lambda logits, labels: weight * F.cross_entropy(logits, labels))(task)

def my_optimizer(network, *, rate=0.1):
    return torch.optim.SGD(network.parameters(), lr=rate)

def my_recipe(baseline, *, factor=1):
    return replace(baseline, batch_size=factor * baseline.batch_size)

def nothing(baseline): pass

def my_calibrator(held_out, *, scale=1.0):
    return fixed_temperature(held_out, t=scale)

def my_score(predictions, *, power=1.0):
    return margin(predictions) ** power

def my_metric(predictions, *, cut=0.5):
    return (predictions.outcomes().confidence > cut).mean()
"""
STUDY = """
name = "own"
data = ["synthetic"]
networks = ["mlp"]
recipes = ["cross_entropy", { loss = "own_methods:my_loss", strength = [0.1, 0.5] }, "own_methods:my_recipe"]
seeds = [0]
epochs = 1
n_train = [60]
calibrators = ["none", { calibrator = "own_methods:my_calibrator", scale = 2.0 }]
scores = ["max_probability", "own_methods:my_score,power=2.0"]
metrics = ["accuracy", "auroc", "mean_confidence", "own_methods:my_metric,cut=0.0"]
"""


@pytest.fixture
def beside(tmp_path, monkeypatch) -> Path:
    """The folder of a study with a module beside it, which is not where Python looks."""
    (tmp_path / "place").mkdir()
    (tmp_path / "place/own_methods.py").write_text(OWN)
    (tmp_path / "place/study.toml").write_text(STUDY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(own_code, "PLACES", [])
    monkeypatch.delitem(sys.modules, "own_methods", raising=False)
    return tmp_path / "place"


def test_reading_a_study_imports_nothing_and_says_what_it_would(beside):
    study = read_study(beside / "study.toml")
    assert [str(method) for method in study.methods] == [
        "cross_entropy",
        "loss=own_methods:my_loss,strength=0.1",
        "loss=own_methods:my_loss,strength=0.5",
        "own_methods:my_recipe",
    ]
    names = ("my_loss", "my_recipe", "my_calibrator", "my_score", "my_metric")
    assert code_of(study) == [f"own_methods:{name}" for name in names]
    rows_file(study)
    assert try_out(study).problems == ()
    with pytest.raises(InputError, match="allow_code=True"):
        check(study)
    assert not (beside / "imported").exists()


def test_a_study_calls_methods_beside_it_with_their_values(beside, tmp_path):
    study = read_study(beside / "study.toml")
    runs = check(study, allow_code=True)
    run = next(run for run in runs if run.method.values.get("strength") == 0.1)
    assert str(run.folder) == "synthetic,n_train=60/mlp/loss=own_methods.my_loss,strength=0.1,epochs=1/0"
    execute(study, run, tmp_path, allow_code=True)
    rows = read_rows(study, [tmp_path / run.folder]).to_pylist()
    value = {(row["calibrator"], row["score_name"], row["metric"]): row["value"] for row in rows}
    own, changed = "own_methods:my_metric,cut=0.0", "own_methods:my_calibrator,scale=2.0"
    assert value["none", "max_probability", own] == 1.0
    assert value[changed, "max_probability", "mean_confidence"] < value["none", "max_probability", "mean_confidence"]
    assert ("none", "own_methods:my_score", "auroc") in value
    assert (
        f"own_methods:my_loss {own_code.located('own_methods:my_loss', [beside]).digest[:16]}"
        in (tmp_path / run.folder / "run.json").read_text()
    )


def test_code_that_is_not_there_is_a_problem_of_the_study(beside):
    (beside / "own_methods.py").unlink()
    assert "there is no module own_methods" in try_out(read_study(beside / "study.toml")).problems[0]


def test_a_study_in_another_process_finds_its_code(beside):
    assert pickle.loads(pickle.dumps(read_study(beside / "study.toml"))).places == (beside.resolve(),)


def test_rows_depend_on_the_source_of_their_code_and_only_then(beside):
    study = read_study(beside / "study.toml")
    before = rows_file(study)
    plain = study.model_copy(update={"calibrators": ["none"], "scores": ["margin"], "metrics": ["ece"]})
    of_plain = rows_file(plain)
    (beside / "own_methods.py").write_text(OWN + "\n# changed\n")
    assert rows_file(study) != before
    assert rows_file(plain) == of_plain


def test_parts_of_a_recipe_are_named_in_python(beside, monkeypatch):
    monkeypatch.chdir(beside)
    logits, labels = torch.randn(6, 3), torch.tensor([0, 1, 2, 0, 1, 2])
    made = recipe("loss=own_methods:my_loss@mukhoti2020,strength=0.5,learning_rate=0.2")
    assert made.epochs == 350
    network = torch.nn.Linear(3, 3)
    assert made.optimizer(network).param_groups[0]["lr"] == 0.2
    from assay.nn.objectives import Batch, Task

    batch = Batch(logits, labels, torch.arange(6))
    expected = F.cross_entropy(logits, labels) + 0.5 * logits.square().mean()
    assert made.objective(Task(6, 3, 1))(torch.nn.Identity(), batch) == pytest.approx(float(expected))
    twice = recipe("objective=own_methods:my_objective,weight=2.0").objective(Task(6, 3, 1))
    assert twice(torch.nn.Identity(), batch) == pytest.approx(2 * float(F.cross_entropy(logits, labels)))
    assert recipe("optimizer=own_methods:my_optimizer,rate=0.3").optimizer(network).param_groups[0]["lr"] == 0.3
    assert recipe("own_methods:my_recipe,factor=2").batch_size == 256


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("loss=own_methods:my_loss,gamma=1.0", "no hyper-parameter 'gamma'.*it has strength"),
        ("loss=own_methods:my_recipe", r"parameters \(baseline, factor\); it must be a function \(logits, labels\)"),
        ("loss=own_methods:absent", "cannot be imported"),
        ("los=own_methods:my_loss", "did you mean 'loss'"),
        ("own_methods:nothing", "must give a Recipe, and gave a NoneType"),
        ("loss=focal", "Your own is package.module:loss"),
    ],
)
def test_what_is_wrong_with_a_method_is_said(beside, monkeypatch, name, says):
    monkeypatch.chdir(beside)
    with pytest.raises(InputError, match=says):
        recipe(name)


def test_scores_metrics_and_calibrators_are_named_in_python(beside, monkeypatch):
    monkeypatch.chdir(beside)
    test = examples.load()
    assert np.array_equal(score("own_methods:my_score,power=2.0")(test), margin(test) ** 2)
    found = evaluate(test, ["ece", "own_methods:my_metric,cut=0.9"])
    assert found["own_methods:my_metric,cut=0.9"] == (test.outcomes().confidence > 0.9).mean()
    assert calibrator("own_methods:my_calibrator,scale=3.0")(test).t == 3.0


@pytest.mark.parametrize("table", [CALIBRATORS, SCORES, RECIPES, NETWORKS, DATA, METRICS])
def test_nothing_is_registered_in_this_process_alone(table):
    """The processes of a study would not know it; a name package.module:function works in all of them."""
    with pytest.raises(TypeError, match="does not support item assignment"):
        table["mine"] = next(iter(table.values()))


def test_a_package_offers_methods_by_entry_points(beside, monkeypatch):
    monkeypatch.chdir(beside)
    monkeypatch.setattr(own_code, "_entry_points", lambda group: {"offered": f"own_methods:my_{group[6:-1]}"})
    test = examples.load()
    assert calibrator("offered,scale=3.0")(test).t == 3.0
    assert np.array_equal(score("offered")(test), margin(test))
    assert evaluate(test, ["offered,cut=1.0"]) == {"offered,cut=1.0": 0.0}
    assert recipe("offered,factor=2").batch_size == 256
    assert lines("calibrators")["offered"] == "From an installed package: own_methods:my_calibrator."
