"""`assay train`: what is wrong is said in one line, before anything is trained."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from torch import nn

from assay import cli
from assay._core.arrays import InputError
from assay.cli.train import Changes, train_command
from assay.nn import networks
from assay.nn.training import load_run

Refused = Callable[..., str]


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Refused:
    """Run `assay train`, by default of a small network on digits, and give the one line that it ends with."""

    def call(*, data: str = "digits", network: str = "mlp", recipe: str = "cross_entropy", **more: object) -> str:
        options = {"data": data, "network": network, "recipe": recipe, "out": tmp_path / "run", "epochs": 1, **more}
        words = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", str(value))]
        monkeypatch.setattr(sys, "argv", ["assay", "train", *words])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        assert stop.value.code == 2
        line = capsys.readouterr().err
        assert line.count("\n") == 1
        return line

    return call


def test_hardware_that_is_not_there_is_refused(refused: Refused):
    assert "--threads must be 1 or more, got 0" in refused(threads=0)
    assert "workers must be 0 or more, got -1" in refused(workers=-1)
    assert "cannot train on device 'gpuu'" in refused(device="gpuu")
    absent = "mps" if torch.cuda.is_available() else "cuda"
    assert f"cannot train on device '{absent}'" in refused(device=absent)


@pytest.mark.parametrize(
    ("network", "data", "shape"), [("vgg16_bn", "digits", "[1, 8, 8]"), ("resnet8", "synthetic", "[10]")]
)
def test_a_network_that_does_not_fit_is_refused_before_a_run_is_begun(
    refused: Refused, tmp_path: Path, network: str, data: str, shape: str
):
    line = refused(network=network, data=data)
    assert f"network '{network}' does not fit {data}, samples of shape {shape}: " in line
    assert not (tmp_path / "run").exists()


def narrow(n_classes: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(64, n_classes - 1))


def test_a_network_of_too_few_logits_is_refused(refused: Refused, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(networks, "NETWORKS", {"narrow": narrow})
    assert "network 'narrow' does not fit digits" in refused(network="narrow")


def test_a_run_on_data_of_a_folder_is_found_again(tmp_path: Path):
    """The folder is no part of what decides the run: moved, it goes on."""
    for split, n in (("train", 40), ("test", 20)):
        table = pa.table({"x": [[float(i), 1.0] for i in range(n)], "label": [i % 2 for i in range(n)]})
        (tmp_path / "data").mkdir(exist_ok=True)
        pq.write_table(table, tmp_path / "data" / f"{split}.parquet")

    def trained(folder: Path) -> None:
        chosen = {"data": "parquet", "network": "mlp", "recipe": "cross_entropy"}
        train_command(**chosen, changes=Changes(epochs=1), out=tmp_path / "run", folder=folder)

    trained(tmp_path / "data")
    network, x = load_run(tmp_path / "run")
    assert network(x).shape == (20, 2)
    (tmp_path / "data").rename(tmp_path / "moved")
    trained(tmp_path / "moved")
    assert load_run(tmp_path / "run")[1].equal(x)


def test_a_run_without_names_cannot_be_found_again(tmp_path: Path):
    for text in ('{"names": {}}', '{"names": {"data": "digits"}}', "{}", "[]", "no JSON"):
        (tmp_path / "run.json").write_text(text)
        with pytest.raises(InputError, match="no run of `assay train` or of a study"):
            load_run(tmp_path)


def test_no_epochs_and_empty_batches_are_refused(refused: Refused):
    assert "epochs must be at least 1, got 0" in refused(epochs=0)
    assert "batch_size must be at least 1, got 0" in refused(batch_size=0)
